#!/bin/sh
# Every model check in full: shortest traces, more views, more members; and the correction by refolding.
set -eu
sh docs/model/run.sh full
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -std=c11 -O2 -ffp-contract=off docs/model/correction.c -lm -o "$work/correction"
"$work/correction"
