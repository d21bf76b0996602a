#include "runtime/role/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "runtime/doc/documents.h"
#include "runtime/role/course.h"
#include "runtime/store/object.h"
#include "tests/fixture/fixture.h"

enum { SHARDS = 5, LIMIT = 1 << 24 };

/* Rows {"text": "NAME i"} for i from `first` on, `count` of them, backwards when asked for. */
static struct buffer rows_of_name(const char *name, int first, int count, bool backwards)
{
    struct buffer b = { 0 };

    for (int i = 0; i < count; i++)
        buffer_printf(&b, "{\"text\": \"%s %05d\"}\n", name, first + (backwards ? count - 1 - i : i));
    return b;
}

static void write_file(struct fixture_place *f, const char *name, struct buffer *bytes, char path[128])
{
    snprintf(path, 128, "%s/%s", f->folder, name);
    assert_true(file_write(path, bytes->bytes, bytes->size, 0600, NULL));
    buffer_free(bytes);
}

static json_t *manifest_of(struct fixture_place *f, const json_t *dataset)
{
    struct buffer bytes = { 0 };
    struct hash id;
    json_t *manifest;

    assert_true(cid_parse(json_string_value(json_object_get(dataset, "manifest")), &id, NULL));
    assert_true(block_get(&f->blocks, id, &bytes, NULL));
    manifest = json_read((const char *)bytes.bytes, bytes.size, LIMIT, NULL);
    assert_non_null(manifest);
    buffer_free(&bytes);
    return manifest;
}

/* The shard that holds the row, -1 for none; `which` of SHARDS texts. */
static int shard_with(struct buffer *texts, const char *row)
{
    int found = -1;

    for (int i = 0; i < SHARDS; i++)
        if (strstr(buffer_text(&texts[i]), row)) {
            assert_int_equal(found, -1); /* once */
            found = i;
        }
    return found;
}

/* Puts the dataset (the reference is taken) and reads its shards; the manifest. */
static json_t *put(struct fixture_place *f, json_t *dataset, struct buffer *texts)
{
    struct error err = { 0 };
    json_t *manifest, *shard;
    size_t i;

    if (!dataset_put(&f->blocks, dataset, &err))
        fail_msg("%s: %s", err.place, err.message);
    assert_null(json_object_get(dataset, "files"));
    assert_null(json_object_get(dataset, "seed"));
    manifest = manifest_of(f, dataset);
    json_array_foreach(json_object_get(manifest, "shards"), i, shard)
    {
        struct hash id;

        assert_true(cid_parse(document_text(shard, "object"), &id, NULL));
        texts[i] = (struct buffer){ 0 };
        assert_true(object_get(&f->blocks, id, SHARD_MEDIA, LIMIT, &texts[i], NULL));
    }
    assert_int_equal(i, SHARDS);
    json_decref(dataset);
    return manifest;
}

static void texts_free(struct buffer *texts)
{
    for (int i = 0; i < SHARDS; i++)
        buffer_free(&texts[i]);
}

static void rows_that_are_appended_move_no_other_row(void **state)
{
    struct fixture_place *f = *state;
    struct buffer before[SHARDS], after[SHARDS], bytes = rows_of_name("a", 0, 300, false);
    char path[128], more[128];

    write_file(f, "a.jsonl", &bytes, path);
    json_decref(put(f, json_pack("{s:[s], s:i}", "files", path, "shards", SHARDS), before));
    bytes = rows_of_name("b", 0, 200, false);
    write_file(f, "b.jsonl", &bytes, more);
    json_decref(put(f, json_pack("{s:[s, s], s:i}", "files", path, more, "shards", SHARDS), after));
    for (int i = 0; i < SHARDS; i++) {
        assert_true(before[i].size > 0 && after[i].size > before[i].size);
        assert_memory_equal(before[i].bytes, after[i].bytes, before[i].size); /* the old shard begins the new one */
    }
    texts_free(before);
    texts_free(after);
}

static void a_compressed_file_gives_the_same_manifest(void **state)
{
    struct fixture_place *f = *state;
    struct buffer texts[SHARDS], packed = { 0 }, bytes = rows_of_name("a", 0, 300, false);
    char plain[128], zstd[128];
    json_t *a, *b;

    buffer_reserve(&packed, ZSTD_compressBound(bytes.size));
    packed.size = ZSTD_compress(packed.bytes, ZSTD_compressBound(bytes.size), bytes.bytes, bytes.size, 3);
    write_file(f, "a.jsonl", &bytes, plain);
    write_file(f, "a.zst", &packed, zstd);
    a = put(f, json_pack("{s:[s], s:i}", "files", plain, "shards", SHARDS), texts);
    texts_free(texts);
    b = put(f, json_pack("{s:[s], s:i}", "files", zstd, "shards", SHARDS), texts);
    texts_free(texts);
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
}

static json_t *a_mix(const char *a, double share_a, const char *b, double share_b, int seed)
{
    return json_pack("{s:i, s:i, s:[{s:s, s:s, s:f, s:[s]}, {s:s, s:s, s:f, s:[s]}]}", "shards", SHARDS, "seed", seed, "corpora",
                     "name", "a", "licence", "Apache-2.0", "share", share_a, "files", a, "name", "b", "licence", "CC-BY-4.0",
                     "share", share_b, "files", b);
}

static int64_t told(const json_t *manifest, size_t corpus, const char *field)
{
    return json_integer_value(json_object_get(json_array_get(json_object_get(manifest, "corpora"), corpus), field));
}

