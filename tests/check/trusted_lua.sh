#!/bin/sh
# A trusted Lua file has the bindings and its arguments; its errors are the program's.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

cat >"$work/all.lua" <<'L'
assert(rondo.version and rondo.kernel_class == "portable-f32-1")
assert(arg[1] == "one" and select("#", ...) == 2)
local t = rondo.tokenizer("models/pocket")
local text = "The price of tea, 12.5 <|im_end|>"
assert(t:decode(t:encode(text)) == text)
assert(rondo.render("{% for x in list %}{{ x }};{% endfor %}", [[{"list": [1, "b"]}]]) == "1;b;")
local meta = rondo.script_describe("chat_sft", [[{"prompt_weight": "0.5"}]])
assert(meta:find('"kind":"objective"', 1, true) and meta:find("0.5", 1, true))
assert(rondo.script_check("mean"):find('"graphs":', 1, true))
assert(not pcall(rondo.script_check, "no such script"))
assert(not pcall(rondo.render, "{% if %}"))
assert(not pcall(rondo.tokenizer, "no such model"))
print("all bindings hold")
L
expect 0 "^all bindings hold$" lua "$work/all.lua" one -- --two
echo 'error("on purpose")' >"$work/bad.lua"
expect 3 "bad.lua:1: on purpose" lua "$work/bad.lua"
echo 'x = = 1' >"$work/syntax.lua"
expect 3 "syntax.lua:1: unexpected symbol" lua "$work/syntax.lua"
expect 3 "absent.lua" lua "$work/absent.lua"
