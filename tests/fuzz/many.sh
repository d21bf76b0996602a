#!/bin/sh
# many.sh: inputs made of each target's corpus by its own seeded changes (corpus.c), without clang: no crash, no hang, and every refusal has a code.
# usage: sh tests/fuzz/many.sh [COUNT [SEED [TARGET...]]]          1,000,000 inputs, seed 0 and all targets unless said; RONDO_BUILD: build folder
#
#     document           1000000 inputs     21 s  ok
#       canonical json   taken 69300, syntax 920900, ...       where a target tells what became of its inputs
#
# A build with -DRONDO_SANITIZE=address looks for leaks too. Exit 1 when a target failed: the same COUNT and SEED do it again.
set -eu
cd "$(dirname "$0")/../.."
build=${RONDO_BUILD:-build} count=${1:-1000000} seed=${2:-0}
[ $# -lt 2 ] && set -- || shift 2
if [ $# -eq 0 ]; then
    for file in tests/fuzz/*_fuzz.c; do set -- "$@" "$(basename "$file" _fuzz.c)"; done
fi
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for name in "$@"; do
    begun=$(date +%s) status=0
    "$build/fuzz/${name}_fuzz" "tests/fuzz/corpus/$name" "$count" "$seed" >"$log" 2>&1 || status=$?
    result=ok
    [ $status -eq 0 ] || { result="FAILED: status $status" && failed=1; }
    printf '%-16s %9s inputs %6s s  %s\n' "$name" "$count" $(($(date +%s) - begun)) "$result"
    [ $status -eq 0 ] && sed 1d "$log" || tail -n 20 "$log"
done
exit $failed
