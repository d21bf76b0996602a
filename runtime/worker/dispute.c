#include "runtime/worker/dispute.h"

#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/doc/documents.h"
#include "runtime/worker/dispute_internal.h"
#include "runtime/worker/failure.h"

enum { OPENING_HEAD = 20, VERSION = 1 };

bool dispute_by_tiles(const struct session *s, int64_t index, int64_t steps)
{
    const json_t *trust = json_object_get(s->spec, "trust");

    return !s->rollout.samples && json_integer_value(json_object_get(trust, "checkpoint_every")) <= 1 && index >= 1 &&
           index <= steps;
}

/* --- the step and its values -------------------------------------------------------------------------------------------- */

bool dispute_load(struct dispute_step *d, struct error *err)
{
    struct running *r = &d->running;

    if (d->loaded)
        return true;
    if (!running_load(r, err) || !running_carry(r, d->carry, err))
        return false;
    d->loaded = true;
    d->own = states_tensors(&r->training.states, &r->s->layout, r->values, &d->tensor_count);
    d->tensors = d->own;
    return true;
}

static bool find_shape(struct dispute_step *d, struct error *err)
{
    const struct running *r = &d->running;
    const struct dispute_shape *shape = dispute_shape_of(r->s, r->batch.rows, r->batch.time, r->training.clip, err);

    if (!shape)
        return false;
    d->shape = shape;
    d->g = shape->g;
    d->places = shape->places;
    d->entries = shape->entries;
    d->entry_of = shape->entry_of;
    d->first = shape->first;
    d->entry_count = shape->entry_count;
    if (!d->own) {
        d->tensors = shape->tensors;
        d->tensor_count = shape->tensor_count;
    }
    return true;
}

/* The steps before it, and its batch. */
static bool train_up_to(struct dispute_step *d, const struct job_reporter *to, struct error *err)
{
    struct running *r = &d->running;

    for (int64_t i = 0; i < d->index; i++) {
        if (!running_batch(r, i, err))
            return false;
        if (i + 1 < d->index && !training_step(&r->training, &r->batch, r->rates[i], running_progress(r, i), err))
            return false;
        if (to && i % 16 == 0) {
            json_t *report = json_pack("{s:I, s:I}", "step", (json_int_t)i, "steps", (json_int_t)d->index);

            to->report(to->context, report);
            json_decref(report);
        }
    }
    d->batch = batch_root(&r->batch);
    return true;
}

/* What a batch follows from, in one run. */
static struct hash batch_key(const struct dispute_step *d, const json_t *shards)
{
    const struct running *r = &d->running;
    struct hasher h;
    json_t *shard;
    size_t i;

    hash_start(&h, "rondo/disputed");
    hash_fixed(&h, r->training.random.seed, sizeof r->training.random.seed);
    hash_u64(&h, (uint64_t)d->index);
    hash_u64(&h, (uint64_t)document_integer(r->context, "batches"));
    json_array_foreach(shards, i, shard)
    {
        hash_text(&h, json_string_value(shard) ? json_string_value(shard) : "");
    }
    return hash_end(&h);
}

/* The batch alone; the moves of one dispute share it. */
static bool take_batch(struct dispute_step *d, const json_t *shards, struct error *err)
{
    struct running *r = &d->running;
    struct session_disputed *kept = &r->s->disputed;
    const struct hash key = batch_key(d, shards);

    if (!kept->held || !hash_equal(kept->key, key)) {
        if (!running_data(r, shards, err))
            return false;
        for (int64_t i = 0; i + 1 < d->index; i++)
            sampler_next(&r->sampler, NULL);
        if (!running_batch(r, d->index - 1, err))
            return false;
        batch_free(&kept->batch);
        batch_copy(&kept->batch, &r->batch);
        kept->key = key;
        kept->root = batch_root(&r->batch);
        kept->held = true;
    } else {
        batch_copy(&r->batch, &kept->batch);
    }
    d->batch = kept->root;
    return true;
}

