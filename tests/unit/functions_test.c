#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/kernel/class.h"
#include "native/kernel/elementwise.h"
#include "native/numerics/activation.h"
#include "native/numerics/power.h"
#include "tests/unit/kernel_random.h"

/* The table of docs/numerics.md, in its order. */
static const enum elementwise_op functions[] = {
    ELEMENTWISE_EXP,        ELEMENTWISE_EXP2,       ELEMENTWISE_EXPM1,     ELEMENTWISE_LOG,
    ELEMENTWISE_LOG1P,      ELEMENTWISE_LOG1MEXP,   ELEMENTWISE_TANH,      ELEMENTWISE_SIGMOID,
    ELEMENTWISE_LOGSIGMOID, ELEMENTWISE_SOFTPLUS,   ELEMENTWISE_SILU,      ELEMENTWISE_SILU_SLOPE,
    ELEMENTWISE_GELU,       ELEMENTWISE_GELU_SLOPE, ELEMENTWISE_GELU_TANH, ELEMENTWISE_GELU_TANH_SLOPE,
    ELEMENTWISE_ERF,        ELEMENTWISE_SIN,        ELEMENTWISE_COS,       ELEMENTWISE_RSQRT,
    ELEMENTWISE_SQRT,       ELEMENTWISE_POW,
};

enum { FUNCTIONS = sizeof functions / sizeof *functions, SPREAD = 1 << 16, SLICE = 1 << 15, SPECIALS = 24 };
enum { SAMPLE = SPREAD + 2 * SLICE + SPECIALS };

/* Every 65521st float (a prime, so that the low bits vary), all floats around 1 and around -ln 2, and the special ones. The second
 * operand of a power goes through integers, halves and everything. */
static void sample(float *x, float *y)
{
    static const uint32_t special[SPECIALS] = {
        0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
        0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x3f800000,
        0xbf800000, 0x42b17218, 0xc2cff1b5, 0x49800000, 0xc9800000, 0x49c35000, 0x49c35001, 0x3fc90fdb,
    };
    size_t n = 0;

    for (uint32_t i = 0; i < SPREAD; i++)
        x[n++] = f32_from_bits(i * 65521u);
    for (uint32_t i = 0; i < SLICE; i++)
        x[n++] = f32_from_bits(0x3f800000u - SLICE / 2 + i);
    for (uint32_t i = 0; i < SLICE; i++)
        x[n++] = f32_from_bits(0xbf317218u - SLICE / 2 + i);
    for (uint32_t i = 0; i < SPECIALS; i++)
        x[n++] = f32_from_bits(special[i]);
    for (uint32_t i = 0; i < n; i++)
        y[i] = i % 3 == 0 ? (float)(int32_t)(i % 23) - 11.0f : i % 3 == 1 ? (float)(int32_t)(i % 29) * 0.5f - 7.0f : x[n - 1 - i];
}

static void run(enum elementwise_op op, size_t n, const float *x, const float *y, float *out)
{
    struct space space = { 1, { n } };
    struct view in[2] = { { x, { 1 } }, { y, { 1 } } };

    elementwise_run(NULL, op, KERNEL_F32, &space, in, out);
    for (size_t i = 0; i < n; i++)
        out[i] = out[i] != out[i] ? f32_from_bits(0x7fc00000u) : out[i];
}

/* 16 hex digits of BLAKE2b over all results, in little-endian bytes. */
static void digest_of_sample(char text[17])
{
    float *x = malloc(SAMPLE * sizeof *x), *y = malloc(SAMPLE * sizeof *y), *out = malloc(SAMPLE * sizeof *out);
    crypto_generichash_state hash;
    uint8_t digest[16], bytes[4];
    char hex[2 * sizeof digest + 1];

    sample(x, y);
    crypto_generichash_init(&hash, NULL, 0, sizeof digest);
    for (int f = 0; f < FUNCTIONS; f++) {
        run(functions[f], SAMPLE, x, y, out);
        for (size_t i = 0; i < SAMPLE; i++) {
            for (int b = 0; b < 4; b++)
                bytes[b] = (uint8_t)(f32_bits(out[i]) >> 8 * b);
            crypto_generichash_update(&hash, bytes, sizeof bytes);
        }
    }
    crypto_generichash_final(&hash, digest, sizeof digest);
    sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
    memcpy(text, hex, 16);
    text[16] = 0;
    free(x);
    free(y);
    free(out);
}

static void every_instruction_set_gives_the_sample_that_the_page_names(void **state)
{
    struct error err = { 0 };
    struct buffer page = { 0 };
    char text[17], sought[64];

    (void)state;
    assert_true(file_read(RONDO_SOURCE "/docs/numerics.md", 1 << 20, &page, &err));
    for (int isa = 0; isa < KERNEL_ISAS; isa++) {
        if (!kernel_isa_present((enum kernel_isa)isa))
            continue;
        assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
        digest_of_sample(text);
        snprintf(sought, sizeof sought, "digest `%s`", text);
        if (!memmem(page.bytes, page.size, sought, strlen(sought)))
            fail_msg("docs/numerics.md does not say: %s (%s)", sought, kernel_isa_name((enum kernel_isa)isa));
    }
    buffer_free(&page);
}

/* A whole binade and a half of neighbours, in vectors and one by one at odd places: no result depends on where in a vector it stands. */
static void neighbours_have_the_same_bits_in_any_place(void **state)
{
    enum { N = 4099 };
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y), *all = malloc(N * sizeof *all), one;

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        x[i] = f32_from_bits(0xc2000000u - 2000u + i * 4001u);
        y[i] = f32_from_bits(0x3f000000u + i * 4003u);
    }
    for (int isa = 0; isa < KERNEL_ISAS; isa++) {
        if (!kernel_isa_present((enum kernel_isa)isa))
            continue;
        assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
        for (int f = 0; f < FUNCTIONS; f++) {
            run(functions[f], N, x, y, all);
            for (size_t i = 0; i < N; i += 13) {
                run(functions[f], 1, x + i, y + i, &one);
                assert_int_equal(f32_bits(one), f32_bits(all[i]));
            }
        }
    }
    free(x);
    free(y);
    free(all);
}

static void a_power_by_an_integer_is_the_power_by_its_float(void **state)
{
    (void)state;
    for (int i = 0; i < 200000; i++) {
        float x = test_odd();
        int32_t n = i % 2 ? (int32_t)test_below(41) - 20 : (int32_t)test_below(1 << 25) - (1 << 24);
        float a = f32_powi(x, n), b = f32_pow(x, (float)n);

        assert_true(f32_bits(a) == f32_bits(b) || (a != a && b != b));
    }
    assert_true(f32_powi(-1, INT32_MAX) == -1 && f32_powi(-1, INT32_MIN) == 1); /* no binary32 is that odd */
    assert_true(f32_powi(2, -149) == 0x1p-149f && f32_powi(-2, 31) == -0x1p31f && f32_powi(1.5f, 3) == 3.375f);
    assert_true(f32_powi(0, -3) == INFINITY && f32_powi(-0.0f, -3) == -INFINITY && f32_powi(NAN, 0) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_gives_the_sample_that_the_page_names),
        cmocka_unit_test(neighbours_have_the_same_bits_in_any_place),
        cmocka_unit_test(a_power_by_an_integer_is_the_power_by_its_float),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
