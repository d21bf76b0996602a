#!/bin/sh
# No include points upward: the table of docs/architecture.md, "Layout", as numbers. A file includes from its own folder or from lower ones.
set -eu
git ls-files 'native/*.[ch]' 'runtime/*.[ch]' | xargs grep -Hn '^#include "' | awk '
BEGIN {
    split("cli simulation role worker script round ledger attest store net doc crypto", runtime)
    for (i in runtime) order["runtime/" runtime[i]] = 20 - i
    split("model text codec graph tensor kernel base numerics", native)
    for (i in native) order["native/" native[i]] = 9 - i
}
{
    split($1, from, "[/:]"); split($0, quoted, "\""); split(quoted[2], to, "/")
    here = from[1] "/" from[2]; there = to[1] "/" to[2]
    if (there == "native/base" || there == "native/numerics" || here == there) next
    if (!(here in order)) { print here " is not in the order of folders"; bad = 1 }
    else if (order[there] >= order[here]) { print $1 ": " here " may not include from " there; bad = 1 }
    if (here ~ /^runtime\/(round|ledger|attest|store|net|doc|crypto)$/ && there ~ /^native\//) { print $1 ": " here " knows nothing of " there; bad = 1 }
    if (here == "runtime/round" && there !~ /^runtime\/(attest|doc|crypto)$/) { print $1 ": the round machines do no input or output"; bad = 1 }
    if (here == "runtime/attest" && there != "runtime/crypto") { print $1 ": evidence is verified from its bytes alone"; bad = 1 }
}
END { exit bad }'
