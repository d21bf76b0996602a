#!/bin/sh
# inner = "keep" with feedback: what a trainer keeps from one round goes into its next contribution. A member that has to replay one is shown
# it, and an auditor asks for it; a trainer that moves one element of the first step that reads what it kept is convicted by that tile.
. "$(dirname "$0")/lib/network.sh"

kept='schedule = { script = "sparse", options = { inner_steps = 2, ["rate.peak"] = 0.003 } },'
run_file carry -e "s/schedule = .*/$kept/" -e 's/outer = {.*/outer = { script = "sgd" },/' \
    -e 's/aggregators = .*/aggregators = { { script = "sparse_mean" } },/' -e 's/spot_check = 0.3/spot_check = 1/; s/round_ms = 60000/round_ms = 180000/' \
    -e 's/min_ms = 1000, max_ms = 20000/min_ms = 20000, max_ms = 30000/'
prepare "$T/carry.lua"
LEDGER_PORT=0
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
node trainer trainer-1
node trainer trainer-2
PROGRAM=$LIAR LIE=first node trainer trainer-3
agree syncer-1 syncer-2 syncer-3 syncer-4

liar=$(did_of trainer-3)
last=$(finals syncer-1 | tail -1 | cut -d' ' -f1)
items() { for r in $(seq "$last"); do record "$r" | tr '{' '\n' | grep "\"type\":\"$1\"" || true; done; }
record 3 | grep -q '"carry":{"object":"' || fail "record 3 keeps nothing"
items pick | grep -q '"code":"upheld"' || fail "no pick was upheld: $(items challenge; items opening; items pick)"
if items challenge | grep -q '"code":"rejected"'; then fail "an honest trainer was challenged: $(items challenge)"; fi
if grep -h '"event":"released"' "$T"/log/syncer-* | grep '"round":2' | grep -q "$liar"; then fail "trainer-3 was paid for round 2"; fi
for name in trainer-1 trainer-2; do paid $name || fail "$name was not paid"; done
for file in "$T"/pid/*; do stop "$(basename "$file")"; done
said=$(grep -h '"event":"dispute"' "$T"/log/syncer-* | grep '"move":"pick"' | head -1)
echo "$said" | grep -q '"leaf":1,' || fail "not of the first step: $said"
"$RONDO" replay "$RUN" 3 --home "$H" --json >"$T/replay.json" 2>&1 || fail "replay of round 3: $(cat "$T/replay.json")"
"$RONDO" audit "$RUN" --home "$H" --json >"$T/audit.json" || fail "audit: $(cat "$T/audit.json")"
say "leaf 1 of round 2 of $liar: $(echo "$said" | grep -o '"operator":"[^"]*"')"
