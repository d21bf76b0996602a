#!/bin/sh
# test.sh: install what is missing, build, run every test. Ends with "N passed, N failed, N skipped".
# usage: sh tools/test.sh [--all]            --all adds the full quickstart, TSan and long seeds
set -eu
cd "$(dirname "$0")/.."
if ! sh tools/setup.sh; then
    echo "FAILED  tools/setup.sh: nothing could be tested"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
exec sh tests/run.sh "$@"
