#!/bin/sh
# The quickstart keeps its promises, and twice from one seed ends at one root, whatever the number of threads.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$RONDO_BUILD/rondo" local scripts/runs/quickstart.lua --home "$place/a" --ledger-seed long --json | tail -1 >"$place/a.json"
"$RONDO_BUILD/rondo" local scripts/runs/quickstart.lua --home "$place/b" --ledger-seed long --threads 1 --json | tail -1 >"$place/b.json"
luajit tests/long/quickstart.lua "$place/a.json" "$place/b.json"
run=$(luajit -e 'print(require("cjson").decode(io.read("*a")).run)' <"$place/a.json")
"$RONDO_BUILD/rondo" replay "$run" 1 --home "$place/a" --json
"$RONDO_BUILD/rondo" audit "$run" --home "$place/a" --json
