#include "runtime/role/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/store/object.h"

/* HELD: blocks in memory, those on their way and those that wait to be stored. */
enum {
    AT_ONCE = 8,
    HELD = AT_ONCE + BLOCK_TOGETHER,
    RETRY_MS = 100,
    PAUSE_MOST = 5,
    PATIENCE_MS = 8000,
    PATIENCE_MOST_MS = 64000,
    SLOW_BYTES = 16384
};

struct item {
    struct hash id;
    bool manifest, done;
    uint64_t limit;                 /* of a manifest's object */
    struct http_transfer *transfer; /* while it is asked for */
    struct buffer bytes;            /* what came, until it is stored */
    bool arrived;                   /* then */
    char did[PEER_DID];             /* who is asked */
    size_t turn, asked;             /* place in the list of peers; how many were asked since the last pause */
    unsigned pauses;
    uint64_t not_before;
    struct fetch *fetch;
};

/* Blocks that are checked and stored on a thread of their own. */
struct storing {
    uv_work_t work;
    struct fetch *fetch; /* NULL: it was given up meanwhile */
    struct block_store store;
    struct item *items[BLOCK_TOGETHER];
    struct buffer bytes[BLOCK_TOGETHER];
    struct block_arrival list[BLOCK_TOGETHER];
    size_t count;
    bool ok;
    struct error err;
};

struct fetch {
    struct node *node;
    struct item *piled[HELD]; /* arrived, and not handed on yet */
    size_t pile;
    struct storing *storing;   /* NULL: none is stored now */
    struct buffer spare[HELD]; /* memory of blocks that are stored, for those to come */
    size_t spares;
    struct item **items; /* each on its own: transfers point at them */
    size_t count, capacity, busy, left;
    size_t first;                   /* none before it is still wanted */
    uint64_t deadline, quiet_until; /* nobody is asked before */
    struct fetch *next;             /* in node->fetches */
    uv_timer_t *timer;
    fetch_done *done;
    void *context;
};

static void fetch_pump(struct fetch *f);

static void timer_closed(uv_handle_t *handle)
{
    free(handle);
}

static void fetch_free(struct fetch *f)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->items[i]->transfer)
            http_transfer_cancel(f->items[i]->transfer);
        buffer_free(&f->items[i]->bytes);
        free(f->items[i]);
    }
    if (f->storing)
        f->storing->fetch = NULL;
    free(f->items);
    while (f->spares)
        buffer_free(&f->spare[--f->spares]);
    for (struct fetch **at = &f->node->fetches; *at; at = &(*at)->next)
        if (*at == f) {
            *at = f->next;
            break;
        }
    uv_close((uv_handle_t *)f->timer, timer_closed);
    free(f);
}

static void fetch_end(struct fetch *f, const struct error *err)
{
    fetch_done *done = f->done;
    void *context = f->context;

    fetch_free(f);
    done(context, err);
}

static void add_item(struct fetch *f, struct hash id, bool manifest, uint64_t limit)
{
    if (f->count == f->capacity) {
        f->capacity = f->capacity ? f->capacity * 2 : 32;
        f->items = realloc(f->items, f->capacity * sizeof *f->items);
    }
    f->items[f->count] = calloc(1, sizeof **f->items);
    *f->items[f->count++] =
        (struct item){ .id = id, .manifest = manifest, .limit = limit, .fetch = f, .turn = id.bytes[0] }; /* spreads the load */
    f->left++;
}

/* The block is there: a manifest brings its chunks. False with `err` when the manifest cannot be used. */
static bool settle(struct fetch *f, struct item *item, struct error *err)
{
    struct manifest m;

    item->done = true;
    f->left--;
    if (!item->manifest)
        return true;
    if (!object_manifest(&f->node->blocks, item->id, NULL, item->limit, &m, err))
        return false;
    for (size_t i = 0; i < m.count; i++)
        if (!block_has(&f->node->blocks, m.chunks[i]))
            add_item(f, m.chunks[i], false, 0);
    manifest_free(&m);
    return true;
}

static void store_next(struct fetch *f);

static void storing_free(struct storing *s)
{
    for (size_t i = 0; i < s->count; i++)
        buffer_free(&s->bytes[i]);
    free(s);
}

static void keep_memory(struct fetch *f, struct storing *s)
{
    for (size_t i = 0; i < s->count && f->spares < HELD; i++) {
        f->spare[f->spares++] = s->bytes[i];
        s->bytes[i] = (struct buffer){ 0 };
    }
}

static void store(uv_work_t *work)
{
    struct storing *s = work->data;

    s->ok = block_put_arrived(&s->store, s->list, s->count, &s->err);
}

