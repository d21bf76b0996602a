#!/bin/sh
# What the kernel class cannot be computed on is refused by name before anything is computed: an instruction set that is not there, a
# library that has subnormals flushed to zero, a build that computes wider than binary32.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "$1"
    cat "$folder/out"
    exit 1
}
# refused STATUS WORDS COMMAND...
refused() {
    wanted=$1 words=$2 status=0
    shift 2
    "$@" >"$folder/out" 2>&1 </dev/null || status=$?
    [ "$status" = "$wanted" ] || fail "exit status $status, not $wanted: $*"
    grep -q "$words" "$folder/out" || fail "\"$words\" is not said: $*"
}

absent=neon
[ "$(uname -m)" = x86_64 ] || absent=avx2
refused 3 '"code":"absent"' env RONDO_ISA=$absent "$rondo" doctor --json --home "$folder/home"
refused 3 "no $absent instructions" env RONDO_ISA=$absent "$rondo" run list --home "$folder/home"
refused 3 'unknown instruction set "altivec"' env RONDO_ISA=altivec "$rondo" doctor --home "$folder/home"
refused 4 "no $absent instructions" env RONDO_ISA=$absent "$rondo" --worker "$folder" 1 0

# a digest whatever the instructions, and it is that of the program's version
digest=$("$rondo" --version | sed -n 's/^portable-f32-1 //p')
for isa in scalar avx2 avx512 neon; do
    status=0
    RONDO_ISA=$isa "$rondo" doctor --json --home "$folder/home" >"$folder/out" || status=$?
    [ "$status" != 3 ] || continue
    grep -q "\"kernel_class\":\"portable-f32-1\",\"digest\":\"$digest\",\"isa\":\"$isa\"" "$folder/out" || fail "doctor with RONDO_ISA=$isa"
done

[ "$(uname -m)" = x86_64 ] || exit 0
cat >"$folder/flush.c" <<'END'
#include <xmmintrin.h>
__attribute__((constructor)) static void flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
END
gcc -shared -fPIC "$folder/flush.c" -o "$folder/flush.so"
refused 1 'flushes subnormal numbers to zero' env LD_PRELOAD="$folder/flush.so" "$rondo" doctor --home "$folder/home"
refused 4 'flushes subnormal numbers to zero' env LD_PRELOAD="$folder/flush.so" "$rondo" --worker "$folder" 1 0
sh tools/cross_build.sh gcc "$folder/x87" -O1 -mfpmath=387
refused 4 'wider than binary32' "$folder/x87" --isa scalar
