#!/bin/sh
# run.sh: runs the tests of an existing build and counts them. usage: sh tests/run.sh [--all] [BUILD]
# Its last line is "N passed, N failed, N skipped", however it ends.
set -u
cd "$(dirname "$0")/.."
all=
build=build
for word in "$@"; do
    case $word in
    --all) all=1 ;;
    -*) echo "unknown option $word; usage: sh tests/run.sh [--all] [BUILD]" >&2 && exit 2 ;;
    *) build=$word ;;
    esac
done
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 4
finish() {
    rm -f "$log"
    echo "$passed passed, $failed failed, $skipped skipped"
}
interrupted() {
    failed=$((failed + 1))
    echo "FAILED  interrupted"
    exit 1
}
trap finish EXIT
trap interrupted HUP INT TERM

# add NAME PASSED FAILED SKIPPED: adds up, shows the output of what failed.
add() {
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    if [ "$3" -gt 0 ]; then
        cat "$log"
        echo "FAILED  $1"
    else
        echo "ok      $1 ($2 passed, $4 skipped)"
    fi
}
lines() { grep -c -- "$1" "$log" || true; }

# A cmocka program prints one line a test; a crash counts as one failure.
unit() {
    status=0
    timeout 600 "$1" >"$log" 2>&1 || status=$?
    bad=$(lines '^\[  FAILED  \] [a-z]')
    [ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
    [ "$status" -ne 0 ] || bad=0
    add "$(basename "$1")" "$(lines '^\[       OK \]')" "$bad" "$(lines '^\[  SKIPPED \] [a-z]')"
}
# A shell test that may take so many seconds: exit 0 passed, 77 skipped, else failed.
script() {
    status=0 limit=$1
    shift
    timeout "$limit" sh "$@" >"$log" 2>&1 || status=$?
    case $status in
    0)
        add "$*" 1 0 0
        case $1 in */model.sh | */removed_rules.sh) sed 's/^/        /' "$log" ;; esac # their tables belong into the log of the tests
        ;;
    77) add "$*" 0 0 1 && tail -1 "$log" ;;
    *) add "$*" 0 1 0 ;;
    esac
}
busted_file() {
    status=0
    timeout 600 busted --output=TAP "$1" >"$log" 2>&1 || status=$?
    bad=$(lines '^not ok')
    [ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
    held=$(lines '^ok .*# SKIP')
    add "$1" "$(($(lines '^ok ') - held))" "$bad" "$held"
}

# A fuzz target over its corpus, every input also cut short and changed (tests/fuzz/corpus.c).
corpus() {
    name=$(basename "$1" _fuzz)
    status=0
    timeout 600 "$1" "tests/fuzz/corpus/$name" >"$log" 2>&1 || status=$?
    if [ "$status" -eq 0 ]; then add "fuzz corpus $name" 1 0 0; else add "fuzz corpus $name" 0 1 0; fi
}

if [ ! -x "$build/rondo" ]; then
    failed=1
    echo "FAILED  there is no $build/rondo: sh tools/setup.sh"
    exit 1
fi
export RONDO_BUILD="$PWD/$build" RONDO_BINARY="$PWD/$build" RONDO_SOURCE="$PWD"
for test in "$build"/tests/*_test; do
    [ -x "$test" ] && unit "$test"
done
for test in tests/script/*_spec.lua; do
    [ -f "$test" ] && busted_file "$test"
done
for test in "$build"/fuzz/*_fuzz; do
    [ -x "$test" ] && corpus "$test"
done
for test in tests/check/*.sh tests/end_to_end/*.sh; do
    [ -f "$test" ] && script 2400 "$test"
done
if [ -n "$all" ]; then
    for test in tests/long/*.sh; do
        [ -f "$test" ] && script 10800 "$test"
    done
fi
[ "$failed" -eq 0 ]
