#!/bin/sh
# Two of four syncers gone: the round waits, and goes on when one is back. A trainer that never answers; too few contributions: a skip
# record carries the state, pays nobody, and the run goes on. A member that votes for a record of its own; one that proposes two records:
# the others go on, and the two proposals end as evidence.
. "$(dirname "$0")/lib/network.sh"

run_file few -e 's/trainers = 3, syncers/trainers = 2, syncers/' -e 's/round_ms = 60000/round_ms = 6000/' -e 's/max_ms = 20000/max_ms = 3000/'
prepare "$T/few.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3; do node syncer $name; done
PROGRAM=$LIAR LIE=propose node syncer syncer-4
node trainer trainer-1
PROGRAM=$LIAR LIE=silent node trainer trainer-2
await syncer-1 '"event":"final".*"round":1,"kind":"skip"' 120
crash syncer-2
crash syncer-3
decided=$(count syncer-1 '"event":"final"')
crash trainer-2
node trainer trainer-2
sleep 8
[ "$(count syncer-1 '"event":"final"')" -le $((decided + 1)) ] || fail "two of four decided a round"
decided=$(count syncer-1 '"event":"final"')
node syncer syncer-2
await syncer-1 '"event":"final"' 60 $((decided + 1))
say "two of four waited, three went on"
PROGRAM=$LIAR LIE=vote node syncer syncer-3
for name in syncer-1 syncer-2; do await $name '"event":"done"' 180; done
finals syncer-1 | grep -q '^[23] train' || fail "no round was trained: $(finals syncer-1)"
before=$(finals syncer-1 | sed -n 's/^0 open //p') after=$(finals syncer-1 | sed -n 's/^1 skip //p')
[ "$before" = "$after" ] || fail "a skipped round changed the state: $before $after"
if grep -h '"event":"released"' "$T"/log/syncer-* | grep -q '"round":1,'; then fail "a skipped round was paid"; fi
"$B/tests/rondo_statements" "$H" >"$T/statements" || true
grep -q 'two statements' "$T/statements" && fail "$(cat "$T/statements")"
cat "$T/statements"
