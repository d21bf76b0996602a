#!/bin/sh
# two_homes.sh: the walk-through of docs/operator.md. Ledger, sponsor and syncers in one home, trainers in another; only HTTP between them.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
here=$work/here there=$work/there
started=
finish() {
    for pid in $started; do kill "$pid" 2>/dev/null || true; done
    for pid in $started; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
fail() {
    echo "FAILED: $*"
    tail -n 5 "$work"/*.log
    exit 1
}
# await LOG PATTERN SECONDS
await() {
    for _ in $(seq $(($3 * 10))); do
        grep -q "$2" "$1" 2>/dev/null && return
        sleep 0.1
    done
    fail "$1 does not say $2"
}
# start NAME HOME COMMAND...: in the background; `url` is where it listens.
start() {
    name=$1 home=$2
    shift 2
    "$rondo" "$@" --home "$home" --json --threads 1 >"$work/$name.log" 2>&1 &
    started="$started $!"
    await "$work/$name.log" '"event":"ready"' 60
    url=$(sed -n '/"event":"ready"/s/.*"endpoint":"\([^"]*\)".*/\1/p' "$work/$name.log" | head -1)
}
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

# Keys, and what of them the sponsor is told.
"$rondo" key new --home "$here" --name sponsor --quiet --json >"$work/sponsor"
panel= allow=
for i in 1 2 3 4; do
    "$rondo" key new --home "$here" --name syncer-$i --quiet --json >"$work/key"
    panel="$panel${panel:+,}{\"did\":\"$(field did <"$work/key")\",\"account\":\"$(field account <"$work/key")\"}"
done
for i in 1 2; do
    "$rondo" key new --home "$there" --name trainer-$i --quiet --json >"$work/key-$i"
    allow="$allow${allow:+,}\"$(field did <"$work/key-$i")\""
done
echo "[$panel]" >"$work/panel.json"
echo "[$allow]" >"$work/allow.json"

start ledger "$here" ledger --port 0 --block-ms 50 --allocate "$(field account <"$work/sponsor")=3000"
ledger=$url

# What cannot be created says why, and puts nothing into an escrow.
status=0
"$rondo" run create tests/end_to_end/tiny.lua --home "$here" --ledger "$ledger" --json >"$work/out" 2>&1 || status=$?
[ $status -eq 3 ] || fail "create without a panel: status $status"
grep -q "committee.panel: the run file names no panel (give --panel FILE" "$work/out" || fail "create without a panel: $(cat "$work/out")"
create() { # create FILE OPTIONS...
    status=0
    "$rondo" run create "$@" --home "$here" --ledger "$ledger" --panel "$work/panel.json" --allow "$work/allow.json" --json >"$work/out" 2>&1 || status=$?
    [ $status -eq 3 ] || fail "create of what nobody could dispute: status $status"
}
sed 's/batch_tokens = 448/batch_tokens = 65536/' tests/end_to_end/tiny.lua >"$work/large.lua"
create "$work/large.lua"
grep -q "nobody could show that a value of dot is wrong: its operands have [0-9]* bytes, at most 67108864 are sent" "$work/out" || fail "create: $(cat "$work/out")"
create tests/end_to_end/tiny.lua --memory 20M
grep -q "a step traced for a dispute needs [0-9]* bytes of memory.*has 20971520" "$work/out" || fail "create: $(cat "$work/out")"
[ -z "$("$rondo" run list --home "$here")" ] || fail "create: something is signed"

"$rondo" run create tests/end_to_end/tiny.lua --home "$here" --ledger "$ledger" --panel "$work/panel.json" --allow "$work/allow.json" --quiet \
    >"$work/run" || fail "run create"
run=$(cat "$work/run")
"$rondo" run create "$run" --home "$here" --ledger "$ledger" --json >"$work/out" || fail "create again"
grep -q "\"run\":\"$run\".*\"escrowed\":\"3000\"" "$work/out" || fail "create again: $(cat "$work/out")"

start sponsor "$here" sponsor "$run" --ledger "$ledger"
peer=$url
for i in 1 2 3 4; do start syncer-$i "$here" syncer "$run" --name syncer-$i --ledger "$ledger" --peer "$peer"; done
member=$url
start trainer-1 "$there" trainer "$run" --name trainer-1 --ledger "$ledger" --peer "$peer"

# The second trainer finds the run by itself, under a policy that takes it; others would not.
policy() { # policy FIELDS...: judged, without taking anything
    echo "{\"peers\":[\"$peer\"],\"ledger\":\"$ledger\"$1}" >"$work/policy.json"
    "$rondo" trainer --auto "$work/policy.json" --list --home "$there" --name trainer-2 --json >"$work/out" 2>&1
}
policy ',"accept":{"licences":["CC-BY-4.0"]}' && fail "a licence that is not accepted"
grep -q "licence Apache-2.0 of corpus pocket-tools is not accepted" "$work/out" || fail "licence: $(cat "$work/out")"
policy ',"least_pay":"401"' && fail "too little pay"
grep -q '"reason":"less than least_pay, 401".*"taken":false' "$work/out" || fail "pay: $(cat "$work/out")"
policy ',"most_download":1000000' && fail "too much to fetch"
grep -q "its model and data are [0-9]* bytes" "$work/out" || fail "download: $(cat "$work/out")"
policy ",\"refuse\":{\"runs\":[\"$run\"]}" && fail "a refused run"
policy ',"least_payment":"400"' && fail "an unknown field"
grep -q 'unknown field.*least_payment.*known: peers' "$work/out" || fail "unknown field: $(cat "$work/out")"
policy ',"accept":{"licences":["Apache-2.0"],"asset":"TNZO"},"least_pay":"400"' || fail "policy: $(cat "$work/out")"
grep -q '"taken":true' "$work/out" || fail "the run that would be taken: $(cat "$work/out")"
start trainer-2 "$there" trainer --auto "$work/policy.json" --name trainer-2

"$rondo" status "$member" --json >"$work/out" || fail "status of a URL"
grep -q '"role":"syncer"' "$work/out" || fail "status: $(cat "$work/out")"
"$rondo" status --home "$here" --json >"$work/out" || fail "status of a home"
[ "$(grep -o '"running":true' "$work/out" | wc -l)" -eq 6 ] || fail "status of a home: $(cat "$work/out")" # five nodes, and the sum
"$rondo" run list --home "$there" --json >"$work/out" || fail "run list"
grep -q "\"node\":\"trainer-1\",\"run\":\"$run\"" "$work/out" || fail "run list: $(cat "$work/out")"

# Once every syncer has the blocks the sponsor is not needed.
for i in 1 2; do await "$work/trainer-$i.log" '"event":"final".*"round":1' 60; done
"$rondo" run stop "$run" --home "$here" --json >"$work/out" || fail "run stop: $(cat "$work/out")"
grep -q "before its expiry" "$work/out" || fail "run stop does not tell what it cannot do"
for i in 1 2 3 4; do await "$work/syncer-$i.log" '"event":"done"' 120; done
"$rondo" run stop "$run" --home "$here" >/dev/null 2>&1 && fail "a second stop"

# What was paid is drawn; what is not expired stays.
"$rondo" withdraw --home "$there" --name trainer-1 --ledger "$ledger" --json >"$work/out" || fail "withdraw: $(cat "$work/out")"
grep -q '"withdrawn":"[1-9][0-9]*","balance":"[1-9]' "$work/out" || fail "withdraw: $(cat "$work/out")"
"$rondo" run refund "$run" --home "$here" --ledger "$ledger" --json >"$work/out" || fail "run refund: $(cat "$work/out")"
grep -q '"refunded":\[\]' "$work/out" || fail "a refund before the expiry: $(cat "$work/out")"

for pid in $started; do kill "$pid" 2>/dev/null || true; done
for pid in $started; do wait "$pid" 2>/dev/null || true; done
started=
"$rondo" audit "$run" --home "$here" --recompute 0.5 --quiet --json >"$work/out" || fail "audit: $(cat "$work/out")"
"$rondo" why "$run" "$(field did <"$work/key-1")" --home "$here" --json >"$work/out" || fail "why"
grep -q '"round":1,.*"code":"accepted"' "$work/out" || fail "why: $(cat "$work/out")"
"$rondo" run show "$run" --home "$there" --json >"$work/out" || fail "run show from the trainers' home"
grep -q '"kind":"train"' "$work/out" || fail "run show: $(cat "$work/out")"
[ ! -e "$there/nodes/syncer-1" ] && [ ! -e "$here/nodes/trainer-1" ] || fail "the homes are mixed up"
echo "two homes without a shared folder end a run"
