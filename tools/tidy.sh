#!/bin/sh
# tidy.sh: clang-tidy 14 over the C files by .clang-tidy. usage: sh tools/tidy.sh [FILE...]     needs a build (build/compile_commands.json)
set -eu
cd "$(dirname "$0")/.."
command -v clang-tidy >/dev/null || { echo "tidy: clang-tidy is missing; run: apt-get install clang-tidy" >&2; exit 1; }
[ $# -gt 0 ] || set -- $(git ls-files 'native/*.c' 'runtime/*.c')
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 8 clang-tidy -p build --quiet \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-ignored-optimization-argument
