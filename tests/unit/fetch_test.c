/* fetch_test.c - an object from several holders at once: liars and sleepers among them, and broken off in between. */
#include "runtime/role/fetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/file.h"
#include "runtime/store/object.h"
#include "tests/fixture/fixture.h"

enum { CHUNKS = 10, HOLDERS = 4 };

enum manner { HONEST, RUBBISH, SILENT, GONE };

struct place;

struct holder {
    struct place *place;
    struct block_store *blocks; /* of all: whoever is honest has everything */
    struct http_server *server;
    enum manner manner;
    unsigned asked, given;
};

struct place {
    char folder[64];
    struct node node;
    struct block_store source;
    struct holder holders[HOLDERS];
    struct hash id;
    int ends;
    struct error ended;
    struct hash held[CHUNKS + 1]; /* when the last fetch began */
    size_t held_count;
    unsigned again; /* blocks asked for that were held then */
};

static void count_again(struct place *p, struct hash id)
{
    for (size_t i = 0; i < p->held_count; i++)
        p->again += hash_equal(p->held[i], id);
}

static void get_block(struct http_request *request, void *context)
{
    struct holder *h = context;
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    struct hash id;

    h->asked++;
    if (h->manner == SILENT) {
        http_request_defer(request, 30000, NULL, NULL);
        return;
    }
    if (h->manner == GONE || !cid_parse(http_request_parameter(request, "cid"), &id, &err) ||
        !block_get(h->blocks, id, &bytes, &err)) {
        http_answer_refusal(request, 404, ERROR_MISSING, NULL, "not here");
        return;
    }
    count_again(h->place, id);
    if (h->manner == RUBBISH)
        bytes.bytes[bytes.size / 2] ^= 1;
    h->given++;
    http_answer_buffer(request, 200, "application/vnd.ipld.raw", &bytes);
    buffer_free(&bytes);
}

static const struct http_route routes[] = { { "GET", "/v1/blocks/{cid}", 0, NULL, get_block }, { 0 } };

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct error err = { 0 };
    char path[128], did[32];
    size_t size = (CHUNKS - 1) * BLOCK_SIZE + 777;
    uint8_t *bytes = malloc(size);

    assert_true(sodium_init() >= 0);
    snprintf(p->folder, sizeof p->folder,
             "/dev/shm/rondo-fetch-XXXXXX"); /* thousands of small writes: in memory where there is room */
    if (!mkdtemp(p->folder))
        fixture_folder(p->folder);
    uv_loop_init(&p->node.loop);
    snprintf(path, sizeof path, "%s/blocks", p->folder);
    assert_true(block_store_open(path, &p->node.blocks, &err));
    snprintf(path, sizeof path, "%s/source", p->folder);
    assert_true(block_store_open(path, &p->source, &err));
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i / BLOCK_SIZE * 37 + i % 251);
    assert_true(object_put(&p->source, "application/x", bytes, size, &p->id, &err));
    free(bytes);
    p->node.peers = peer_list_new();
    p->node.client = http_client_new(&p->node.loop, NULL, &err);
    for (int i = 0; i < HOLDERS; i++) {
        struct holder *h = &p->holders[i];
        struct http_server_options options = { .routes = routes, .context = h };

        h->place = p;
        h->blocks = &p->source;
        h->server = http_server_new(&p->node.loop, &options, &err);
        snprintf(did, sizeof did, "did:key:z%d", i);
        assert_true(peer_list_put(p->node.peers, did, http_server_url(h->server), 0, &err));
    }
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    http_client_free(p->node.client);
    for (int i = 0; i < HOLDERS; i++)
        http_server_free(p->holders[i].server);
    uv_run(&p->node.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&p->node.loop), 0);
    peer_list_free(p->node.peers);
    fixture_remove(p->folder);
    free(p);
    return 0;
}

static void ended(void *context, const struct error *err)
{
    struct place *p = context;

    p->ends++;
    p->ended = err ? *err : (struct error){ 0 };
}

static struct fetch *begin(struct place *p)
{
    return fetch_start(&p->node, &(struct fetch_want){ .id = p->id, .object = true }, 1, UINT64_C(1) << 30, 60000, ended, p);
}

static void finish(struct place *p)
{
    uint64_t begun = uv_hrtime();

    while (!p->ends && uv_hrtime() - begun < UINT64_C(40000000000))
        uv_run(&p->node.loop, UV_RUN_ONCE);
    assert_int_equal(p->ends, 1);
    assert_int_equal(p->ended.code, ERROR_NONE);
}

static bool have_all(struct place *p)
{
    struct buffer bytes = { 0 };
    bool ok = object_get(&p->node.blocks, p->id, NULL, UINT64_MAX, &bytes, NULL);

    buffer_free(&bytes);
    return ok;
}

static unsigned given(const struct place *p)
{
    unsigned sum = 0;

    for (int i = 0; i < HOLDERS; i++)
        sum += p->holders[i].given;
    return sum;
}

