#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "native/kernel/class.h"
#include "native/kernel/self_test.h"

static void every_instruction_set_gives_the_hashes_of_the_table(void **state)
{
    (void)state;
    for (int isa = 0; isa < KERNEL_ISAS; isa++) {
        if (!kernel_isa_present((enum kernel_isa)isa))
            continue;
        assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
        for (size_t i = 0; i < self_test_count(); i++) {
            char hash[33];

            self_test_hash(i, hash);
            if (strcmp(hash, self_test_expected(i)) != 0) /* in the table's form, so that a new class is easily written down */
                print_error("%s: %s: \"%s\"\n", kernel_isa_name((enum kernel_isa)isa), self_test_name(i), hash);
        }
        struct error err = { 0 };

        if (!kernel_self_test(&err))
            fail_msg("%s", err.message);
    }
}

static void an_instruction_set_is_chosen_by_name_or_refused(void **state)
{
    struct error err = { 0 };

    (void)state;
    setenv("RONDO_ISA", "scalar", 1);
    assert_true(kernel_start(&err));
    assert_int_equal(kernel_isa(), KERNEL_SCALAR);
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
    assert_string_equal(hex, "909617244572819817d123b43c48fb6ed4a500f99eb37409d84b10a280386660");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_gives_the_hashes_of_the_table),
        cmocka_unit_test(an_instruction_set_is_chosen_by_name_or_refused),
#if defined(__x86_64__)
        cmocka_unit_test(flushing_subnormals_or_another_rounding_is_refused),
#endif
        cmocka_unit_test(the_digest_names_the_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
