#!/bin/sh
# sanitized.sh: builds the tests with a sanitizer and runs them; what it finds is an error. usage: sh tests/sanitized.sh asan|tsan
set -eu
cd "$(dirname "$0")/.."
preset=$1
folder=build-$preset
cmake --preset "$preset" >/dev/null
cmake --build "$folder" -j "$(nproc)" >/dev/null
status=0
for test in "$folder"/tests/*_test; do
    "$test" >"$folder/test.log" 2>&1 || { cat "$folder/test.log"; echo "FAILED $test"; status=1; }
done
for test in "$folder"/fuzz/*_fuzz; do
    "$test" "tests/fuzz/corpus/$(basename "$test" _fuzz)" >"$folder/test.log" 2>&1 ||
        { cat "$folder/test.log"; echo "FAILED $test"; status=1; }
done
exit $status
