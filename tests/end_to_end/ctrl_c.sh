#!/bin/sh
# Ctrl-C ends `rondo local` with no process left behind, at any moment; the same command goes on and ends at the state of a run that
# nobody disturbed; on a finished home it prints the result again. Nodes that die under it are started again. A port in use is told.
. "$(dirname "$0")/lib/network.sh"

run_file short -e 's/rounds = 3/rounds = 2/' -e 's/trainers = 3, syncers/trainers = 2, syncers/' -e 's/budget = "3000"/budget = "2000"/'

# run HOME: the whole command; its result's state roots on standard output
roots() { tr ',' '\n' <"$1" | sed -n 's/.*"state_root":"\([0-9a-f]*\)".*/\1/p'; }
local_run() { "$RONDO" local "$T/short.lua" --home "$1" --ledger-seed ctrl-c --json >"$T/out" 2>"$T/err"; }
left() { pgrep -f -- "--home=$1" || true; }

local_run "$T/good" &
pid=$!
until pgrep -af -- "--home=$T/good.*--name=trainer-2" | grep -o -- "--memory=[0-9]*" >"$T/memory"; do
    kill -0 $pid 2>/dev/null || fail "no trainer was told how much memory it may take: $(cat "$T/err")"
    sleep 0.1
done
pgrep -af -- "--home=$T/good" | grep -o -- "--memory=[0-9]*" | tr -dc '0-9\n' >"$T/memory"
awk -v most="$(awk '/^MemTotal/ { print $2 * 1024 }' /proc/meminfo)" '{ sum += $1 } END { exit sum > most }' "$T/memory" ||
    fail "workers may take more memory than there is: $(cat "$T/memory")"
wait $pid || fail "$(cat "$T/err")"
good=$(roots "$T/out")
[ -n "$good" ] || fail "no result: $(cat "$T/out")"
for pause in 0.5 2 4 6 8; do
    local_run "$H" &
    pid=$!
    sleep $pause
    child=$(pgrep -P $pid -f "rondo local" || echo $pid)
    kill -INT "$child" 2>/dev/null || true
    status=0
    wait $pid || status=$?
    case $status in 0 | 130) ;; *) fail "after $pause s: status $status: $(cat "$T/err")" ;; esac
    [ -z "$(left "$H")" ] || fail "processes are left: $(ps -o args= -p "$(left "$H" | head -1)")"
done
say "interrupted five times, nothing left"
local_run "$H" &
pid=$!
sleep 3
for name in syncer-1 trainer-1 ledger; do
    one=$(pgrep -f -- "--home=$H.*--name=$name" | head -1 || true)
    [ -z "$one" ] || kill -9 "$one"
    sleep 1
done
wait $pid || fail "$(cat "$T/err")"
[ "$(roots "$T/out")" = "$good" ] || fail "another state: $(roots "$T/out") instead of $good"
say "went on, with nodes killed under it, to the same state"
cp "$T/out" "$T/first"
local_run "$H" || fail "$(cat "$T/err")"
cmp -s "$T/out" "$T/first" || fail "another result"
[ "$(left "$H")" = '' ] || fail "processes are left"

H=$T/ports
prepare "$T/short.lua"
ledger
port=$LEDGER_PORT
if "$RONDO" ledger --home "$T/other" --port "$port" --json >"$T/out" 2>"$T/err"; then fail "two ledgers on one port"; fi
grep -q "port\|in use" "$T/err" || fail "$(cat "$T/err")"
if "$RONDO" sponsor "$RUN" --home "$H" --name sponsor --ledger "$LEDGER" --port "$port" >"$T/out" 2>"$T/err"; then fail "a node on a used port"; fi
grep -q "in use" "$T/err" || fail "$(cat "$T/err")"
sponsor
if "$RONDO" sponsor "$RUN" --home "$H" --name sponsor --ledger "$LEDGER" >"$T/out" 2>"$T/err"; then fail "two nodes of one folder"; fi
grep -q "another process" "$T/err" || fail "$(cat "$T/err")"
say "$(cat "$T/err")"
