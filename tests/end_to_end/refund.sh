#!/bin/sh
# refund.sh: a funded run in which nobody works gives its money back after the expiry, and not before.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
home=$work/home
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() {
    echo "FAILED: $*"
    cat "$work"/out "$work"/ledger.log 2>/dev/null
    exit 1
}
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

for name in sponsor one two three four five six; do "$rondo" key new --home "$home" --name $name --quiet --json >"$work/$name"; done
panel= allow=
for name in one two three four; do
    panel="$panel${panel:+,}{\"did\":\"$(field did <"$work/$name")\",\"account\":\"$(field account <"$work/$name")\"}"
done
for name in five six; do allow="$allow${allow:+,}\"$(field did <"$work/$name")\""; done
echo "[$panel]" >"$work/panel.json"
echo "[$allow]" >"$work/allow.json"
sed 's/round_ms = 60000/round_ms = 1000/; s/min_ms = 1000, max_ms = 20000/min_ms = 500, max_ms = 900/; s/expiry_rounds = 20/expiry_rounds = 8/; s/rounds = 3,/rounds = 2,/' \
    tests/end_to_end/tiny.lua >"$work/run.lua"

: >"$work/ledger.log"
"$rondo" ledger --home "$home" --port 0 --block-ms 50 --allocate "$(field account <"$work/sponsor")=2500" --json >"$work/ledger.log" 2>&1 &
pid=$!
for _ in $(seq 100); do
    ledger=$(field endpoint <"$work/ledger.log")
    [ -z "$ledger" ] || break
    sleep 0.1
done
create() {
    "$rondo" run create "$work/run.lua" --home "$home" --ledger "$ledger" --panel "$work/panel.json" --allow "$work/allow.json" --json >"$work/out" 2>&1
}
create || fail "run create"
run=$(field run <"$work/out")

# The account has 500 left: a second run cannot be paid for, so it is not made; the first keeps its money.
status=0
create || status=$?
[ $status -eq 3 ] || fail "a second run: status $status"
grep -q "the escrows take 2000, account 0x[0-9A-Fa-f]* has 500: 1500 are missing" "$work/out" || fail "a second run"
"$rondo" run list --home "$home" >"$work/out" || fail "run list"
{ [ "$(wc -l <"$work/out")" -eq 1 ] && grep -q "^sponsor .*$run  funded$" "$work/out"; } || fail "run list"

"$rondo" run refund "$run" --home "$home" --ledger "$ledger" --json >"$work/out" 2>&1 || fail "refund before the expiry"
grep -q '"refunded":\[\],"amount":"0"' "$work/out" || fail "refund before the expiry"
for _ in $(seq 30); do
    sleep 1
    "$rondo" run refund "$run" --home "$home" --ledger "$ledger" --json >"$work/out" 2>&1 || fail "refund"
    if grep -q '"waiting":\[\]' "$work/out"; then break; fi
done
grep -q '"balance":"2500"' "$work/out" || fail "not everything came back"
"$rondo" run refund "$run" --home "$home" --ledger "$ledger" --json >"$work/out" 2>&1 || fail "refund again"
grep -q '"refunded":\[\],"amount":"0".*"balance":"2500"' "$work/out" || fail "refund again"
echo "what nobody earned came back"
