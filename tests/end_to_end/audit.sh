#!/bin/sh
# audit.sh: a tiny run holds under audit and replay; one wrong byte of a block, a document or the ledger is found and named.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
command -v sqlite3 >/dev/null 2>&1 || command -v python3 >/dev/null 2>&1 || { echo "skipped: needs sqlite3 or python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

"$rondo" local tests/end_to_end/tiny.lua --home "$work/home" --quiet --json >"$work/local" || fail "the run itself"
run=$(sed -n 's/.*"run":"\([a-z0-9]*\)".*/\1/p' "$work/local" | tail -1)

# What it said of itself while it ran: phases, steps with the script's metrics, what each trainer sent.
for line in '"event":"started"' '"event":"state".*"phase":' '"event":"final"' \
    '"event":"progress".*"loss":.*"tokens_per_second":.*"metrics":{"tokens":.*"node":"trainer-' \
    '"event":"trained".*"tokens":.*"mean_step_loss":.*"payload_bytes":'; do
    grep -q "$line" "$work/home/runs/$run/metrics.jsonl" || fail "metrics.jsonl holds no $line"
done

# flip FILE OFFSET: changes one byte.
flip() {
    old=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf "\\$(printf '%03o' $((old ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
sql() {
    if command -v sqlite3 >/dev/null 2>&1; then sqlite3 "$1" "$2"; else
        python3 -c '
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
for row in c.execute(sys.argv[2]): print(*row)
c.commit()
c.close()' "$1" "$2"
    fi
}
# holds NAME: audit and replay accept the home.
holds() {
    "$rondo" audit "$run" --home "$work/home" --quiet --json >"$work/out" 2>&1 || { cat "$work/out"; fail "$1: audit"; }
    grep -q '"ok":true' "$work/out" || fail "$1: audit says nothing of ok"
    grep -q '"payouts":3' "$work/out" || fail "$1: not every round is paid"
    "$rondo" replay "$run" 1 --home "$work/home" --quiet --json >"$work/out" 2>&1 || { cat "$work/out"; fail "$1: replay"; }
    grep -q '"match":true' "$work/out" || fail "$1: replay says nothing of match"
}
# breaks HOME WORD: both end with status 1 and name the place.
breaks() {
    for what in "audit $run" "replay $run 1"; do
        status=0
        # shellcheck disable=SC2086
        "$rondo" $what --home "$1" --quiet --json >"$work/out" 2>"$work/errors" || status=$?
        [ "$status" -eq 1 ] || { cat "$work/out" "$work/errors"; fail "$what: status $status, 1 was expected for $2"; }
        grep -q "$2" "$work/out" || { cat "$work/out" "$work/errors"; fail "$what does not name $2"; }
    done
}
copy() {
    rm -rf "$work/copy"
    cp -r "$work/home" "$work/copy"
}

holds "the run"
"$rondo" replay "$run" 4 --home "$work/home" --quiet >"$work/out" 2>&1 || { cat "$work/out"; fail "replay of a close round"; }
grep -q "^round 4  close" "$work/out" || { cat "$work/out"; fail "replay of a close round tells nothing"; }
"$rondo" audit "$run" --home "$work/home" --quick --recompute 0.2 --quiet --json >"$work/out" || fail "audit --quick --recompute"
grep -q '"replayed":2' "$work/out" || { cat "$work/out"; fail "a fifth of nine contributions is two"; }

# The same command prints the result again while it holds, makes it again where its file was changed, and believes neither without evidence.
again() { "$rondo" local tests/end_to_end/tiny.lua --home "$1" --json >"$work/out" 2>"$work/errors"; }
again "$work/home" && cmp -s "$work/out" "$work/local" || fail "the result again is another one"
copy
sed -i 's/"paid": {/"paid": { "nobody": "1",/' "$work/copy/result.json"
again "$work/copy" || fail "a changed result: $(cat "$work/errors")"
grep -q "result.json is damaged" "$work/errors" || fail "a changed result is not named"
grep -q '"nobody"' "$work/out" && fail "a changed result is believed"
copy
record=$(grep -l '"type":"record"' "$work"/copy/nodes/syncer-2/documents/b* | sed -n 3p)
flip "$record" 40
status=0
again "$work/copy" || status=$?
{ [ "$status" -eq 3 ] && grep -q "$(basename "$record")" "$work/errors"; } || fail "a result without its records: status $status, $(cat "$work/errors")"

# Evidence is only read: by one who may not write there, and nothing of it is touched or added by one who may.
state() { find "$work/home" -printf '%p %s %T@\n' | sort >"$1"; }
state "$work/before"
nobody=
[ "$(id -u)" != 0 ] || ! setpriv --reuid 65534 --clear-groups "$rondo" --help >/dev/null 2>&1 || nobody="setpriv --reuid 65534 --clear-groups"
[ "$(id -u)" = 0 ] || chmod -R a-w "$work/home"
chmod 755 "$work"
chmod -R a+rX "$work/home"
$nobody "$rondo" audit "$run" --home "$work/home" --quick --quiet --json >"$work/out" || { cat "$work/out"; fail "an audit of a home that is read-only"; }
$nobody "$rondo" replay "$run" 1 --home "$work/home" --quiet --json >"$work/out" || { cat "$work/out"; fail "a replay of a home that is read-only"; }
state "$work/after"
cmp "$work/before" "$work/after" || { diff "$work/before" "$work/after"; fail "the audit changed the home"; }
[ "$(id -u)" = 0 ] || chmod -R u+w "$work/home"

# What is no block and no document does not matter.
echo other >"$work/home/nodes/syncer-1/blocks/notes.txt"
echo other >"$work/home/nodes/syncer-1/documents/notes.txt"
holds "a file that does not belong"

for node in sponsor syncer-2 trainer-1; do
    copy
    block=$(find "$work/copy/nodes/$node/blocks" -name 'b*' | sort | sed -n 3p)
    flip "$block" 5
    breaks "$work/copy" "$(basename "$block")"
done

for node in syncer-3 trainer-2; do
    copy
    document=$(find "$work/copy/nodes/$node/documents" -name 'b*' | sort | sed -n 4p)
    flip "$document" $(($(wc -c <"$document") / 2))
    breaks "$work/copy" "$(basename "$document")"
done
copy
record=$(grep -l '"type":"record"' "$work"/copy/nodes/syncer-1/documents/b* | sed -n 2p)
flip "$record" 40
breaks "$work/copy" "$(basename "$record")"

# What every node has lost is found too.
copy
rm "$work"/copy/nodes/*/documents/"$(basename "$record")"
status=0
"$rondo" audit "$run" --home "$work/copy" --quiet --json >"$work/out" 2>&1 || status=$?
{ [ "$status" -eq 1 ] && grep -q "$(basename "$record")" "$work/out"; } || { cat "$work/out"; fail "a lost record: status $status"; }

# A trainer's own home: nothing in it is wrong, what others sent is not in it. A gap is named once, replays or not.
copy
find "$work/copy/nodes" -mindepth 1 -maxdepth 1 ! -name trainer-1 -exec rm -rf {} +
status=0
"$rondo" audit "$run" --home "$work/copy" --recompute 1 --quiet --json >"$work/out" 2>&1 || status=$?
{ [ "$status" -eq 1 ] && grep -q '"ok":false' "$work/out" && grep -q '"findings":\[\],"incomplete":\[{' "$work/out"; } ||
    { cat "$work/out"; fail "a trainer's home: status $status"; }
[ -z "$(grep -o '"message":"[^"]*"' "$work/out" | sort | uniq -d)" ] || { cat "$work/out"; fail "a gap is named twice"; }
"$rondo" audit "$run" --home "$work/copy" --quiet >"$work/out" 2>&1 && fail "a trainer's home is whole"
grep -q '^what is here holds; [0-9]* things are not in this home' "$work/out" || { cat "$work/out"; fail "a trainer's home in words"; }

# The sponsor's own home has the run and no record of it: whose home has them is said.
copy
find "$work/copy/nodes" -mindepth 1 -maxdepth 1 ! -name sponsor -exec rm -rf {} +
for command in "audit $run" "replay $run 1"; do
    # shellcheck disable=SC2086
    "$rondo" $command --home "$work/copy" --quiet >"$work/out" 2>&1 && fail "a home without records: $command"
    grep -q "no record of the run.*the homes of the run's syncers and trainers" "$work/out" || { cat "$work/out"; fail "$command"; }
done
"$rondo" run show "$run" --home "$work/copy" >"$work/out" 2>&1 || fail "run show of a home without records"
grep -q "no record of the run is in .*the homes of the run's syncers and trainers" "$work/out" || { cat "$work/out"; fail "run show"; }

for column in entropy hash previous root time; do
    copy
    height=7
    if [ $column = time ]; then value="$column + 1"; else value="cast(x'00' || substr($column, 2) as blob)"; fi
    sql "$work/copy/ledger/ledger.db" "update block set $column = $value where height = $height"
    breaks "$work/copy" "block $height"
done
copy
place=$(sql "$work/copy/ledger/ledger.db" "select min(height) from entry")
sql "$work/copy/ledger/ledger.db" "update entry set code = 'range' where height = $place and position = 0"
breaks "$work/copy" "block $place"
echo "one wrong byte is always found"
