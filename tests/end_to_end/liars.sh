#!/bin/sh
# Trainers whose payloads are truncated, not finite, wrongly quantised, stale or copied: refused by every member with the code of what
# is wrong, unpaid. A trainer whose numbers are not what honest training gives: caught by a drawn replay, challenged, convicted, removed
# by folding again, unpaid.
. "$(dirname "$0")/lib/network.sh"

run_file liars -e 's/trainers = 3, syncers/trainers = 8, syncers/' -e 's/shards = 4/shards = 8/' -e 's/spot_check = 0.3/spot_check = 1/' \
    -e 's/round_ms = 60000/round_ms = 90000/' -e 's/min_ms = 1000, max_ms = 20000/min_ms = 40000, max_ms = 50000/'
prepare "$T/liars.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
node trainer trainer-1
node trainer trainer-2
at=3
for lie in truncated non_finite quantised stale copied noise; do
    PROGRAM=$LIAR LIE=$lie RONDO_LIE_FROM=$H/nodes/trainer-1 node trainer trainer-$at
    at=$((at + 1))
done
agree syncer-1 syncer-2 syncer-3 syncer-4

for round in 1 2; do
    expect_code $round trainer-1 ok
    expect_code $round trainer-2 ok
    expect_code $round trainer-3 truncated
    expect_code $round trainer-4 non_finite
    expect_code $round trainer-5 range
    expect_code $round trainer-7 mismatch
done
expect_code 1 trainer-6 ok
expect_code 2 trainer-6 mismatch
expect_code 1 trainer-8 ok
# The challenge is due within two records; the dispute ends in one of those after.
by=0
last=$(finals syncer-1 | tail -1 | cut -d' ' -f1)
for r in $(seq "$last"); do
    if [ $by = 0 ] && record "$r" | tr '{' '\n' | grep "\"did\":\"$(did_of trainer-8)\"" | grep -q '"round":1}'; then by=$r; fi
done
[ $by != 0 ] || fail "nobody convicted: $(record "$last" | cut -c1-1500)"
for r in $(seq $by); do record "$r"; done | grep -q '"code":"upheld"' || fail "no move was upheld"
for name in trainer-3 trainer-4 trainer-5 trainer-7 trainer-8; do
    if paid $name; then fail "$name was paid"; fi
done
for name in trainer-1 trainer-2 trainer-6; do paid $name || fail "$name was not paid"; done
for file in "$T"/pid/*; do stop "$(basename "$file")"; done
# The record that convicts is history like any other: everything still follows from what was signed.
"$RONDO" audit "$RUN" --home "$H" --recompute 1 --json >"$T/audit.json" || fail "audit: $(cat "$T/audit.json")"
"$RONDO" why "$RUN" trainer-8 --home "$H" --json >"$T/why.json" || fail "why: $(cat "$T/why.json")"
grep -q '"round":1,"code":"convicted"' "$T/why.json" || fail "why says nothing of the conviction: $(cat "$T/why.json")"
# Anyone sees what the members saw: the honest contribution is equal, the liar's parts at the step it moved.
"$RONDO" replay "$RUN" 1 "$(did_of trainer-1)" --home "$H" --json >"$T/replay.json" 2>&1 || fail "replay: $(cat "$T/replay.json")"
if "$RONDO" replay "$RUN" 1 "$(did_of trainer-8)" --home "$H" --json >"$T/replay.json" 2>&1; then fail "the liar's replay matches"; fi
grep -q '"match":false,"leaf":2' "$T/replay.json" || fail "replay: $(cat "$T/replay.json")"
# The record that took the liar out is computed again as the members did: from round 1 on, without it.
"$RONDO" replay "$RUN" "$by" --home "$H" --json >"$T/replay.json" 2>&1 || fail "replay of record $by: $(cat "$T/replay.json")"
grep -q '"fold":{"match":true,"rounds":\[1' "$T/replay.json" || fail "no corrected fold: $(cat "$T/replay.json")"
"$RONDO" replay "$RUN" 1 --home "$H" --json >"$T/replay.json" 2>&1 || fail "replay of round 1: $(cat "$T/replay.json")"
grep -q '"removed":true' "$T/replay.json" || fail "the liar is not said to be removed: $(cat "$T/replay.json")"
"$RONDO" replay "$RUN" 1 trainer-1 --home "$H" --json >"$T/replay.json" 2>&1 || fail "replay by name: $(cat "$T/replay.json")"
say "truncated, non_finite, range, mismatch, mismatch; noise convicted; audit and replay agree"
