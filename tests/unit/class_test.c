#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "native/kernel/class.h"
#include "native/kernel/digest.h"
#include "native/kernel/self_test.h"

/* Thread counts, alignment and instruction sets: all give the table. */
static void every_way_of_running_gives_the_hashes_of_the_table(void **state)
{
    static const unsigned threads[] = { 1, 2, 3, 7 };

    (void)state;
    for (int isa = 0; isa < KERNEL_ISAS; isa++) {
        if (!kernel_isa_present((enum kernel_isa)isa))
            continue;
        assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
        for (size_t t = 0; t < 4; t++) {
            struct pool *pool = pool_new(threads[t]);
            struct self_test *test = self_test_new(pool, 3 * t);

            for (size_t i = 0; i < 2 * self_test_count(); i++) {
                char hash[SELF_TEST_HEX];

                self_test_hash(test, i / 2, i % 2, hash);
                if (strcmp(hash, self_test_expected(i / 2, i % 2)) != 0)
                    fail_msg("%s, %u threads: %s (%s) gives %s", kernel_isa_name((enum kernel_isa)isa), threads[t],
                             self_test_name(i / 2), i % 2 ? "full" : "start", hash);
            }
            self_test_free(test);
            pool_free(pool);
        }
    }
}

static void a_hash_is_that_of_libsodium(void **state)
{
    uint8_t bytes[1000], want[64], got[64];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i + i / 7);
    for (size_t size = 0; size <= sizeof bytes; size += 1 + size / 9) {
        size_t out = 16 + size % 49, cut = size / 3;
        struct digest digest;

        digest_start(&digest, out);
        digest_add(&digest, bytes, cut);
        digest_add(&digest, bytes + cut, size - cut);
        digest_end(&digest, got);
        crypto_generichash(want, out, bytes, size, NULL, 0);
        assert_memory_equal(want, got, out);
    }
}

static void an_instruction_set_is_chosen_by_name_or_refused(void **state)
{
    struct error err = { 0 };

    (void)state;
    setenv("RONDO_ISA", "scalar", 1);
    assert_true(kernel_start(&err));
    assert_int_equal(kernel_isa(), KERNEL_SCALAR);
#if defined(__x86_64__)
    setenv("RONDO_ISA", "neon", 1);
#else
    setenv("RONDO_ISA", "avx2", 1);
#endif
    assert_false(kernel_start(&err));
    assert_int_equal(err.code, ERROR_ABSENT);
    setenv("RONDO_ISA", "altivec", 1);
    assert_false(kernel_start(&err));
    assert_int_equal(err.code, ERROR_UNKNOWN);
    unsetenv("RONDO_ISA");
}

#if defined(__x86_64__) /* only there is the control word set by a name that the compiler knows */
static void flushing_subnormals_or_another_rounding_is_refused(void **state)
{
    unsigned kept = _mm_getcsr();
    const unsigned wrong[] = { 0x8000, 0x0040, 0x2000, 0x4000, 0x6000 };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err = { 0 };

        _mm_setcsr(kept | wrong[i]);
        bool started = kernel_start(&err);
        _mm_setcsr(kept);
        assert_false(started);
        assert_int_equal(err.code, ERROR_FAULT);
    }
}
#endif

static void the_digest_names_the_class(void **state)
{
    uint8_t digest[32];
    char hex[65];

    (void)state;
    kernel_class_digest(digest);
    sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
    assert_string_equal(kernel_class_name(), "portable-f32-1");
    assert_string_equal(hex, "3329d5511e918051403a341a746d1a0bec86f9837e8b3f4c47912c517a0cc731");
}

int main(void)
{
    mallopt(M_PERTURB, 0xa5); /* a check must not read what it never wrote */

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_of_running_gives_the_hashes_of_the_table),
        cmocka_unit_test(a_hash_is_that_of_libsodium),
        cmocka_unit_test(an_instruction_set_is_chosen_by_name_or_refused),
#if defined(__x86_64__)
        cmocka_unit_test(flushing_subnormals_or_another_rounding_is_refused),
#endif
        cmocka_unit_test(the_digest_names_the_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
