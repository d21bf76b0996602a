#!/bin/sh
# An open run: no list says who may come. Trainers lock a stake, a challenger a deposit. One trainer lies in one tile; the challenger shows it. Half of the
# stake is the challenger's, the rest the sponsor's; everybody else has its own back when the run is over. Who has locked nothing is no member.
. "$(dirname "$0")/lib/network.sh"

run_file deposits -e 's/spot_check = 0.3/spot_check = 0, stake = 501, deposit = 300/; s/tier = "known", admission = { mode = "allow-list" }/tier = "open", admission = { mode = "open" }/' \
    -e 's/{ script = "norm_clip" }, { script = "mean" }/{ script = "norm_clip" }, { script = "median" }/; s/trainers = 3, syncers/trainers = 5, syncers/' \
    -e 's/round_ms = 60000/round_ms = 180000/; s/min_ms = 1000, max_ms = 20000/min_ms = 20000, max_ms = 30000/; s/quorum = { trainers = 2/quorum = { trainers = 3/'
prepare "$T/deposits.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
node auditor trainer-4 --deposit
await trainer-4 '"event":"ready"' 60
node trainer trainer-5 # it locks nothing
node trainer trainer-1 --deposit
node trainer trainer-2 --deposit
PROGRAM=$LIAR LIE=tile node trainer trainer-3 --deposit
agree syncer-1 syncer-2 syncer-3 syncer-4

liar=$(did_of trainer-3)
last=$(finals syncer-1 | tail -1 | cut -d' ' -f1)
returned() { for r in $(seq "$last"); do record "$r" | grep -o '"returned":\[{.*' | tr '{' '\n' | sed -n "s/.*\"cause\":\"$1\",\"did\":\"\([^\"]*\)\".*/\1/p"; done; }
[ "$(returned convicted)" = "$liar" ] || fail "convicted: $(returned convicted), not $liar"
[ "$(returned over | sort)" = "$(for n in 1 2 4; do did_of trainer-$n; done | sort)" ] || fail "over: $(returned over)"
record 1 | grep -q "\"did\":\"$(did_of trainer-5)\"" && fail "a trainer without a stake is in round 1"
told=$(grep -h '"event":"deposit_released".*"convicted"' "$T/log/syncer-1")
echo "$told" | grep -q "\"account\":\"[^\"]*\",\"amount\":\"250\"" || fail "no half: $told"
echo "$told" | grep -q "\"account\":\"[^\"]*\",\"amount\":\"251\"" || fail "no rest: $told"
paid trainer-1 && paid trainer-2 || fail "an honest trainer was not paid"
if paid trainer-3; then fail "trainer-3 was paid"; fi
for file in "$T"/pid/*; do [ "$(basename "$file")" = ledger ] || stop "$(basename "$file")"; done
for name in trainer-1:501 trainer-4:300; do # what was locked is there again, and what was earned
    "$RONDO" withdraw --home "$H" --name "${name%:*}" --ledger "$LEDGER" --json >"$T/out" || fail "withdraw ${name%:*}: $(cat "$T/out")"
    [ "$(sed -n 's/.*"balance":"\([0-9]*\)".*/\1/p' "$T/out")" -ge "${name#*:}" ] || fail "${name%:*}: $(cat "$T/out")"
done
stop ledger
"$RONDO" audit "$RUN" --home "$H" --json >"$T/audit.json" || fail "audit: $(cat "$T/audit.json")"
grep -q '"deposits":4' "$T/audit.json" || fail "audit saw other deposits: $(cat "$T/audit.json")"
say "lied, lost 501: 250 to the challenger; 3 deposits came back"
