#!/bin/sh
# A round that no view below n decides ends as a forced skip: two syncers of four neither hear nor send the proposals of views 0 to 3 of round 1.
# All decide the same skip, the run goes on, and audit and replay read it.
. "$(dirname "$0")/lib/network.sh"

run_file forced -e 's/view_ms = 1000/view_ms = 500/' -e 's/trainers = 3, syncers/trainers = 2, syncers/'
prepare "$T/forced.lua"
ledger
sponsor
for name in syncer-1 syncer-2; do node syncer $name; done
for name in syncer-3 syncer-4; do PROGRAM=$LIAR LIE=late node syncer $name; done
for name in trainer-1 trainer-2; do node trainer $name; done
agree syncer-1 syncer-2 syncer-3 syncer-4
record 1 | grep -q '"kind":"skip".*"reason":"forced"' || fail "round 1 is no forced skip: $(record 1 | cut -c1-1500)"
finals syncer-1 | grep -q '^2 train' || fail "the run did not go on: $(finals syncer-1)"
for name in syncer-1 syncer-2 syncer-3 syncer-4 trainer-1 trainer-2 sponsor ledger; do stop $name; done

"$RONDO" audit "$RUN" --home "$H" --recompute 1 --quiet --json >"$T/audit" || fail "audit: $(cat "$T/audit")"
grep -q '"ok":true' "$T/audit" || fail "audit: $(cat "$T/audit")"
"$RONDO" replay "$RUN" 1 --home "$H" --quiet >"$T/replay" 2>&1 || fail "replay of the skip: $(cat "$T/replay")"
grep -q '^round 1  skip' "$T/replay" || fail "replay of the skip tells: $(cat "$T/replay")"
"$RONDO" replay "$RUN" 2 --home "$H" --quiet --json >"$T/replay" 2>&1 || fail "replay after the skip: $(cat "$T/replay")"
grep -q '"match":true' "$T/replay" || fail "replay after the skip: $(cat "$T/replay")"
say "round 1 was skipped by force: audited and replayed"
