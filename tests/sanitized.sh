#!/bin/sh
# sanitized.sh: builds the tests with a sanitizer and runs them; what it finds is an error. usage: sh tests/sanitized.sh asan|tsan
set -eu
cd "$(dirname "$0")/.."
preset=$1
folder=build-$preset
log=$folder/test.log
mkdir -p "$folder"
if ! { cmake --preset "$preset" && cmake --build "$folder" -j "$(nproc)"; } >"$log" 2>&1; then
    tail -40 "$log"
    echo "FAILED the build in $folder"
    exit 1
fi
status=0
for test in "$folder"/tests/*_test; do
    "$test" >"$log" 2>&1 || { cat "$log"; echo "FAILED $test"; status=1; }
done
for test in "$folder"/fuzz/*_fuzz; do
    "$test" "tests/fuzz/corpus/$(basename "$test" _fuzz)" >"$log" 2>&1 || { cat "$log"; echo "FAILED $test"; status=1; }
done
exit $status
