#!/bin/sh
# fragments.sh: each round exchanges the tensors of every second layer; what a trainer did to the others it takes along. Every contribution is replayed by
# a member, who is shown that; rounds are folded and audited again.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

streaming='"streaming", options = { fragments = 2, period = 4, overlap = OVERLAP, ["rate.peak"] = 0.003'
make() {
    sed -e "s|schedule = .*|schedule = { script = $(echo "$streaming" | sed "s/OVERLAP/$2/") } },|" -e 's|spot_check = 0.3|spot_check = 1|' \
        -e 's|min_ms = 1000, max_ms = 20000|min_ms = 15000, max_ms = 20000|; s|trainers = 3, syncers = 4|trainers = 2, syncers = 4|' \
        -e 's|close_ms = 1500|close_ms = 15000|' tests/end_to_end/tiny.lua >"$work/$1.lua"
}

make whole 0
"$rondo" local "$work/whole.lua" --home "$work/home" --ledger-seed fragments --quiet --json >"$work/out" || fail "the run: $(cat "$work/out")"
result=$(tail -1 "$work/out")
for round in 1 2 3; do
    echo "$result" | grep -q "\"round\":$round,\"status\":\"final\",\"accepted\":2" || fail "round $round: two contributions were expected: $result"
done
id=$(echo "$result" | sed 's/.*"run":"\([^"]*\)".*/\1/')

payload() { # of trainer-1's contributions, decoded: base 64 of JSON
    for file in "$work"/home/nodes/syncer-1/documents/*; do
        sed -n 's/.*"payload":"\([^"]*\)","payloadType":"application\/vnd.rondo.contribution+json".*/\1/p' "$file" | base64 -d 2>/dev/null || true
        echo
    done | grep "\"round\":$1," | sed -n 's/.*"fragment":\([0-9]*\).*"payload_bytes":\([0-9]*\).*/\1 \2/p' | sort -u
}
[ "$(payload 1 | cut -d' ' -f1)" = 1 ] || fail "round 1 sends fragment $(payload 1)"
[ "$(payload 2 | cut -d' ' -f1)" = 0 ] || fail "round 2 sends fragment $(payload 2)"
[ "$(payload 1)" = "$(payload 3)" ] || fail "rounds 1 and 3 send other bytes: $(payload 1), $(payload 3)"
whole=$("$rondo" run check tests/end_to_end/tiny.lua --no-measure --home "$work/check" --json | sed 's/.*"payload_at_most":\([0-9]*\).*/\1/')
part=$("$rondo" run check "$work/whole.lua" --no-measure --home "$work/check" --json | sed 's/.*"payload_at_most":\([0-9]*\).*/\1/')
sent=$(payload 1 | cut -d' ' -f2)
[ "$sent" -le "$part" ] && [ $((part * 10)) -lt $((whole * 6)) ] || fail "of $whole bytes, $part were told and $sent were sent"
for round in 1 2 3; do expect 0 "" replay "$id" $round --home "$work/home"; done
expect 0 "" replay "$id" 3 trainer-1 --home "$work/home"
expect 0 "" audit "$id" --home "$work/home"

make late 1
expect 3 "a plan with \`apply_at\`" run check "$work/late.lua" --no-measure --home "$work/late"
echo "  $sent bytes a round of $whole; every contribution replayed, with what it took along"
