#!/bin/sh
# test.sh: install what is missing, build, run every test. Ends with "N passed, N failed, N skipped".
# usage: sh tools/test.sh [--all]            --all adds the full quickstart, TSan and long seeds
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh
exec sh tests/run.sh "$@"
