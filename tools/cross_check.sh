#!/bin/sh
# cross_check.sh: the digest of what the kernels compute, over compilers, levels of optimisation, instruction sets, numbers of threads and
# alignments, and under qemu for AArch64. One line each; exit status 1 when one differs from another or from class_table.h.
# usage: sh tools/cross_check.sh [--quick]        --quick: gcc and clang at -O2, AArch64 at -O2 (what the test command runs)
#        sh tools/cross_check.sh --table        writes native/kernel/class_table.h anew from the scalar definitions: for a new operator
# Installs what it needs from Debian (qemu-user-static, gcc-aarch64-linux-gnu, clang 14 to 16) when it is root; a compiler that cannot be
# had is named and left out, but gcc and AArch64 must be there.
set -eu
cd "$(dirname "$0")/.."
quick=
[ "${1:-}" != --quick ] || quick=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ "${1:-}" = --table ]; then
    sh tools/cross_build.sh gcc "$folder/program" -O2
    { sed '/^CLASS_CHECK/,$d' native/kernel/class_table.h && "$folder/program" --isa scalar --table; } >"$folder/table"
    cp "$folder/table" native/kernel/class_table.h
    exit
fi

need() { # COMMAND PACKAGE...: present, or installed now
    command -v "$1" >/dev/null 2>&1 && return
    [ "$(id -u)" = 0 ] || return 1
    name=$1
    shift
    [ -f "$folder/updated" ] || apt-get -q update >"$folder/apt.log" 2>&1 || return 1
    touch "$folder/updated"
    DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@" >"$folder/apt.log" 2>&1
    command -v "$name" >/dev/null 2>&1
}

digest= status=0
# check NAME RUNNER PROGRAM ISA THREADS SHIFT
check() {
    label="$1 $4 t$5"
    [ "$6" = 0 ] || label="$label +$6"
    result=0
    # shellcheck disable=SC2086
    found=$($2 "$3" --isa "$4" --threads "$5" --shift "$6" 2>"$folder/said") || result=$?
    if [ "$result" = 3 ]; then
        echo "$label: absent"
        return
    fi
    echo "$label: ${found:-nothing}"
    [ -n "$digest" ] || digest=$found
    if [ "$result" != 0 ] || [ "$found" != "$digest" ]; then
        echo "$label: DIFFERS"
        head -5 "$folder/said"
        status=1
    fi
}
# all NAME COMPILER RUNNER ISAS WAYS FLAG...: WAYS are THREADS:SHIFT
all() {
    name=$1 cc=$2 runner=$3 isas=$4 ways=$5
    shift 5
    if ! sh tools/cross_build.sh "$cc" "$folder/program" "$@" 2>"$folder/said"; then
        echo "$name: does not build"
        head -20 "$folder/said"
        status=1
        return
    fi
    for isa in $isas; do
        for way in $ways; do
            check "$name" "$runner" "$folder/program" "$isa" "${way%:*}" "${way#*:}"
        done
    done
}
version() { "$1" -dumpversion | cut -d. -f1; }

ways="1:0 2:1 3:5 7:15" arm_ways="1:0 3:5"
[ -z "$quick" ] || ways="3:5" arm_ways="2:1"
gcc=gcc-$(version gcc)
case $(uname -m) in
x86_64)
    isas="scalar avx2 avx512"
    all "$gcc -O2" gcc "" "$isas" "$ways" -O2
    if [ -z "$quick" ]; then
        all "$gcc -O0" gcc "" "$isas" 3:1 -O0
        all "$gcc -O3" gcc "" "$isas" "$ways" -O3
        all "$gcc -O3 -march=native" gcc "" "$isas" 2:1 -O3 -march=native
        all "$gcc -O2 -flto" gcc "" "$isas" 2:1 -O2 -flto=auto
    fi
    for clang in 14 15 16; do
        [ -z "$quick" ] || [ "$clang" = 14 ] || continue
        if ! need "clang-$clang" "clang-$clang"; then
            echo "clang-$clang: not installed"
            continue
        fi
        all "clang-$clang -O2" "clang-$clang" "" "$isas" "$ways" -O2
        [ -n "$quick" ] || all "clang-$clang -O3 -march=native" "clang-$clang" "" "$isas" 2:1 -O3 -march=native
    done
    if ! need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross || ! need qemu-aarch64-static qemu-user-static; then
        echo "cross_check: gcc-aarch64-linux-gnu and qemu-user-static cannot be had"
        [ "$status" != 0 ] || status=77
    else
        arm=aarch64-linux-gnu-gcc
        for level in -O2 -O0 -O3; do
            [ -z "$quick" ] || [ "$level" = -O2 ] || continue
            all "aarch64 gcc-$(version $arm) $level" $arm qemu-aarch64-static "neon scalar" "$arm_ways" "$level"
        done
    fi
    ;;
*)
    isas="neon scalar"
    all "$gcc -O2" gcc "" "$isas" "$ways" -O2
    ;;
esac
# the program itself, where it is built
program=${RONDO_BUILD:-build}/rondo
if [ -x "$program" ]; then
    for isa in $isas; do
        result=0
        RONDO_ISA=$isa "$program" doctor --json --home "$folder/home" >"$folder/said" 2>&1 || result=$?
        found=$(sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' "$folder/said")
        if [ "$result" = 3 ]; then
            echo "rondo doctor $isa: absent"
        elif [ "$result" != 0 ] || [ "$found" != "$digest" ]; then
            echo "rondo doctor $isa: ${found:-nothing} DIFFERS"
            status=1
        else
            echo "rondo doctor $isa: $found"
        fi
    done
fi
exit "$status"
