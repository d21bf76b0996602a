#!/bin/sh
# A trainer that is told to leave: a record lists it, it is assigned nothing more, is paid for what it did, and ends by itself; started again
# it enrols again.
. "$(dirname "$0")/lib/network.sh"

run_file leave -e 's/rounds = 3/rounds = 9/' -e 's/budget = "3000"/budget = "9000"/'
prepare "$T/leave.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
for name in trainer-1 trainer-2 trainer-3; do node trainer $name; done
await trainer-3 '"event":"final".*"round":1,' 120
"$RONDO" leave syncer-1 --home "$H" >"$T/said" 2>&1 && fail "a member of the panel leaves"
grep -q "only a trainer or an auditor leaves" "$T/said" || fail "$(cat "$T/said")"
"$RONDO" leave trainer-3 --home "$H" >"$T/said" || fail "$(cat "$T/said")"
await trainer-3 '"event":"leaving"' 60
await trainer-3 '"event":"done"' 120
status=0
wait "$(pid_of trainer-3)" || status=$?
rm -f "$T/pid/trainer-3"
[ $status = 0 ] || fail "it ends with $status"
left=$(finals trainer-3 | tail -1 | cut -d' ' -f1)
grep -h '"type":"record"' "$H"/nodes/trainer-3/documents/* | grep -q '"type":"leave"' || fail "no record lists that it left"
record "$left" >"$T/last"
tr '{' '\n' <"$T/last" | grep '"enrolment"' | grep -q "$(did_of trainer-3)" && fail "it is a member still"
: >"$T/log/trainer-3"
node trainer trainer-3
await trainer-3 '"event":"enrolling_again"' 60
agree syncer-1 syncer-2 syncer-3 syncer-4
[ -z "$(code_of "$left" trainer-3)" ] || fail "it was assigned work after it had left"
expect_code 9 trainer-3 ok
paid trainer-3 || fail "it was not paid"
say "left in round $left, paid, came back"
