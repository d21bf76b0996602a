#!/bin/sh
# cmake --install gives a program that finds its scripts from any folder.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cmake --install "$RONDO_BUILD" --prefix "$place/usr" >/dev/null
cp tests/end_to_end/tiny.lua "$place"
cd "$place"
usr/bin/rondo --version
usr/bin/rondo local tiny.lua --home home --quiet --json | tail -1 >result
grep -q '"match' result || grep -q '"matched"' result || { cat result; exit 1; }
