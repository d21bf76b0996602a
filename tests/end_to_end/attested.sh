#!/bin/sh
# A run with admission "attested": a trainer that shows nothing of its hardware, or what does not stand, learns at its start why it cannot come, and
# what to do. What stands needs hardware; what members do with it: unit/hardware_test.c.
. "$(dirname "$0")/lib/network.sh"

run_file attested -e 's/tier = "known", admission = { mode = "allow-list" }/tier = "known", admission = { mode = "attested" }/'
prepare "$T/attested.lua"
ledger
sponsor

# refused PATTERN OPTION...: a trainer with these options ends with status 3, and says that.
refused() {
    pattern=$1 status=0
    shift
    timeout 120 "$RONDO" trainer "$RUN" --home "$H" --name trainer-1 --ledger "$LEDGER" --peer "$PEER" --threads 1 "$@" >"$T/out" 2>&1 || status=$?
    [ "$status" = 3 ] || fail "status $status: $(cat "$T/out")"
    grep -q -- "$pattern" "$T/out" || fail "nothing like $pattern: $(cat "$T/out")"
}
refused "takes only machines that show evidence of their hardware (rondo attest data"
refused "evidence.json: evidence: certificates\[2\]: ARK-Genoa is no root that is pinned here" --evidence tests/fuzz/corpus/attest/evidence.json
echo '{"kind":"tdx"}' >"$T/tdx.json"
refused "tdx.json: evidence: kind: tdx: not verified by this version" --evidence "$T/tdx.json"
refused "No such file\|missing\|cannot\|not there" --evidence "$T/nowhere.json"
status=0
"$RONDO" trainer --auto "$T/tdx.json" --evidence "$T/tdx.json" --home "$H" >"$T/out" 2>&1 || status=$?
[ "$status" = 2 ] && grep -q "evidence is of one run" "$T/out" || fail "--auto: $(cat "$T/out")"

# What the machine is to be asked for is of this run and this key.
data() { "$RONDO" attest data "$RUN" --home "$H" --name "$1"; }
[ "$(data trainer-1 | tr -d '0-9a-f\n' | wc -c)" = 0 ] && [ "$(data trainer-1 | wc -c)" = 129 ] || fail "attest data: $(data trainer-1)"
[ "$(data trainer-1)" != "$(data trainer-2)" ] || fail "two keys have one"
"$RONDO" attest data "$RUN" --home "$H" --name trainer-1 --out "$T/request.bin" >"$T/digits"
[ "$(od -An -v -tx1 "$T/request.bin" | tr -d ' \n')" = "$(cat "$T/digits")" ] || fail "the file holds other bytes"
status=0
"$RONDO" attest verify tests/fuzz/corpus/attest/evidence.json >"$T/out" 2>&1 || status=$?
[ "$status" = 1 ] && grep -q "no root that is pinned" "$T/out" || fail "verify: $status $(cat "$T/out")"
dd if=tests/fuzz/corpus/attest/genoa of="$T/report.bin" bs=1184 count=1 2>/dev/null
status=0
"$RONDO" attest pack "$T/report.bin" "$T/report.bin" >"$T/out" 2>&1 || status=$?
[ "$status" = 3 ] && grep -q "1 certificates, 3 are needed (give VCEK, ASK and ARK" "$T/out" || fail "pack: $status $(cat "$T/out")"
say "who shows nothing, or what does not stand, is told why"
