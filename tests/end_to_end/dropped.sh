#!/bin/sh
# A trainer that stands still for `drop_after` rounds is dropped; continued, it says so, enrols again by itself and is paid again.
. "$(dirname "$0")/lib/network.sh"

run_file dropped -e 's/rounds = 3/rounds = 7/' -e 's/drop_after = 3/drop_after = 2/' -e 's/budget = "3000"/budget = "7000"/'
prepare "$T/dropped.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
for name in trainer-1 trainer-2 trainer-3; do node trainer $name; done
await syncer-1 '"event":"final".*"round":1,' 120
kill -STOP "$(pid_of trainer-3)"
await syncer-1 '"event":"final".*"round":4,' 120
kill -CONT "$(pid_of trainer-3)"
await trainer-3 '"event":"enrolling_again".*"dropped after 2 missed rounds"' 60
agree syncer-1 syncer-2 syncer-3 syncer-4
expect_code 7 trainer-3 ok
[ -z "$(code_of 4 trainer-3)" ] || fail "it was not dropped: $(code_of 4 trainer-3)"
say "dropped, enrolled again, accepted"
