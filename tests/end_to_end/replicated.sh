#!/bin/sh
# The replicated tier with real processes: each shard goes to two machines, which commit before anything is shown. One trainer gives what honest
# training does not, one has nothing of its own and takes what another shows: neither is paid, the first is convicted by the replay that its
# group's disagreement brings about. What is accepted was given by two machines at least, and everything follows from what was signed.
. "$(dirname "$0")/lib/network.sh"

run_file replicated -e 's/trainers = 3, syncers/trainers = 6, syncers/' -e 's/tier = "known"/tier = "replicated"/' -e 's/replicas = 1/replicas = 2/' \
    -e 's/shards = 4/shards = 6/' -e 's/spot_check = 0.3/spot_check = 0/' -e 's/quorum = { trainers = 2/quorum = { trainers = 1/' \
    -e 's/max_ms = 20000/max_ms = 10000/' -e 's/rounds = 3,/rounds = 4,/' -e 's/budget = "3000"/budget = "4000"/'
prepare "$T/replicated.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
for name in trainer-1 trainer-2 trainer-3 trainer-4; do node trainer $name; done
PROGRAM=$LIAR LIE=noise node trainer trainer-5
PROGRAM=$LIAR LIE=copied RONDO_LIE_FROM=$H/nodes/trainer-1 node trainer trainer-6
agree syncer-1 syncer-2 syncer-3 syncer-4

# contributions ROUND: "did code group" of each line of its record.
contributions() {
    record "$1" | tr '{' '\n' | sed -n 's/.*"body":.*"code":"\([a-z_]*\)","did":"\([^"]*\)","group":"\([^"]*\)".*/\2 \1 \3/p'
}
liar=$(did_of trainer-5) copier=$(did_of trainer-6)
trained=0
for round in 1 2 3 4; do
    contributions $round >"$T/lines"
    if grep -q "^$liar ok" "$T/lines"; then fail "a lie was accepted in round $round"; fi
    if grep -q "^$copier ok" "$T/lines"; then fail "a copy was accepted in round $round"; fi
    # An accepted line has a partner with the same group.
    awk '$2 == "ok" { n[$3]++ } END { for (g in n) if (n[g] < 2) exit 1 }' "$T/lines" || fail "round $round accepts what one machine alone gave: $(cat "$T/lines")"
    if grep -q ' ok ' "$T/lines"; then trained=$((trained + 1)); fi
done
[ $trained -ge 2 ] || fail "$trained rounds accepted anything"
last=$(finals syncer-1 | tail -1 | cut -d' ' -f1)
for r in $(seq "$last"); do record "$r"; done | grep -q "\"convicted\":\[{\"did\":\"$liar\"" || fail "the liar is not convicted"
for name in trainer-5 trainer-6; do if paid $name; then fail "$name was paid"; fi; done
for name in trainer-1 trainer-2 trainer-3 trainer-4; do paid $name || fail "$name was not paid"; done
for file in "$T"/pid/*; do stop "$(basename "$file")"; done
"$RONDO" audit "$RUN" --home "$H" --recompute 1 --json >"$T/audit.json" || fail "audit: $(cat "$T/audit.json")"
"$RONDO" why "$RUN" trainer-5 --home "$H" --json >"$T/why.json" || fail "why: $(cat "$T/why.json")"
say "$trained rounds accepted what two machines gave; the liar is convicted, the copy was never taken"
