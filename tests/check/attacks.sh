#!/bin/sh
# Every test that the list of attacks in docs/protocol.md names is there: unit tests, scripts, liars and faults of the simulator, removed
# rules, broken models, fuzz targets.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n '/^## 13\. Attacks/,$p' docs/protocol.md >"$work/section"
grep '^|' "$work/section" | grep -o '`[^`]*`' | tr -d '`' | sort -u >"$work/named"
[ "$(grep -c '^| ' "$work/section")" -ge 60 ] || { echo "FAILED: the list of attacks is shorter than it was"; exit 1; }
"$rondo" simulate --help >"$work/simulate"
cat runtime/simulation/*.[ch] >>"$work/simulate"
bad=0
lacks() { echo "FAILED: docs/protocol.md names $1, which is not there"; bad=1; }
while read -r kind name; do
    case $kind in
    unit/*:) grep -q "$name" "tests/${kind%:}" || lacks "$kind $name" ;;
    unit/*) [ -f "tests/$kind" ] || lacks "$kind" ;;
    end_to_end/*) [ -f "tests/$kind" ] || lacks "$kind" ;;
    simulate) grep -q "\"$name\"" "$work/simulate" || lacks "simulate $name" ;;
    mutation) grep -q "^mutation $name " tests/simulation/mutations.sh || lacks "mutation $name" ;;
    model) [ -f "docs/model/$name" ] || lacks "model $name" ;;
    fuzz) [ -f "tests/fuzz/${name}_fuzz.c" ] || lacks "fuzz $name" ;;
    esac
done <"$work/named"
[ $bad = 0 ] || exit 1
echo "$(wc -l <"$work/named") names, all there"
