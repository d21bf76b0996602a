#!/bin/sh
# sync.sh: a wiped home fetches a finished run from two nodes that are not its own, and ends at the same state root.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
started=
finish() {
    for pid in $started; do kill "$pid" 2>/dev/null || true; done
    for pid in $started; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED: $*"; cat "$work"/*.log 2>/dev/null | tail -20; exit 1; }

"$rondo" local tests/end_to_end/tiny.lua --home "$work/home" --quiet --json >"$work/local" || fail "the run itself"
run=$(sed -n 's/.*"run":"\([a-z0-9]*\)".*/\1/p' "$work/local" | tail -1)

# endpoint FILE: waits for the ready line of a process.
endpoint() {
    for _ in $(seq 300); do
        url=$(sed -n '/"event":"ready"/s/.*"endpoint":"\([^"]*\)".*/\1/p' "$1" | head -1)
        [ -n "$url" ] && return
        sleep 0.1
    done
    fail "$1: not ready"
}
: >"$work/ledger.log"
"$rondo" ledger --home "$work/home" --port 0 --json >"$work/ledger.log" 2>&1 &
started="$started $!"
endpoint "$work/ledger.log"
ledger=$url
for name in syncer-1 syncer-2; do
    : >"$work/$name.log"
    "$rondo" syncer "$run" --home "$work/home" --name $name --ledger "$ledger" --json >"$work/$name.log" 2>&1 &
    started="$started $!"
    endpoint "$work/$name.log"
    peer=$url
    last=$!
done

"$rondo" audit "$run" --home "$work/home" --quiet --json >"$work/out" 2>&1 && fail "an audit of running nodes"
grep -q "is running" "$work/out" || fail "an audit does not say that nodes run"

"$rondo" sync "$run" --peer "$peer" --ledger "$ledger" --home "$work/new" --name syncer-4 --adapter "$work/adapter" --quiet --json \
    >"$work/sync" 2>"$work/sync.log" || fail "sync"
cmp "$work/adapter/adapter_model.safetensors" "$work/home/runs/$run/adapter/adapter_model.safetensors" || fail "another adapter"
root=$(sed -n 's/.*"state_root":"\([0-9a-f]*\)".*/\1/p' "$work/sync")
rounds=$(sed -n 's/.*"verified":{"rounds":\([0-9]*\).*/\1/p' "$work/sync")
want=$(grep -o '"state_root":"[0-9a-f]*"' "$work/local" | tail -1 | cut -d'"' -f4)
[ "$root" = "$want" ] || fail "the root is $root, $want was expected"
[ "$rounds" -ge 4 ] || fail "only $rounds rounds"

# The peer given is away: the same call goes on with what it learned, and has nothing left to do.
kill "$last"
wait "$last" 2>/dev/null || true
"$rondo" sync "$run" --peer "$peer" --ledger "$ledger" --home "$work/new" --name syncer-4 --quiet --json >"$work/sync" 2>"$work/sync.log" ||
    fail "sync again"
grep -q "\"state_root\":\"$want\"" "$work/sync" || fail "another root the second time"
grep -q '"folds":0' "$work/sync" || fail "what was verified is computed again"

# Broken off in the middle: what is there stays, the rest follows.
peer=$(sed -n '/"event":"ready"/s/.*"endpoint":"\([^"]*\)".*/\1/p' "$work/syncer-1.log" | head -1)
timeout -s KILL 0.6 "$rondo" sync "$run" --peer "$peer" --ledger "$ledger" --home "$work/third" --name other --quiet --json >/dev/null 2>&1 || true
sleep 1 # timeout does not wait for what it killed
"$rondo" sync "$run" --peer "$peer" --ledger "$ledger" --home "$work/third" --name other --quiet --json >"$work/sync" 2>"$work/sync.log" ||
    fail "sync after a kill"
grep -q "\"state_root\":\"$want\"" "$work/sync" || fail "another root after a kill"
echo "a wiped home ends at the same state root"
