#!/bin/sh
# A run on rollouts: a trainer who gives itself rewards, and one who draws other completions than the seed gives. Both are consistent in all they
# say, and folded; a drawn replay finds the first batch that is not what the seed gives, and they are challenged, convicted, taken out by
# folding again, unpaid. What they committed to is not what anyone draws again.
. "$(dirname "$0")/lib/network.sh"

run_file rewards -e 's/script = "chat_sft"/script = "grpo", options = { samples = 4, max_tokens = 8, temperature = 1.5 }/' \
    -e 's/    inner = /    reward = { script = "close_match" },\n    inner = /' -e 's/batch_tokens = 448/batch_tokens = 512/' \
    -e 's/context = 448/context = 128/' -e 's/pocket.tools.held_out/pocket\/first_word\/held_out/' -e 's/trainers = 3, syncers/trainers = 4, syncers/' \
    -e 's/spot_check = 0.3/spot_check = 1/' -e 's/min_ms = 1000, max_ms = 20000/min_ms = 15000, max_ms = 40000/'
prepare "$T/rewards.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
node trainer trainer-1
node trainer trainer-2
PROGRAM=$LIAR LIE=rewards node trainer trainer-3
PROGRAM=$LIAR LIE=tokens node trainer trainer-4
agree syncer-1 syncer-2 syncer-3 syncer-4

# The challenge is due within two records: under load a replay may end after record 2.
for name in trainer-1 trainer-2 trainer-3 trainer-4; do expect_code 1 $name ok; done
for name in trainer-3 trainer-4; do
    (record 2 && record 3) | tr '{' '\n' | grep "\"did\":\"$(did_of $name)\"" | grep -q '"round":1}' ||
        fail "$name was not convicted: $(record 3 | cut -c1-1500)"
    if paid $name; then fail "$name was paid"; fi
done
for name in trainer-1 trainer-2; do paid $name || fail "$name was not paid"; done
for file in "$T"/pid/*; do stop "$(basename "$file")"; done
"$RONDO" audit "$RUN" --home "$H" --json >"$T/audit.json" || fail "audit: $(cat "$T/audit.json")"
for name in trainer-3 trainer-4; do
    if "$RONDO" replay "$RUN" 1 "$(did_of $name)" --home "$H" --json >"$T/replay.json" 2>&1; then fail "the replay of $name matches"; fi
    grep -q '"match":false,"leaf":1,"where":"batch"' "$T/replay.json" || fail "replay: $(cat "$T/replay.json")"
    if "$RONDO" rollouts "$RUN" 1 "$(did_of $name)" --home "$H" --json >"$T/rollouts.json" 2>&1; then fail "the rollouts of $name match"; fi
done
"$RONDO" rollouts "$RUN" 1 "$(did_of trainer-1)" --batches 0 --home "$H" --json >"$T/rollouts.json" || fail "rollouts: $(head -c 500 "$T/rollouts.json")"
grep -q '"reward":' "$T/rollouts.json" || fail "no rewards: $(head -c 500 "$T/rollouts.json")"
say "rewards and tokens convicted and unpaid; honest rollouts are read again as committed"
