#!/bin/sh
# Every operator of the graph has its line, with its version, in docs/numerics.md; and no line speaks of one that is not there.
set -eu
sed '/^\/\* internal/,$d' native/graph/operator_table.h | sed -n 's/^OPERATOR([A-Z0-9_]*, "\([^"]*\)", \([0-9]*\),.*/\1 \2/p' | LC_ALL=C sort >"${TMPDIR:-/tmp}/operators.$$"
trap 'rm -f "${TMPDIR:-/tmp}/operators.$$"' EXIT
awk -F'|' '/^\| operator \| version/ { on = 1; next } on && !/^\|/ { on = 0 }
on && $3 ~ /^ [0-9]+ $/ { n = split($2, names, "`"); for (i = 2; i <= n; i += 2) print names[i], $3 + 0 }' docs/numerics.md |
    LC_ALL=C sort | diff "${TMPDIR:-/tmp}/operators.$$" - || {
    echo "docs/numerics.md and native/graph/operator_table.h differ: < is in the table alone, > in the page alone"
    exit 1
}
