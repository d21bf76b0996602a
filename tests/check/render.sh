#!/bin/sh
# `rondo render` prints what the template makes and nothing else; a raise and what is not offered end with status 3.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

printf '{{ messages[0].content }}{{ strftime_now("%%Y-%%m-%%d") }}' >"$work/t"
printf '{"messages": [{"role": "user", "content": "h\\u00e9"}]}' >"$work/c"
[ "$("$rondo" render --template "$work/t" --context "$work/c" --date 2026-02-03)" = "hé2026-02-03" ] || fail "another rendering"
expect 2 "no date" render --template "$work/t" --context "$work/c" --date tomorrow
printf 'a\n{{ raise_exception("roles must alternate") }}' >"$work/t"
expect 3 "line 2: roles must alternate (the template refuses this context" render --template "$work/t" --context "$work/c"
[ ! -s "$work/out" ] || fail "something is printed before the raise"
printf '{%% include "x" %%}' >"$work/t"
expect 3 "'include' is not offered" render --template "$work/t" --context "$work/c"
printf '[]' >"$work/c"
printf 'a' >"$work/t"
expect 3 "not a JSON object" render --template "$work/t" --context "$work/c"
printf '{"a": "\377"}' >"$work/c"
expect 3 "/c: line 1, column .*(save it as UTF-8)" render --template "$work/t" --context "$work/c"
