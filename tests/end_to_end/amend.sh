#!/bin/sh
# The sponsor pauses a run, lets it go on and ends it early: each holds from two records after the one that lists it, paused rounds and those that
# never came pay nobody, and their escrows go back when they expire, not before. What the spec does not mark is refused.
. "$(dirname "$0")/lib/network.sh"

run_file amend -e 's/rounds = 3/rounds = 14/; s/budget = "3000"/budget = "14000"/; s/spot_check = 0.3/spot_check = 0/' \
    -e 's/round_ms = 60000/round_ms = 6000/; s/min_ms = 1000, max_ms = 20000/min_ms = 1000, max_ms = 5000/; s/expiry_rounds = 20/expiry_rounds = 9/' \
    -e 's/context = 448,/context = 448, amendable = { "end", "pause", "quorum.trainers" },/'
prepare "$T/amend.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
for name in trainer-1 trainer-2 trainer-3; do node trainer $name; done
await syncer-1 '"event":"final".*"round":1,' 120
PEER=$(sed -n 's/.*"endpoint":"\([^"]*\)".*/\1/p' "$T/log/syncer-1" | head -1)

# amend STATUS WORD OPTION...: the command ends so and says the word
amend() {
    want=$1 word=$2
    shift 2
    status=0
    "$RONDO" run amend "$RUN" --home "$H" --peer "$PEER" --json "$@" >"$T/out" 2>&1 || status=$?
    [ $status = "$want" ] && grep -q -- "$word" "$T/out" || fail "run amend $*: status $status, not $want with $word: $(cat "$T/out")"
}
field() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$T/out"; }

amend 2 "say what changes"
amend 3 "does not mark such a change" --spot-check 0.5
amend 3 "only the sponsor's key" --pause --name trainer-1
amend 3 "two records ahead" --pause --from 2
amend 0 '"record":[0-9]' --pause
paused=$(field from)
await syncer-1 "\"event\":\"final\".*\"round\":$paused,\"kind\":\"skip\"" 120
amend 0 '"record":[0-9]' --resume --quorum 3
resumed=$(field from)
await syncer-1 "\"event\":\"final\".*\"round\":$resumed,\"kind\":\"train\"" 120
amend 0 '"record":[0-9]' --end
ended=$(field from)
agree syncer-1 syncer-2 syncer-3 syncer-4
for r in $(seq 14); do
    kind=$(finals syncer-1 | sed -n "s/^$r \([a-z]*\).*/\1/p")
    if [ "$r" -ge "$ended" ]; then want=close; elif [ "$r" -ge "$paused" ] && [ "$r" -lt "$resumed" ]; then want=skip; else want=train; fi
    [ "$r" -lt "$ended" ] || [ -n "$kind" ] || continue # after the last settlement there is no round
    [ "$kind" = $want ] || fail "round $r is $kind, not $want: paused from $paused to $resumed, ended from $ended: $(finals syncer-1)"
done
record "$paused" | grep -q '"reason":"paused"' || fail "round $paused: $(record "$paused" | cut -c1-300)"
for name in trainer-1 trainer-2 trainer-3; do await $name '"event":"done"' 60; done
"$RONDO" run refund "$RUN" --home "$H" --ledger "$LEDGER" --json >"$T/out" 2>&1 && fail "a running sponsor's folder: $(cat "$T/out")"
stop sponsor
"$RONDO" run refund "$RUN" --home "$H" --ledger "$LEDGER" --json >"$T/out" 2>&1 || true
grep -q '"waiting":\[{' "$T/out" || fail "nothing waits for its expiry: $(cat "$T/out")"
for file in "$T"/pid/*; do stop "$(basename "$file")"; done
"$RONDO" audit "$RUN" --home "$H" --json >"$T/audit.json" || fail "audit: $(cat "$T/audit.json")"
say "paused from round $paused to $resumed, ended before $ended; $(grep -o '"payouts":[0-9]*\|"unpaid":[0-9]*' "$T/audit.json" | tr '\n' ' ')"
