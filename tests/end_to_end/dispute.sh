#!/bin/sh
# A trainer that moves one element inside of one step, and tells consistently what it then computed. Whoever replays it finds the first wrong
# leaf: an auditor that trusts nobody (`rondo audit --recompute 1 --peer`, which verifies the run so far first), in a run that draws no spot checks, then a member of the committee. Challenge, opening and pick follow;
# every member computes that one tile, and the trainer is convicted, removed by folding again and unpaid.
. "$(dirname "$0")/lib/network.sh"

items() { for r in $(seq "$last"); do record "$r" | tr '{' '\n' | grep "\"type\":\"$1\"" || true; done; }

# One run file for a way of correction; what follows from the seed (keys, run id, seeds, assignments) is the same in each home of it.
write_run() { # SPOT_CHECK CORRECTION
    run_file dispute -e "s/spot_check = 0.3/spot_check = $1/; s/round_ms = 60000/round_ms = 180000/" -e 's/trainers = 3, syncers/trainers = 4, syncers/' \
        -e 's/min_ms = 1000, max_ms = 20000/min_ms = 12000, max_ms = 16000/' -e "s/correction = \"refold\"/correction = \"$2\"/"
}

# found SPOT_CHECK LOG HOW CORRECTION: with this share of spot checks the lie is found by whoever writes LOG; trainer-4 files by `challenge` or `audit`
found() {
    rm -rf "$H" "$T/log" && mkdir "$T/log"
    write_run "$1" "$4"
    prepare "$T/dispute.lua"
    LEDGER_PORT=0
    ledger
    sponsor
    for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
    node trainer trainer-1
    node trainer trainer-2
    PROGRAM=$LIAR LIE=tile node trainer trainer-3
    if [ "$3" = audit ]; then node audit trainer-4 --recompute 1; else node challenge trainer-4 1 trainer-3; fi
    agree syncer-1 syncer-2 syncer-3 syncer-4

    status=0
    wait "$(pid_of trainer-4)" || status=$?
    [ $status = "$([ "$3" = audit ] && echo 1 || echo 0)" ] || fail "rondo $3: $status $(tail -1 "$T/log/trainer-4") $(cat "$T/log/trainer-4.err")"
    grep -q '"verdict":"convicted"' "$T/log/trainer-4" || fail "no verdict: $(tail -3 "$T/log/trainer-4")"
    liar=$(did_of trainer-3)
    last=$(finals syncer-1 | tail -1 | cut -d' ' -f1)
    items challenge | grep -q '"code":"ok"' || fail "no challenge opened a dispute"
    items opening | grep "\"did\":\"$liar\"" | grep -q '"code":"ok"' || fail "the trainer's opening was not taken"
    items pick | grep -q '"code":"upheld"' || fail "no pick was upheld: $(items pick)"
    by=0
    for r in $(seq "$last"); do
        if [ $by = 0 ] && record "$r" | tr '{' '\n' | grep "\"did\":\"$liar\"" | grep -q "\"round\":1}"; then by=$r; fi
    done
    [ $by != 0 ] || fail "nobody convicted"
    if paid trainer-3; then fail "trainer-3 was paid"; fi
    for name in trainer-1 trainer-2; do paid $name || fail "$name was not paid"; done
    for file in "$T"/pid/*; do stop "$(basename "$file")"; done

    # The verdict names operator and tile, and the documents are small.
    said=$(grep -h '"event":"dispute"' "$T"/log/$2 | grep '"move":"pick"' | head -1)
    echo "$said" | grep -q '"operator":"[^"]*"' || fail "no verdict: $said"
    opened=$(grep -h '"event":"dispute"' "$T/log/trainer-3" | head -1 | grep -o '"bytes":[0-9]*' | cut -d: -f2)
    picked=$(echo "$said" | grep -o '"bytes":[0-9]*' | cut -d: -f2)
    [ $((opened + picked)) -lt 2097152 ] || fail "opening and pick have $opened and $picked bytes"

    # The state after the conviction is the fold of what was never taken out, bit for bit.
    "$RONDO" replay "$RUN" $by --home "$H" --json >"$T/replay.json" 2>&1 || fail "replay of record $by: $(cat "$T/replay.json")"
    grep -q '"fold":{"match":true,"rounds":\[1' "$T/replay.json" || fail "no corrected fold: $(cat "$T/replay.json")"
    "$RONDO" audit "$RUN" --home "$H" --json >"$T/audit.json" || fail "audit: $(cat "$T/audit.json")"
    corrected=$(finals syncer-1 | sed -n "s/^$by [a-z]* //p")
    [ "$(code_of 1 trainer-1) $(code_of 1 trainer-2) $(code_of 1 trainer-3)" = "ok ok ok" ] || fail "round 1 has not all three: $(record 1 | cut -c1-900)"
    say "$2: leaf $(echo "$said" | grep -o '"leaf":[0-9]*' | cut -d: -f2), $(echo "$said" | grep -o '"operator":"[^"]*"\|"entry":[0-9]*\|"tile":[0-9]*' | tr '\n' ' ')convicted in record $by; opening $opened and pick $picked bytes"
}

found 0 trainer-4 audit refold
found 1 'syncer-*' challenge rollback

# The same run in which the liar enrols and never says anything: nobody ever saw its work. With `rollback` the corrected state is that run's, bit for bit.
run=$RUN
rm -rf "$H" "$T/log" && mkdir "$T/log"
prepare "$T/dispute.lua"
[ "$RUN" = "$run" ] || fail "another run: $RUN"
LEDGER_PORT=0
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
node auditor trainer-4 --share 0
node trainer trainer-1
node trainer trainer-2
PROGRAM=$LIAR LIE=die/training/1 node trainer trainer-3
await syncer-1 '"event":"final".*"round":1,' 180
[ "$(code_of 1 trainer-1) $(code_of 1 trainer-2) $(code_of 1 trainer-3)" = "ok ok " ] || fail "the clean round 1: $(record 1 | cut -c1-900)"
clean=$(finals syncer-1 | sed -n 's/^1 train //p')
[ "$clean" = "$corrected" ] || fail "corrected $corrected, the run that never saw the lie $clean"
say "rolled back to the state of the run that never saw the lie, $clean"
