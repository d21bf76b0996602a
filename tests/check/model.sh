#!/bin/sh
# The model checks of the vote, the correction and the dispute (docs/model).
set -eu
command -v spin >/dev/null || { echo "spin is not installed"; exit 77; }
sh docs/model/run.sh quick
python3 docs/model/dispute.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -std=c11 -O2 -ffp-contract=off docs/model/correction.c -lm -o "$work/correction"
"$work/correction" >"$work/out" || { cat "$work/out"; exit 1; }
tail -1 "$work/out"
