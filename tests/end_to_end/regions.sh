#!/bin/sh
# Trainers that state what they take, and shards that may not leave their region: who takes three batches a step is dealt and paid three times as
# much, others compute the same from its enrolment; a boaster that stands still gets nothing and its shards go to others; shards of a region whose
# only trainer has left wait, and records say so.
. "$(dirname "$0")/lib/network.sh"

run_file regions -e 's/rounds = 3/rounds = 5/; s/budget = "3000"/budget = "5000"/; s/spot_check = 0.3/spot_check = 1/' \
    -e 's/shards = 4,/shards = 12, regions = { { name = "eu", only = { { 0, 1 } } }, { name = "us", prefer = { { 4, 5 } } } },/' \
    -e 's/limits = {/limits = { batches = 3,/; s/trainers = 3, syncers = 4/trainers = 4, syncers = 4/; s/drop_after = 3/drop_after = 9/' \
    -e 's/min_ms = 1000, max_ms = 20000/min_ms = 15000, max_ms = 20000/'
prepare "$T/regions.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
node trainer trainer-1 --region eu --capacity 3
node trainer trainer-2 --region us
node trainer trainer-3 --region moon
node trainer trainer-4 --capacity 1000
await trainer-3 '"event":"region".*"moon"' 60

weight() { record "$1" | sed 's/.*"contributions":\[\([^]]*\)\].*/\1/' | tr '{' '\n' | grep "\"did\":\"$(did_of "$2")\"" | sed -n 's/.*"weight":\([0-9]*\).*/\1/p'; }
list() { record "$1" | sed -n "s/.*\"$2\":\[\([0-9,]*\)\].*/\1/p"; }

await syncer-1 '"event":"final".*"round":1,' 120
kill -STOP "$(pid_of trainer-4)"
await syncer-1 '"event":"final".*"round":2,' 180
kill -USR1 "$(pid_of trainer-1)"
kill -CONT "$(pid_of trainer-4)"
agree syncer-1 syncer-2 syncer-3 syncer-4

expect_code 1 trainer-1 ok
[ "$(weight 1 trainer-1) $(weight 1 trainer-2) $(weight 1 trainer-3)" = "3 1 1" ] ||
    fail "weights of round 1: $(weight 1 trainer-1) $(weight 1 trainer-2) $(weight 1 trainer-3)"
[ -z "$(list 1 undealt)" ] || fail "round 1 left shards undealt: $(list 1 undealt)"
[ -z "$(code_of 2 trainer-4)" ] || fail "trainer-4 returned something in round 2"
[ -n "$(list 2 unreturned)" ] || fail "nothing is unreturned in round 2"
[ "$(list 5 undealt)" = "0,1" ] || fail "undealt in round 5: '$(list 5 undealt)'"
list 5 unreturned | grep -q '0,1$' || fail "what was not dealt does not come first in the next round: $(list 5 unreturned)"
grep -q '"event":"final".*"round":5,.*"undealt":\[0,1\]' "$(log syncer-1)" || fail "syncer-1 does not say what waits"

# of the 800 that trainers share in round 2, three fifths: trainer-4 did not return its shards
for file in "$T"/pid/*; do stop "$(basename "$file")"; done
"$RONDO" why "$RUN" trainer-1 --home "$H" --json >"$T/why.json" || fail "why: $(cat "$T/why.json")"
grep -q '"round":2,"weight":3,"weights":5,"code":"accepted","rule":"[^"]*batches of each step","ledger":"released","settled":4,"amount":"480"' \
    "$T/why.json" || fail "round 2 of trainer-1: $(cat "$T/why.json")"
"$RONDO" replay "$RUN" 1 --home "$H" --json >"$T/replay.json" 2>&1 || fail "replay of round 1: $(cat "$T/replay.json")"
"$RONDO" audit "$RUN" --home "$H" --json >"$T/audit.json" || fail "audit: $(cat "$T/audit.json")"
say "weights 3, 1 and 1 in round 1; shards 0 and 1 waited from the round after their region was empty"