/* False when the fetch has ended. */
static bool take_stored(struct fetch *f, const struct storing *s)
{
    struct error err = s->err;

    if (!s->ok) { /* the own disk: waiting will not help */
        fetch_end(f, &err);
        return false;
    }
    for (size_t i = 0; i < s->count; i++) {
        struct item *item = s->items[i];

        item->arrived = false;
        peer_list_note(f->node->peers, item->did, s->list[i].good ? PEER_GOOD : PEER_BAD, uv_now(&f->node->loop));
        if (s->list[i].good && !settle(f, item, &err)) {
            fetch_end(f, &err);
            return false;
        }
    }
    return true;
}

static void go_on(struct fetch *f)
{
    if (f->left == 0) {
        fetch_end(f, NULL);
        return;
    }
    store_next(f);
    fetch_pump(f);
}

static void stored(uv_work_t *work, int status)
{
    struct storing *s = work->data;
    struct fetch *f = s->fetch;

    (void)status;
    if (f) {
        f->storing = NULL;
        keep_memory(f, s);
        if (take_stored(f, s))
            go_on(f);
    }
    storing_free(s);
}

/* A whole group when more are on their way, else what there is; a manifest at once, since its chunks can be asked for then. */
static bool is_due(const struct fetch *f)
{
    bool manifest = false;

    for (size_t i = 0; i < f->pile; i++)
        manifest = manifest || f->piled[i]->manifest;
    return f->pile && (f->pile >= AT_ONCE || f->busy == 0 || manifest);
}

static void store_next(struct fetch *f)
{
    if (f->storing || !is_due(f))
        return;

    struct storing *s = calloc(1, sizeof *s);

    *s = (struct storing){ .fetch = f, .store = f->node->blocks };
    s->work.data = s;
    s->count = f->pile < BLOCK_TOGETHER ? f->pile : BLOCK_TOGETHER;
    for (size_t i = 0; i < s->count; i++) {
        s->items[i] = f->piled[i];
        s->bytes[i] = f->piled[i]->bytes;
        f->piled[i]->bytes = (struct buffer){ 0 };
        s->list[i] = (struct block_arrival){ .id = s->items[i]->id, .bytes = s->bytes[i].bytes, .size = s->bytes[i].size };
    }
    f->pile -= s->count;
    memmove(f->piled, f->piled + s->count, f->pile * sizeof *f->piled);
    f->storing = s;
    uv_queue_work(&f->node->loop, &s->work, store, stored);
}

static void answered(void *context, struct http_answer *answer)
{
    struct item *item = context;
    struct fetch *f = item->fetch;
    struct error err = { 0 };

    item->transfer = NULL;
    f->busy--;
    if (http_answer_ok(answer, &err)) {
        item->bytes = answer->body;
        answer->body = (struct buffer){ 0 };
        item->arrived = true;
        f->piled[f->pile++] = item;
    } else if (answer->status != 404) {
        peer_list_note(f->node->peers, item->did, PEER_SILENT, uv_now(&f->node->loop));
    }
    go_on(f);
}

/* The next peer that is not in its back-off. Everybody is asked in turn, whatever the score: the block may lie with one alone. When all
 * were asked there is a pause. */
static const struct peer *next_peer(struct fetch *f, struct item *item)
{
    size_t count = peer_list_count(f->node->peers);
    uint64_t now = uv_now(&f->node->loop);

    for (size_t i = 0; i < count && now >= item->not_before; i++) {
        const struct peer *peer = peer_list_at(f->node->peers, item->turn++ % count);

        if (++item->asked >= count) {
            item->asked = 0;
            item->not_before = now + ((uint64_t)RETRY_MS << item->pauses);
            item->pauses += item->pauses < PAUSE_MOST;
        }
        if (now >= peer->retry_ms)
            return peer;
    }
    return NULL;
}

/* False when nobody can be asked now. */
static bool ask(struct fetch *f, struct item *item)
{
    const struct peer *peer = next_peer(f, item);
    char path[128], cid[CID_TEXT];
    struct error err = { 0 };

    if (!peer)
        return false;
    snprintf(item->did, sizeof item->did, "%s", peer->did);
    snprintf(path, sizeof path, "/v1/blocks/%s", cid_text(item->id, cid));

    char *url = http_url_join(peer->endpoint, path);
    unsigned patience = PATIENCE_MS << item->pauses;
    struct buffer space = f->spares ? f->spare[--f->spares] : (struct buffer){ 0 };
    struct http_call call = { .method = "GET",
                              .url = url,
                              .limit = BLOCK_SIZE,
                              .bulk = true,
                              .space = &space,
                              .connect_ms = 3000,
                              .slow_bytes = item->pauses ? 0 : SLOW_BYTES,
                              .total_ms = patience < PATIENCE_MOST_MS ? patience : PATIENCE_MOST_MS };

    item->transfer = http_client_send(f->node->client, &call, answered, item, &err);
    buffer_free(&space); /* empty, unless nothing was sent */
    free(url);
    if (!item->transfer) {
        peer_list_note(f->node->peers, item->did, PEER_SILENT, uv_now(&f->node->loop)); /* an address that may not be used */
        return false;
    }
    f->busy++;
    return true;
}

