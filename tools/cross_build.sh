#!/bin/sh
# cross_build.sh: compiles the kernels and tools/cross_check.c without CMake, for any compiler; links nothing but the C library.
# usage: sh tools/cross_build.sh CC OUT [FLAG...]         objects stay in OUT.d
# With SOURCE=DIR the sources are taken from there; with ONLY="a.c b.c" just these are compiled anew, and linked with what is in OUT.d.
# Flags are those of CMakeLists.txt: no contraction, no fast-math, one file a vector width.
set -eu
cc=$1 out=$2
shift 2
[ -n "${ONLY:-}" ] || rm -rf "$out.d"
mkdir -p "$out.d"
objects=$(cd "$out.d" && pwd)
case $("$cc" -dumpmachine) in
x86_64*) other='*_neon.c' ;;
aarch64*) other='*_avx*.c' ;;
*) other='*_[an]*[2n].c' ;;
esac
common="-std=gnu17 -D_GNU_SOURCE -I. -w -ffp-contract=off -fno-fast-math -fno-strict-aliasing -fno-math-errno -fno-trapping-math -pthread"
"$cc" --version | grep -qi clang || common="$common -fexcess-precision=standard"
cache=
! command -v ccache >/dev/null 2>&1 || cache=ccache
cd "${SOURCE:-$(dirname "$0")/..}"
for file in ${ONLY:-native/kernel/*.c native/base/error.c tools/cross_check.c}; do
    # shellcheck disable=SC2254
    case $(basename "$file") in
    $other) continue ;;
    *_avx2.c) vector="-mavx2 -mfma" ;;
    *_avx512.c) vector="-mavx2 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512" ;;
    *) vector= ;;
    esac
    # shellcheck disable=SC2086
    $cache "$cc" $common "$@" $vector -c "$file" -o "$objects/$(basename "$file" .c).o"
done
"$cc" "$@" -static -pthread "$objects"/*.o -lm -o "$out"