bool dispute_step_new(struct dispute_step *d, struct session *s, const struct dispute_case *c, bool train,
                      const struct job_reporter *to, struct error *err)
{
    struct running *r = &d->running;

    *d = (struct dispute_step){ .index = c->index, .carry = c->carry };
    if (!running_begin(r, s, c->context, err))
        return false;
    if (!dispute_by_tiles(s, c->index, r->steps))
        return error_set(err, ERROR_UNSUPPORTED, "it is judged by a replay", "a dispute by tiles about leaf %lld",
                         (long long)c->index);
    if (!(train ? running_data(r, c->shards, err) && dispute_load(d, err) && train_up_to(d, to, err)
                : take_batch(d, c->shards, err)))
        return false;
    r->training.random.step = (uint64_t)(c->index - 1);
    return find_shape(d, err);
}

void dispute_step_free(struct dispute_step *d)
{
    free(d->own);
    running_free(&d->running);
    *d = (struct dispute_step){ 0 };
}

bool dispute_batch_right(const struct dispute_step *d, const struct dispute_case *c)
{
    return hash_equal(d->batch, c->log->leaves[c->index - 1].batch);
}

void dispute_name(const struct dispute_step *d, uint32_t entry, uint64_t tile, struct dispute_verdict *out)
{
    const struct graph_node *n = &d->g->nodes[d->entries[entry]];

    if (n->op == OPERATOR_RESULT)
        n = &d->g->nodes[graph_inputs(d->g, n)[0]];
    out->operator_name = operator_table[n->op].name;
    out->entry = entry;
    out->tile = tile;
}

/* --- hashing a run ------------------------------------------------------------------------------------------------------ */

struct hashing {
    const struct dispute_step *d;
    struct hash *tiles;
    bool *seen; /* per entry */
};

static void hash_entry(const struct hashing *h, uint32_t entry, const void *bytes, uint64_t size)
{
    const uint8_t *from = bytes;
    struct hash *to = h->tiles + h->d->first[entry];

    for (uint64_t at = 0; at < size; at += TILE_BYTES)
        *to++ = merkle_of(from + at, size - at < TILE_BYTES ? size - at : TILE_BYTES);
    h->seen[entry] = true;
}

static void hash_seen(void *context, uint32_t node, const void *bytes, size_t size)
{
    const struct hashing *h = context;

    if (h->d->entry_of[node] != GRAPH_NONE)
        hash_entry(h, h->d->entry_of[node], bytes, size);
}

/* Where a result lies after the step. */
static const void *result_bytes(const struct dispute_step *d, const char *name)
{
    const struct training *t = &d->running.training;
    const struct state_slot *slot = states_find(&t->states, name);

    if (slot || strcmp(name, "loss") == 0)
        return slot ? slot->data : &t->loss;
    return t->values + t->session->layout.parameters[layout_find(&t->session->layout, name + 2)].offset;
}

struct hash *dispute_tiles(struct dispute_step *d, struct error *err)
{
    struct running *r = &d->running;
    struct hashing h = { d, calloc(d->first[d->entry_count] + 1, sizeof *h.tiles), calloc(d->entry_count + 1, sizeof *h.seen) };
    const int64_t step = d->index - 1;
    bool ok = training_step_seen(&r->training, &r->batch, r->rates[step], running_progress(r, step), hash_seen, &h, err);

    if (!ok && failure_is_everywhere(err)) {
        error_clear(err);
        free(h.seen);
        return h.tiles;
    }
    for (uint32_t i = 0; ok && i < d->g->output_count; i++) {
        const uint32_t node = d->g->outputs[i].node, entry = d->entry_of[node];
        const char *name = graph_text(d->g, d->g->outputs[i].name);

        if (dispute_is_result(name) && !h.seen[entry])
            hash_entry(&h, entry, result_bytes(d, name), dispute_bytes(d, node));
    }
    for (uint32_t i = 0; ok && i < d->entry_count; i++)
        if (!h.seen[i])
            ok = error_set(err, ERROR_FAULT, NULL, "value %u of the step was not computed", i);
    free(h.seen);
    if (ok)
        return h.tiles;
    free(h.tiles);
    return NULL;
}

