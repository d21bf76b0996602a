#!/bin/sh
# checkpoint_every = 2: step logs that show the state after every second step and the last. A trainer that moves one element inside of step 2 is
# found by whoever replays it, judged by a replay of each member, and unpaid.
. "$(dirname "$0")/lib/network.sh"

run_file gaps -e 's/checkpoint_every = 1/checkpoint_every = 2/' -e 's/spot_check = 0.3/spot_check = 1/; s/round_ms = 60000/round_ms = 180000/' \
    -e 's/rounds = 3/rounds = 1/' -e 's/min_ms = 1000, max_ms = 20000/min_ms = 20000, max_ms = 30000/'
prepare "$T/gaps.lua"
LEDGER_PORT=0
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
node trainer trainer-1
node trainer trainer-2
PROGRAM=$LIAR LIE=tile node trainer trainer-3
agree syncer-1 syncer-2 syncer-3 syncer-4

last=$(finals syncer-1 | tail -1 | cut -d' ' -f1)
items() { for r in $(seq "$last"); do record "$r" | tr '{' '\n' | grep "\"type\":\"$1\"" || true; done; }
items challenge | grep -q '"code":"upheld"' || fail "no challenge was upheld: $(items challenge)"
if items challenge | grep -q '"code":"rejected"'; then fail "a challenge was rejected: $(items challenge)"; fi
if paid trainer-3; then fail "trainer-3 was paid"; fi
for name in trainer-1 trainer-2; do paid $name || fail "$name was not paid"; done
for file in "$T"/pid/*; do stop "$(basename "$file")"; done
"$RONDO" audit "$RUN" --home "$H" --json >"$T/audit.json" || fail "audit: $(cat "$T/audit.json")"