static void several_holders_give_an_object_together(void **state)
{
    struct place *p = *state;
    unsigned used = 0;

    begin(p);
    finish(p);
    assert_true(have_all(p));
    assert_int_equal(given(p), CHUNKS + 1); /* and the manifest: nothing twice */
    for (int i = 0; i < HOLDERS; i++)
        used += p->holders[i].given > 0;
    assert_true(used > 1);
}

static void liars_and_those_who_have_nothing_do_not_keep_it(void **state)
{
    struct place *p = *state;

    p->holders[0].manner = RUBBISH;
    p->holders[1].manner = GONE;
    p->holders[2].manner = RUBBISH;
    begin(p);
    finish(p);
    assert_true(have_all(p));
    assert_true(p->holders[3].given >= CHUNKS);
    assert_true(peer_list_find(p->node.peers, "did:key:z0")->score < peer_list_find(p->node.peers, "did:key:z3")->score);
}

/* Who says nothing is left alone after three seconds, long before its whole time is up. */
static void sleepers_are_dropped(void **state)
{
    struct place *p = *state;
    uint64_t begun = uv_hrtime();

    p->holders[1].manner = p->holders[2].manner = SILENT;
    begin(p);
    finish(p);
    assert_true(have_all(p));
    assert_true(uv_hrtime() - begun < UINT64_C(30000000000));
}

static bool count_block(void *context, struct hash id)
{
    (void)id;
    ++*(size_t *)context;
    return true;
}

static size_t blocks_here(const struct place *p)
{
    size_t count = 0;

    assert_true(block_each(&p->node.blocks, count_block, &count, NULL));
    return count;
}

static bool note_held(void *context, struct hash id)
{
    struct place *p = context;

    p->held[p->held_count++] = id;
    return true;
}

static struct fetch *begin_again(struct place *p)
{
    p->held_count = 0;
    assert_true(block_each(&p->node.blocks, note_held, p, NULL));
    return begin(p);
}

static void a_fetch_that_was_broken_off_goes_on_with_what_lacks(void **state)
{
    struct place *p = *state;

    for (int turn = 0; turn < 4 && !p->ends; turn++) {
        struct fetch *f = begin_again(p);

        while (!p->ends && blocks_here(p) == p->held_count)
            uv_run(&p->node.loop, UV_RUN_ONCE);
        if (!p->ends)
            fetch_cancel(f);
    }
    if (!p->ends) {
        begin_again(p);
        finish(p);
    }
    assert_true(have_all(p));
    assert_int_equal(p->again, 0);
}

static void what_nobody_has_is_missing_in_time(void **state)
{
    struct place *p = *state;

    for (int i = 0; i < HOLDERS; i++)
        p->holders[i].manner = GONE;
    fetch_start(&p->node, &(struct fetch_want){ .id = p->id, .object = true }, 1, UINT64_C(1) << 30, 700, ended, p);
    while (!p->ends)
        uv_run(&p->node.loop, UV_RUN_ONCE);
    assert_int_equal(p->ended.code, ERROR_MISSING);
}

/* What the own disk has spoiled is nobody's word: it goes, and comes again from a holder. */
static void what_the_disk_has_spoiled_is_fetched_again(void **state)
{
    struct place *p = *state;
    const struct fetch_want want = { .id = p->id, .object = true };
    struct manifest m;
    struct error err = { 0 };
    struct buffer bytes = { 0 };
    char path[300], cid[CID_TEXT];

    begin(p);
    finish(p);
    assert_true(object_manifest(&p->node.blocks, p->id, NULL, UINT64_MAX, &m, &err));
    snprintf(path, sizeof path, "%s/blocks/%s", p->folder, cid_text(m.chunks[3], cid));
    assert_true(file_write(path, "rot", 3, 0644, &err));
    assert_true(fetch_complete(&p->node, &want, 1, UINT64_MAX)); /* by its names */
    assert_false(object_get(&p->node.blocks, p->id, NULL, UINT64_MAX, &bytes, &err));
    assert_int_equal(err.code, ERROR_DAMAGED);
    assert_true(fetch_mend(&p->node, &want, 1, UINT64_MAX, &err));
    assert_false(fetch_complete(&p->node, &want, 1, UINT64_MAX));
    p->ends = 0;
    begin(p);
    finish(p);
    assert_true(have_all(p));
    assert_int_equal(given(p), CHUNKS + 2); /* that one alone */
    manifest_free(&m);
    buffer_free(&bytes);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(several_holders_give_an_object_together),
        T(liars_and_those_who_have_nothing_do_not_keep_it),
        T(sleepers_are_dropped),
        T(a_fetch_that_was_broken_off_goes_on_with_what_lacks),
        T(what_nobody_has_is_missing_in_time),
        T(what_the_disk_has_spoiled_is_fetched_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
