#!/bin/sh
# Two runs of one spec, one computed by a program that moves one element inside of one step: `rondo bisect` names the round, the step, the
# operator and the tile; the same run twice is equal.
. "$(dirname "$0")/lib/network.sh"

run_file bisect -e 's/rounds = 3/rounds = 1/; s/budget = "3000"/budget = "1000"/; s/min_ms = 1000/min_ms = 20000/'
one() { # HOME LIE PROGRAM
    RONDO_LIE=$2 "$3" local "$T/bisect.lua" --home "$T/$1" --ledger-seed bisect --quiet --json >"$T/$1.json" || fail "the run $1: $(cat "$T/$1.json")"
}
one a "" "$RONDO"
one b tile "$LIAR"

"$RONDO" bisect "$T/a" "$T/a" --json >"$T/out" || fail "the same run is not equal: $(cat "$T/out")"
grep -q '"equal":true' "$T/out" || fail "the same run: $(cat "$T/out")"

# differs WORD...: bisect ends with status 1
differs() {
    status=0
    "$RONDO" bisect "$T/a" "$T/b" --json "$@" >"$T/out" 2>&1 || status=$?
    [ $status = 1 ] || fail "status $status: $(cat "$T/out")"
    grep -q '"round":1,"what":"step".*"leaf":2,"where":"loss"' "$T/out" || fail "no step: $(cat "$T/out")"
}
differs
grep -q '"operator":null' "$T/out" || fail "an operator without the program that computed it: $(cat "$T/out")"
RONDO_LIE=tile differs --program-b "$LIAR"
grep -q '"traces":{"a":"computed","b":"computed"}' "$T/out" || fail "no traces: $(cat "$T/out")"
grep -q '"operator":"[^"]*"' "$T/out" && grep -q '"entry":[0-9]*,"tile":[0-9]*' "$T/out" || fail "no operator and tile: $(cat "$T/out")"
say "$(sed 's/.*"leaf"/"leaf"/' "$T/out" | tr -d '}')"

# What cannot be compared is refused by name.
sed -i 's/inner_steps = 3/inner_steps = 2/; s/answer_rounds = 1,/answer_rounds = 2,/' "$T/bisect.lua"
one c "" "$RONDO"
status=0
"$RONDO" bisect "$T/a" "$T/c" --json >"$T/out" 2>&1 || status=$?
[ $status = 3 ] && grep -q "the specs differ: schedule.options.inner_steps: 3, 2; trust.answer_rounds: 1, 2" "$T/out" || fail "other spec: status $status: $(cat "$T/out")"
