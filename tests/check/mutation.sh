#!/bin/sh
# The self-test and the property tests find what they are there to find: kernels with one small change of the arithmetic each, built beside
# the product. Every change must move the class digest, and fail the property test of its kernel.
set -eu
cd "$(dirname "$0")/../.."
[ "$(uname -m)" = x86_64 ] && grep -q ' avx2 .* fma \| fma .* avx2 ' /proc/cpuinfo || { echo "the changes are made to the AVX2 kernels"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
source=$PWD
mkdir "$folder/tree"
cp -r native tools "$folder/tree"
cache=
! command -v ccache >/dev/null 2>&1 || cache=ccache

sh tools/cross_build.sh gcc "$folder/right" -O1
"$folder/right" --isa avx2 >"$folder/digest"
# The tests are compiled from the sources as they are, so that what they expect does not change with the kernels.
for test in gemm attention reduce elementwise order; do
    $cache gcc -std=gnu17 -D_GNU_SOURCE -I. -w -O1 -ffp-contract=off -fexcess-precision=standard -c "tests/unit/${test}_test.c" \
        -o "$folder/${test}_test.o"
    mkdir -p "$folder/kernels"
    cp "$folder"/right.d/*.o "$folder/kernels"
    rm -f "$folder/kernels/cross_check.o"
    gcc -pthread "$folder/${test}_test.o" "$folder"/kernels/*.o -lcmocka -lm -o "$folder/${test}_test"
    "$folder/${test}_test" >"$folder/said" 2>&1 || { cat "$folder/said"; echo "${test}_test fails without any change"; exit 1; }
done

# mutate NAME TEST FILE SED OBJECTS [FLAG...]: changes FILE (SED may be empty: only the flags change), compiles OBJECTS, expects the digest to differ and TEST to fail
mutate() {
    name=$1 test=$2 file=$3 change=$4 objects=$5
    shift 5
    rm -rf "$folder/wrong.d"
    cp -r "$folder/right.d" "$folder/wrong.d"
    cp "$source/$file" "$folder/tree/$file"
    sed -i "$change" "$folder/tree/$file"
    if [ "$change" != "" ] && cmp -s "$source/$file" "$folder/tree/$file"; then
        echo "$name: the line to change is not there: $change"
        exit 1
    fi
    SOURCE=$folder/tree ONLY=$objects sh tools/cross_build.sh gcc "$folder/wrong" -O1 "$@"
    cp "$source/$file" "$folder/tree/$file"
    status=0
    "$folder/wrong" --isa avx2 >"$folder/found" 2>"$folder/said" || status=$?
    if [ "$status" != 1 ] || cmp -s "$folder/digest" "$folder/found"; then
        echo "$name: the self-test does not see it"
        exit 1
    fi
    seen=$(wc -l <"$folder/said")
    rm -rf "$folder/kernels"
    cp -r "$folder/wrong.d" "$folder/kernels"
    rm -f "$folder/kernels/cross_check.o"
    gcc -pthread "$folder/${test}_test.o" "$folder"/kernels/*.o -lcmocka -lm -o "$folder/${test}_test"
    if timeout 120 "$folder/${test}_test" >"$folder/said" 2>&1; then
        echo "$name: ${test}_test does not see it"
        exit 1
    fi
    echo "$name: $seen checks of the self-test and ${test}_test see it"
}

loops=native/kernel/loops_avx2.c gemm=native/kernel/gemm_avx2.c attention=native/kernel/attention_avx2.c
mutate "a sum associated anew" reduce native/kernel/lanes.h \
    's/lane_join(op, lane\[j\], lane\[j + 16\])/lane_join(op, lane[j], lane[31 - j])/' $loops
mutate "chunks added in another order" gemm native/kernel/gemm_block.h \
    's/for (size_t chunk = 0; chunk < gemm->k; chunk += GEMM_CHUNK) {/for (size_t n = (gemm->k + 255) \/ 256, turn = n; turn-- > 0;) { size_t chunk = turn * GEMM_CHUNK;/
     s/end.start = chunk > 0 ?/end.start = turn + 1 < n ?/' $gemm
mutate "one chain over all chunks" gemm native/kernel/gemm.h 's/^#define GEMM_CHUNK 256/#define GEMM_CHUNK 512/' "$gemm native/kernel/gemm.c"
mutate "contraction" order native/kernel/loops_body.h "" $loops -O2 -ffp-contract=fast
mutate "subnormals flushed to zero" elementwise native/kernel/elementwise.c \
    's/job->loops->elementwise(job->op, n, in\[0\], in\[1\], in\[2\], (float \*)out);/{ unsigned kept = __builtin_ia32_stmxcsr(); __builtin_ia32_ldmxcsr(kept | 0x8040); job->loops->elementwise(job->op, n, in[0], in[1], in[2], (float *)out); __builtin_ia32_ldmxcsr(kept); }/' \
    native/kernel/elementwise.c
mutate "another NaN" elementwise native/numerics/f32.h 's/(bits >> 16) | 0x40u/0x7fc0u/' native/kernel/elementwise.c
mutate "the other operand where one is NaN" elementwise native/kernel/elementwise_ops.h \
    's/"max", 2, x > y ? x : y/"max", 2, x <= y ? y : x/' $loops
mutate "a wrong mask at the edge" gemm native/kernel/gemm_kernel.h 's/j < end->columns; j++/j + 1 < end->columns; j++/' $gemm
mutate "a product rounded before it is added" attention native/kernel/attention_block.h \
    's/f32_fma(o\[d\], a\[i\], x\[d\])/o[d] * a[i] + x[d]/' $attention
mutate "a key too many at the edge of a mask" attention native/kernel/attention_block.h 's/to = to < jn ? to : jn;/to = to + 1 < jn ? to + 1 : jn;/' $attention