struct hash dispute_root(const struct dispute_step *d, const struct hash *tiles, uint32_t entry)
{
    struct merkle tree;

    merkle_start(&tree);
    for (uint64_t i = d->first[entry]; i < d->first[entry + 1]; i++)
        merkle_add_hash(&tree, tiles[i]);
    return merkle_root(&tree);
}

/* --- openings ------------------------------------------------------------------------------------------------------------ */

bool dispute_open(struct session *s, const struct dispute_case *c, const struct job_reporter *to, struct buffer *opening,
                  struct error *err)
{
    struct dispute_step d;
    struct hash *tiles = NULL;
    bool ok = dispute_step_new(&d, s, c, true, to, err) && (tiles = dispute_tiles(&d, err)) != NULL;

    if (ok) {
        buffer_add(opening, "RNDO", 4);
        buffer_add_u16(opening, VERSION);
        buffer_add_u16(opening, 0);
        buffer_add_u32(opening, (uint32_t)c->index);
        buffer_add_u64(opening, d.first[d.entry_count]);
        buffer_add(opening, tiles, (size_t)d.first[d.entry_count] * sizeof *tiles);
    }
    free(tiles);
    dispute_step_free(&d);
    return ok;
}

const struct hash *dispute_read_opening(const struct dispute_step *d, const void *bytes, size_t size)
{
    struct reader in = reader_of(bytes, size);
    const uint8_t *magic = reader_bytes(&in, 4);
    const bool head = magic && memcmp(magic, "RNDO", 4) == 0 && reader_u16(&in) == VERSION && reader_u16(&in) == 0 &&
                      reader_u32(&in) == (uint64_t)d->index;
    const uint64_t tiles = head ? reader_u64(&in) : 0;

    if (!in.ok || !head || tiles != d->first[d->entry_count] || reader_left(&in) != tiles * sizeof(struct hash))
        return NULL;
    return (const struct hash *)(const void *)in.at; /* bytes alone: no alignment is asked for */
}

/* Whether the opening's results are the state and the loss of the disputed leaf. */
static bool ends_right(const struct dispute_step *d, const struct hash *tiles, const struct step_leaf *leaf)
{
    const struct hash shown = merkle_leaf(&leaf->loss, sizeof leaf->loss);
    struct hash *roots = calloc(d->tensor_count + 1, sizeof *roots);
    bool right;

    for (size_t i = 0; i < d->tensor_count; i++)
        roots[i] = dispute_root(d, tiles, d->shape->results[i]);
    right = hash_equal(root_of_roots(d->tensors, roots, d->tensor_count), leaf->state) && d->shape->loss != GRAPH_NONE &&
            hash_equal(tiles[d->first[d->shape->loss]], shown);
    free(roots);
    return right;
}

bool dispute_opening(struct session *s, const struct dispute_case *c, const void *opening, size_t size,
                     struct dispute_verdict *out, struct error *err)
{
    struct dispute_step d;
    const bool ok = dispute_step_new(&d, s, c, false, NULL, err);

    *out = (struct dispute_verdict){ .code = "ok", .why = "" };
    if (ok) {
        const struct hash *tiles = dispute_read_opening(&d, opening, size);

        if (!dispute_batch_right(&d, c))
            *out = (struct dispute_verdict){ .code = "upheld", .why = "batch" };
        else if (!tiles)
            *out = (struct dispute_verdict){ .code = "upheld", .why = "malformed" };
        else if (!ends_right(&d, tiles, &c->log->leaves[c->index - 1]))
            *out = (struct dispute_verdict){ .code = "upheld", .why = "results" };
    }
    dispute_step_free(&d);
    return ok;
}