static void due(uv_timer_t *timer)
{
    struct fetch *f = timer->data;
    struct error err = { 0 };

    if (f->left == 0) {
        fetch_end(f, NULL);
        return;
    }
    if (uv_now(&f->node->loop) >= f->deadline) {
        char cid[CID_TEXT] = "";

        for (size_t i = 0; i < f->count; i++)
            if (!f->items[i]->done)
                cid_text(f->items[i]->id, cid);
        error_set(&err, ERROR_MISSING, NULL, "no peer gave block %s in time", cid);
        fetch_end(f, &err);
        return;
    }
    fetch_pump(f);
}

static size_t held(const struct fetch *f)
{
    return f->busy + f->pile + (f->storing ? f->storing->count : 0);
}

static void fetch_pump(struct fetch *f)
{
    while (f->first < f->count && f->items[f->first]->done)
        f->first++;
    for (size_t i = f->first; i < f->count && f->busy < AT_ONCE && held(f) < HELD; i++) {
        struct item *item = f->items[i];
        struct error err = { 0 };

        if (item->done || item->transfer || item->arrived)
            continue;
        if (block_has(&f->node->blocks, item->id)) {
            if (!settle(f, item, &err)) {
                fetch_end(f, &err);
                return;
            }
            continue;
        }
        if (uv_now(&f->node->loop) >= f->quiet_until)
            ask(f, item);
    }
    uv_timer_start(f->timer, due, f->left == 0 ? 0 : RETRY_MS, 0);
}

static uint64_t limit_of(const struct fetch_want *want, uint64_t most)
{
    return want->limit && want->limit < most ? want->limit : most;
}

struct fetch *fetch_start(struct node *node, const struct fetch_want *wants, size_t count, uint64_t object_limit,
                          unsigned limit_ms, fetch_done *done, void *context)
{
    struct fetch *f = calloc(1, sizeof *f);

    *f = (struct fetch){ .node = node, .deadline = uv_now(&node->loop) + limit_ms, .done = done, .context = context };
    f->next = node->fetches;
    node->fetches = f;
    f->timer = calloc(1, sizeof *f->timer);
    uv_timer_init(&node->loop, f->timer);
    f->timer->data = f;
    for (size_t i = 0; i < count; i++)
        add_item(f, wants[i].id, wants[i].object, limit_of(&wants[i], object_limit));
    uv_timer_start(f->timer, due, 0, 0);
    return f;
}

void fetch_expect(struct fetch *f, unsigned ms)
{
    f->quiet_until = uv_now(&f->node->loop) + ms;
}

void fetch_arrived(struct node *node)
{
    for (struct fetch *f = node->fetches; f; f = f->next)
        uv_timer_start(f->timer, due, 0, 0);
}

void fetch_cancel(struct fetch *f)
{
    if (f)
        fetch_free(f);
}

/* False when it cannot be deleted. */
static bool mend_block(const struct block_store *store, struct hash id, struct error *err)
{
    struct buffer bytes = { 0 };
    struct error fault = { 0 };
    const bool spoiled = !block_get(store, id, &bytes, &fault) && fault.code == ERROR_DAMAGED;

    buffer_free(&bytes);
    return !spoiled || block_delete(store, id, err);
}

bool fetch_mend(struct node *node, const struct fetch_want *wants, size_t count, uint64_t object_limit, struct error *err)
{
    bool ok = true;

    for (size_t i = 0; ok && i < count; i++) {
        struct manifest m = { 0 };
        struct error absent = { 0 };

        ok = mend_block(&node->blocks, wants[i].id, err);
        if (ok && wants[i].object &&
            object_manifest(&node->blocks, wants[i].id, NULL, limit_of(&wants[i], object_limit), &m, &absent))
            for (size_t k = 0; ok && k < m.count; k++)
                ok = mend_block(&node->blocks, m.chunks[k], err);
        manifest_free(&m);
    }
    return ok;
}

bool fetch_complete(struct node *node, const struct fetch_want *wants, size_t count, uint64_t object_limit)
{
    for (size_t i = 0; i < count; i++) {
        struct manifest m;
        struct error err = { 0 };
        bool all = true;

        if (!block_has(&node->blocks, wants[i].id))
            return false;
        if (!wants[i].object)
            continue;
        if (!object_manifest(&node->blocks, wants[i].id, NULL, limit_of(&wants[i], object_limit), &m, &err))
            return false;
        for (size_t j = 0; all && j < m.count; j++)
            all = block_has(&node->blocks, m.chunks[j]);
        manifest_free(&m);
        if (!all)
            return false;
    }
    return true;
}
