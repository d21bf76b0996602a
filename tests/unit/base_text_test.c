/* Texts for bytes and numbers: each value has exactly one, and nothing else is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/base32.h"
#include "native/base/base58.h"
#include "native/base/decimal.h"
#include "native/base/hex.h"

static void hex_round_trips_and_refuses_capitals_and_odd_lengths(void **state)
{
    uint8_t bytes[4], again[4];
    char text[9];

    (void)state;
    for (uint32_t i = 0; i < 5000; i++) {
        uint32_t value = i * 2654435761u;

        memcpy(bytes, &value, 4);
        hex_encode(bytes, 4, text);
        assert_true(hex_decode(text, 8, again, 4));
        assert_memory_equal(bytes, again, 4);
    }
    assert_false(hex_decode("0A", 2, again, 1));
    assert_false(hex_decode("0", 1, again, 0));
    assert_false(hex_decode("0g", 2, again, 1));
    assert_false(hex_decode("001122", 6, again, 4));
}

static void base32_gives_the_texts_of_rfc_4648_in_lower_case(void **state)
{
    static const char *const texts[] = { "", "my", "mzxq", "mzxw6", "mzxw6yq", "mzxw6ytb", "mzxw6ytboi" };
    char text[16], bytes[8];

    (void)state;
    for (size_t i = 0; i <= 6; i++) {
        assert_string_equal(base32_encode("foobar", i, text), texts[i]);
        assert_true(base32_decode(texts[i], strlen(texts[i]), bytes, i));
        assert_memory_equal(bytes, "foobar", i);
    }
}

static void base32_refuses_every_second_text_for_a_value(void **state)
{
    char bytes[8];

    (void)state;
    assert_false(base32_decode("mz", 2, bytes, 1)); /* unused bits are not zero */
    assert_false(base32_decode("MY", 2, bytes, 1));
    assert_false(base32_decode("my======", 8, bytes, 1));
    assert_false(base32_decode("m1", 2, bytes, 1));
    assert_false(base32_decode("mya", 3, bytes, 1));
    assert_false(base32_decode("m\0", 2, bytes, 1));
}

/* Vectors of draft-msporny-base58-03, section 5. */
static void base58_gives_the_texts_of_the_draft(void **state)
{
    char text[64];
    uint8_t bytes[64];

    (void)state;
    assert_true(base58_encode("Hello World!", 12, text, sizeof text));
    assert_string_equal(text, "2NEpo7TZRRrLZSi2U");
    assert_true(base58_encode("\0\0\x28\x7f\xb4\xcd", 6, text, sizeof text));
    assert_string_equal(text, "11233QC4");
    assert_true(base58_decode("11233QC4", 8, bytes, 6));
    assert_memory_equal(bytes, "\0\0\x28\x7f\xb4\xcd", 6);
    assert_false(base58_decode("1233QC4", 7, bytes, 6));
    assert_false(base58_decode("11233QC0", 8, bytes, 6));
    assert_false(base58_decode("111233QC4", 9, bytes, 6));
    assert_false(base58_encode("Hello World!", 12, text, 17));
}

static void base58_round_trips_at_every_size(void **state)
{
    uint8_t bytes[BASE58_LIMIT], again[BASE58_LIMIT];
    char text[2 * BASE58_LIMIT];
    uint32_t random = 1;

    (void)state;
    for (size_t size = 0; size <= 90; size++) {
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24) & (i % 7 ? 255 : 0);
        assert_true(base58_encode(bytes, size, text, sizeof text));
        assert_true(base58_decode(text, strlen(text), again, size));
        assert_memory_equal(bytes, again, size);
    }
    memset(text, 'z', sizeof text);
    assert_false(base58_decode(text, sizeof text, again, 90));
}

static void amounts_are_whole_numbers_below_two_to_128(void **state)
{
    unsigned __int128 value;
    char text[AMOUNT_TEXT];

    (void)state;
    assert_true(amount_parse("340282366920938463463374607431768211455", &value));
    assert_true(value == ~(unsigned __int128)0);
    assert_string_equal(amount_text(value, text), "340282366920938463463374607431768211455");
    assert_true(amount_parse("0", &value) && value == 0);
    assert_string_equal(amount_text(0, text), "0");
    static const char *const bad[] = {
        "", "00", "01", "-1", "+1", "1.0", " 1", "1 ", "0x1", "1e3", "340282366920938463463374607431768211456"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(amount_parse(bad[i], &value));
}

static void decimals_are_exact_billionths_with_one_text_each(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = { { "0", 0 },
                 { "1", 1000000000 },
                 { "0.8", 800000000 },
                 { "-3.25", -3250000000 },
                 { "0.000000001", 1 },
                 { "10", 10000000000 },
                 { "900000000", 900000000000000000 } };
    static const char *const bad[] = { "",
                                       ".5",
                                       "5.",
                                       "0.80",
                                       "00.5",
                                       "-0",
                                       "-",
                                       "1.0",
                                       "+1",
                                       "1e3",
                                       "1,5",
                                       "0x1",
                                       " 1",
                                       "1 ",
                                       "0.0000000001",
                                       "99999999999999999999" };
    int64_t value;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(decimal_parse(good[i].text, &value));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(decimal_parse(bad[i], &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_round_trips_and_refuses_capitals_and_odd_lengths),
        cmocka_unit_test(base32_gives_the_texts_of_rfc_4648_in_lower_case),
        cmocka_unit_test(base32_refuses_every_second_text_for_a_value),
        cmocka_unit_test(base58_gives_the_texts_of_the_draft),
        cmocka_unit_test(base58_round_trips_at_every_size),
        cmocka_unit_test(amounts_are_whole_numbers_below_two_to_128),
        cmocka_unit_test(decimals_are_exact_billionths_with_one_text_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
