#include "native/kernel/self_test.h"

#include <stdlib.h>
#include <string.h>

#include "native/kernel/self_test_part.h"
#include "native/numerics/random.h"

static const struct {
    const char *name;
    void (*run)(struct self_test *test, int parameter);
    void (*run_full)(struct self_test *test, int parameter);
    int parameter;
    const char *start, *full;
} checks[] = {
#define CLASS_CHECK(name, function, parameter, start, full)                                                                      \
    { name, self_test_run_##function, self_test_full_##function, parameter, start, full },
#include "native/kernel/class_table.h"
#undef CLASS_CHECK
};

size_t self_test_count(void)
{
    return sizeof checks / sizeof *checks;
}

const char *self_test_name(size_t index)
{
    return checks[index].name;
}

const char *self_test_expected(size_t index, bool full)
{
    return full ? checks[index].full : checks[index].start;
}

static void keep_words(struct self_test *test, const uint32_t *word, size_t n, bool any_nan)
{
    uint8_t bytes[1024];
    size_t filled = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits = any_nan && (word[i] & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : word[i];

        for (int b = 0; b < 4; b++)
            bytes[filled++] = (uint8_t)(bits >> 8 * b);
        if (filled == sizeof bytes || i + 1 == n) {
            digest_add(&test->hash, bytes, filled);
            filled = 0;
        }
    }
}

void self_test_keep(struct self_test *test, const float *x, size_t n)
{
    keep_words(test, (const uint32_t *)x, n, true);
}

void self_test_keep_bits(struct self_test *test, const void *words, size_t n)
{
    keep_words(test, words, n, false);
}

/* Normals, scaled up and down, with zeros of both signs and subnormals among them; masks of 0 and 1; indices below 37. */
static void draw(float *drawn)
{
    static const uint32_t key[2] = { 0x524f4e44u, 0x4f000001u };
    float *x = drawn, *y = x + SELF_TEST_DRAWN, *z = y + SELF_TEST_DRAWN, *mask = z + SELF_TEST_DRAWN;
    int32_t *index = (int32_t *)(mask + SELF_TEST_DRAWN);

    for (uint32_t i = 0; i < SELF_TEST_DRAWN; i++) {
        uint32_t counter[4] = { i, 0, 0, 0 }, word[4];
        float scale = i % 11 == 0 ? 30.0f : i % 13 == 0 ? 0x1p-60f : 1.0f;

        philox_block(counter, key, word);
        x[i] = random_normal(word[0]) * scale;
        y[i] = random_normal(word[1]);
        z[i] = random_normal(word[2]) * scale;
        mask[i] = word[3] & 1 ? 1.0f : 0.0f;
        index[i] = (int32_t)(word[3] >> 8) % 37;
        x[i] = i % 97 == 5 ? 0.0f : i % 97 == 6 ? -0.0f : i % 97 == 7 ? f32_from_bits(word[0] & 0x807fffffu) : x[i];
    }
}

static void give(struct self_test *test, bool full)
{
    void *const to[5] = { test->x, test->y, test->z, test->mask, test->index };

    for (size_t b = 0; b < 5; b++) {
        const float *from = test->drawn + b * SELF_TEST_DRAWN;

        memcpy(to[b], from, SELF_TEST_DRAWN * sizeof *from);
        for (size_t i = SELF_TEST_DRAWN; full && i < SELF_TEST_ROOM; i++)
            memcpy((float *)to[b] + i, from + (i * 5 + i / SELF_TEST_DRAWN) % SELF_TEST_DRAWN, sizeof *from);
    }
}

void self_test_make_wild(struct self_test *test, size_t every)
{
    static const uint32_t special[] = {
        0x00000000u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7fc12345u, 0xffd4321fu, 0x00000001u,
        0x807fffffu, 0x00400000u, 0x00800000u, 0x7f7fffffu, 0xff7fffffu, 0x3f800000u, 0xbf800000u, 0x3f000000u,
        0x42b17218u, 0xc2cff1b5u, 0x4b800000u, 0xcb7fffffu, 0x4f000000u, 0xcf000001u, 0x33800000u,
    };
    enum { COUNT = sizeof special / sizeof *special };
    float *const at[3] = { test->x, test->y, test->z };

    for (size_t b = 0; b < 3; b++)
        for (size_t i = b; i < SELF_TEST_ROOM; i += every)
            at[b][i] = f32_from_bits(special[(i / every * (b + 1) + i / COUNT * b) % COUNT]);
}

struct self_test *self_test_new(struct pool *pool, size_t shift)
{
    enum { BUFFERS = 7 };
    struct self_test *test = calloc(1, sizeof *test);
    size_t room = SELF_TEST_ROOM + 64;

    if (!test)
        return NULL;
    test->memory = malloc(BUFFERS * room * sizeof(float) + 64);
    test->drawn = malloc(5 * SELF_TEST_DRAWN * sizeof(float));
    if (!test->memory || !test->drawn) {
        self_test_free(test);
        return NULL;
    }
    float *first = (float *)(((uintptr_t)test->memory + 63) / 64 * 64) + shift % 16;

    test->pool = pool;
    test->x = first;
    test->y = first + room;
    test->z = first + 2 * room;
    test->mask = first + 3 * room;
    test->out = first + 4 * room;
    test->more = first + 5 * room;
    test->index = (int32_t *)(first + 6 * room);
    draw(test->drawn);
    return test;
}

void self_test_free(struct self_test *test)
{
    if (!test)
        return;
    free(test->memory);
    free(test->drawn);
    free(test);
}

void self_test_hash(struct self_test *test, size_t index, bool full, char hash[SELF_TEST_HEX])
{
    uint8_t bytes[16];

    give(test, full);
    digest_start(&test->hash, sizeof bytes);
    (full ? checks[index].run_full : checks[index].run)(test, checks[index].parameter);
    digest_end(&test->hash, bytes);
    digest_hex(bytes, sizeof bytes, hash);
}

void self_test_digest(const char *(*hash)(void *context, size_t index, bool full), void *context, uint8_t digest[32])
{
    struct digest all;

    digest_start(&all, 32);
    for (size_t i = 0; i < self_test_count(); i++) {
        const char *part[6] = { checks[i].name, " ", hash(context, i, false), " ", hash(context, i, true), "\n" };

        for (size_t p = 0; p < 6; p++)
            digest_add(&all, part[p], strlen(part[p]));
    }
    digest_end(&all, digest);
}

void self_test_outer(struct self_test *t, size_t count, size_t rows, size_t columns)
{
    enum { TABLES = 37, MOST = 512 };
    const float *a[MOST], *b[MOST];
    uint32_t order[MOST], starts[TABLES + 1];

    gather_sorted(count, t->index, TABLES, order, starts);
    for (size_t i = 0; i < count; i++) {
        a[i] = t->x + order[i] * 2 * rows;
        b[i] = t->y + order[i] * columns;
    }
    gather_outer_sums(t->pool, TABLES, starts, a, 2, rows, b, columns, t->out);
    self_test_keep(t, t->out, TABLES * rows * columns);
}