static void corpora_are_mixed_by_their_shares_of_bytes(void **state)
{
    struct fixture_place *f = *state;
    struct buffer texts[SHARDS], bytes = rows_of_name("a", 0, 100, false);
    char a[128], b[128];
    json_t *manifest;

    write_file(f, "a.jsonl", &bytes, a);
    bytes = rows_of_name("b", 0, 1000, false);
    write_file(f, "b.jsonl", &bytes, b);
    manifest = put(f, a_mix(a, 0.25, b, 0.75, 1), texts);
    assert_int_equal(told(manifest, 0, "rows"), 100); /* all of the scarce one */
    assert_int_equal(told(manifest, 1, "rows"), 300);
    assert_int_equal(told(manifest, 1, "of_rows"), 1000);
    assert_int_equal(told(manifest, 1, "size"), 3 * told(manifest, 0, "size"));
    assert_int_equal(json_integer_value(json_object_get(manifest, "rows")), 400);
    assert_string_equal(document_text(json_array_get(json_object_get(manifest, "corpora"), 1), "licence"), "CC-BY-4.0");
    assert_string_equal(document_text(json_array_get(json_object_get(manifest, "corpora"), 1), "share"), "0.75");
    assert_int_equal(json_integer_value(json_object_get(manifest, "seed")), 1);
    texts_free(texts);
    json_decref(manifest);
}

/* Which of the rows "NAME 00000" to "NAME 00999" are in. */
static size_t taken(struct buffer *texts, const char *name, bool in[1000])
{
    size_t sum = 0;
    char row[40];

    for (int i = 0; i < 1000; i++) {
        snprintf(row, sizeof row, "\"%s %05d\"", name, i);
        sum += in[i] = shard_with(texts, row) >= 0;
    }
    return sum;
}

static void a_mix_follows_from_the_seed_and_the_rows_not_from_their_order(void **state)
{
    struct fixture_place *f = *state;
    struct buffer texts[SHARDS], bytes = rows_of_name("a", 0, 100, false);
    char a[128], b[128], backwards[128];
    bool first[1000], second[1000];
    size_t differ = 0;

    write_file(f, "a.jsonl", &bytes, a);
    bytes = rows_of_name("b", 0, 1000, false);
    write_file(f, "b.jsonl", &bytes, b);
    bytes = rows_of_name("b", 0, 1000, true);
    write_file(f, "c.jsonl", &bytes, backwards);
    json_decref(put(f, a_mix(a, 0.5, b, 0.5, 1), texts));
    assert_int_equal(taken(texts, "b", first), 100);
    texts_free(texts);
    json_decref(put(f, a_mix(a, 0.5, backwards, 0.5, 1), texts));
    assert_int_equal(taken(texts, "b", second), 100);
    texts_free(texts);
    assert_memory_equal(first, second, sizeof first);
    json_decref(put(f, a_mix(a, 0.5, b, 0.5, 2), texts));
    assert_int_equal(taken(texts, "b", second), 100);
    texts_free(texts);
    for (int i = 0; i < 1000; i++)
        differ += first[i] != second[i];
    assert_true(differ > 100); /* another seed, other rows */
}

static void refused(struct fixture_place *f, json_t *dataset, const char *place, const char *message)
{
    struct error err = { 0 };

    assert_false(dataset_put(&f->blocks, dataset, &err));
    if (!strstr(err.place, place) || !strstr(err.message, message))
        fail_msg("\"%s: %s\", wanted \"%s: %s\"", err.place, err.message, place, message);
    json_decref(dataset);
}

static void a_mix_that_cannot_be_kept_is_refused_where_it_stands(void **state)
{
    struct fixture_place *f = *state;
    struct buffer bytes = rows_of_name("a", 0, 100, false), empty = { 0 };
    char a[128], none[128];
    json_t *both;

    write_file(f, "a.jsonl", &bytes, a);
    write_file(f, "none.jsonl", &empty, none);
    refused(f, a_mix(a, 0.5, a, 0.25, 0), "dataset: corpora", "add up to 0.75");
    refused(f, a_mix(a, 0, a, 1, 0), "dataset: corpora[0]: share", "a number above 0");
    refused(f, a_mix(a, 0.5, none, 0.5, 0), "dataset: corpora[1]: files", "hold no row");
    refused(f, a_mix(a, 0.5, a, 0.5, -1), "dataset.seed", "a whole number from 0");
    refused(f, a_mix(a, 0.5, "/none.jsonl", 0.5, 0), "corpora[1]: /none.jsonl", "cannot open");
    both = a_mix(a, 0.5, a, 0.5, 0);
    json_object_set_new(both, "files", json_pack("[s]", a));
    refused(f, both, "dataset.files", "files in the dataset and in its corpora");
    both = a_mix(a, 0.5, a, 0.5, 0);
    json_object_del(json_array_get(json_object_get(both, "corpora"), 1), "files");
    refused(f, both, "dataset: corpora[1]: files", "not a list");
    refused(f, json_pack("{s:[s], s:i}", "files", a, "shards", 0), "dataset.shards", "not between 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_that_are_appended_move_no_other_row, fixture_place_new, fixture_place_free),
        cmocka_unit_test_setup_teardown(a_compressed_file_gives_the_same_manifest, fixture_place_new, fixture_place_free),
        cmocka_unit_test_setup_teardown(corpora_are_mixed_by_their_shares_of_bytes, fixture_place_new, fixture_place_free),
        cmocka_unit_test_setup_teardown(a_mix_follows_from_the_seed_and_the_rows_not_from_their_order, fixture_place_new,
                                        fixture_place_free),
        cmocka_unit_test_setup_teardown(a_mix_that_cannot_be_kept_is_refused_where_it_stands, fixture_place_new,
                                        fixture_place_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
