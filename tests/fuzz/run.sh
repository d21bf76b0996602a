#!/bin/sh
# run.sh: builds the fuzz targets (clang, libFuzzer, AddressSanitizer, UndefinedBehaviorSanitizer) and runs one after the other.
# usage: sh tests/fuzz/run.sh [SECONDS] [TARGET...]          60 seconds and all targets unless said; TARGET as in gguf_fuzz.c: gguf
#
#     gguf                412345  ok
#     template             20114  CRASH build-fuzz/found/template-crash-0a1b2c...       the input that did it; its report lies beside it
#
# Inputs that reached something new are kept in build-fuzz/found/TARGET and start the next run. Exit 1 when a target crashed.
set -eu
cd "$(dirname "$0")/../.."
seconds=60
case ${1:-} in
*[!0-9]* | '') ;;
*) seconds=$1 && shift ;;
esac
if [ $# -eq 0 ]; then
    for file in tests/fuzz/*_fuzz.c; do
        set -- "$@" "$(basename "$file" _fuzz.c)"
    done
fi
for name in "$@"; do
    [ -f "tests/fuzz/${name}_fuzz.c" ] || { echo "no such target: $name (tests/fuzz/${name}_fuzz.c)" >&2 && exit 2; }
done
command -v clang >/dev/null || { echo "clang is not installed: sh tools/setup.sh fuzz" >&2 && exit 2; }

if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache
fi
cmake --preset fuzz >/dev/null
# shellcheck disable=SC2046
cmake --build build-fuzz -j "$(nproc)" --target $(printf '%s_fuzz ' "$@") >&2

found=build-fuzz/found
TMPDIR=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 1' INT TERM
crashed=0

# fuzz NAME SECONDS: one run; its report in $report, its inputs in $units.
fuzz() {
    status=0
    build-fuzz/fuzz/"$1_fuzz" -max_total_time="$2" -timeout=25 -rss_limit_mb=3000 -print_final_stats=1 \
        -artifact_prefix="$found/$1-" "$found/$1" "tests/fuzz/corpus/$1" >"$report" 2>&1 || status=$?
    units=$((units + $(sed -n 's/^stat::number_of_executed_units: *//p' "$report" | tail -1 | grep . || echo 0)))
    input=$(sed -n 's/.*Test unit written to //p' "$report" | tail -1)
}

# The limit for one input is of wall-clock time: where the whole process was stopped meanwhile, the input alone is fast, and the run goes on.
was_stopped() {
    case $input in
    *-timeout-*) build-fuzz/fuzz/"$1_fuzz" -timeout=25 "$input" >/dev/null 2>&1 ;;
    *) false ;;
    esac
}

for name in "$@"; do
    mkdir -p "$found/$name"
    report=$found/$name.log units=0 ends=$(($(date +%s) + seconds)) result=ok
    fuzz "$name" "$seconds"
    while [ "$status" -ne 0 ] && was_stopped "$name"; do
        rm -f "$input"
        status=0
        left=$((ends - $(date +%s)))
        [ "$left" -gt 0 ] && fuzz "$name" "$left"
    done
    if [ "$status" -ne 0 ]; then
        result="CRASH ${input:-without an input: $report}"
        crashed=1
    fi
    printf '%-14s %10s  %s\n' "$name" "$units" "$result"
done
exit "$crashed"
