#!/bin/sh
# Runs on preferences, images and series learn, and what was trained is computed again to the same bits.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# learns RUN ROUNDS TEST: TEST is a Lua expression over before and after.
learns() {
    sed -e "s/^    rounds = [0-9]*,/    rounds = $2,/" "scripts/runs/$1.lua" >"$work/$1.lua"
    "$rondo" local "$work/$1.lua" --home "$work/$1" --ledger-seed k --json >"$work/$1.json"
    luajit -e '
        local text = io.read("*a")
        local function of(state, name) return tonumber(text:match("\"" .. state .. "\":{.-\"" .. name .. "\":(-?[%d.e-]+)")) end
        local before = setmetatable({}, { __index = function(_, k) return of("before", k) end })
        local after = setmetatable({}, { __index = function(_, k) return of("after", k) end })
        assert('"$3"', text)' <"$work/$1.json"
    "$rondo" replay "$(sed -n 's/.*"run":"\([^"]*\)".*/\1/p' "$work/$1.json")" 1 --home "$work/$1" --json >/dev/null
}

learns dpo_pocket 1 'math.abs(before.loss - math.log(2)) < 1e-3 and after.loss < 0.6'
learns vit_shapes 2 'before.loss > 1.2 and after.loss < 1.2'
learns waves_forecast 1 'before.loss > 0.4 and after.loss < before.loss * 0.8'

# Rows of another kind are refused by name: no round is accepted, and none is waited for long.
sed -e 's#models/shapes/#models/waves/#; s/^    rounds = [0-9]*,/    rounds = 2,/; s/round_ms = [0-9]*, close_ms = [0-9]*/round_ms = 3000, close_ms = 500/' \
    -e 's/min_ms = [0-9]*, max_ms = [0-9]*/min_ms = 1000, max_ms = 2000/' scripts/runs/vit_shapes.lua >"$work/other.lua"
"$rondo" local "$work/other.lua" --home "$work/other" 2>"$work/other.err" && exit 1
grep -q 'a row of series, the objective reads images' "$work/other.err"
echo "kinds: preferences, images and series learn and replay"
