#!/bin/sh
# watch.sh: somebody who knows one URL sees phases, records, losses and payments of a run until it is over.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
local=
trap '[ -z "$local" ] || kill $local 2>/dev/null || true; wait; rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; tail -3 "$work"/out "$work"/log 2>/dev/null; exit 1; }

"$rondo" watch --home "$work/home" --once >"$work/out" 2>&1 && fail "an empty home"
grep -q "no node runs" "$work/out" || fail "an empty home: another message"
"$rondo" local tests/end_to_end/tiny.lua --home "$work/home" --quiet --json >"$work/local" 2>"$work/log" &
local=$!
for _ in $(seq 300); do
    url=$(sed -n 's/.*"endpoint":"\([^"]*\)".*"role":"syncer".*/\1/p' "$work"/home/nodes/syncer-1/running.json 2>/dev/null || true)
    [ -z "$url" ] || break
    sleep 0.1
done
[ -n "$url" ] || fail "no syncer runs"
"$rondo" watch "$url" --every 1 --json >"$work/out" 2>>"$work/log" || true # it ends when the run is over, or with its nodes
"$rondo" watch --home "$work/home" --once >"$work/text" 2>/dev/null || true
wait $local || fail "the run"
local=
luajit - "$work/out" "$work/local" <<'L' || fail "what was seen"
local json = require "cjson"
local function lines(path)
    local list = {}
    for line in io.lines(path) do list[#list + 1] = json.decode(line) end
    return list
end
local looks, finish, last, phases = lines(arg[1]), lines(arg[2]), nil, {}
finish = finish[#finish]
local roles, seen = { syncer = 0, trainer = 0, sponsor = 0 }, 0
for _, look in ipairs(looks) do
    if look.rounds then last = look end
    for _, node in ipairs(look.nodes or {}) do
        if node.role == "syncer" then phases[node.phase] = true end
    end
end
assert(last.run == finish.run and last.rounds_planned == 3)
for _, node in ipairs(last.nodes) do roles[node.role] = roles[node.role] + 1 end
assert(roles.syncer == 4 and roles.trainer == 3)
for _, r in ipairs(last.rounds) do
    if r.kind == "train" then
        assert(r.accepted >= 1 and r.loss > 0 and r.loss < 10)
        seen = seen + 1
    end
end
assert(seen > 0)
for did, amount in pairs(last.paid) do assert(tonumber(amount) <= tonumber(finish.paid[did])) end
local count = 0
for _ in pairs(phases) do count = count + 1 end
assert(count >= 2)
L
echo "a run was watched to its end"
