#!/bin/sh
# Every case of the shared fixtures whose vocabulary is there: ids of GGUF files and of ranks, split rules, small files. Prints the counts.
set -eu
cd "$(dirname "$0")/../.."
fixtures=${RONDO_FIXTURES:-../shared/fixtures}
[ -d "$fixtures/tokenizer" ] || { echo "skipped: no $fixtures/tokenizer"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }
RONDO_FIXTURES=$(cd "$fixtures" && pwd) python3 tools/oracle/tokenizer_fixtures.py --rondo "${RONDO_BUILD:-build}/rondo"
