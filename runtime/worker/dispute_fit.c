#include "runtime/worker/dispute_fit.h"

#include "native/graph/operator.h"
#include "runtime/worker/dispute_internal.h"
#include "runtime/worker/dispute_reads.h"

enum { BATCHES = 64, OPENING_HEAD = 20, PICK_HEAD = 28 };

/* The shape of the largest batch among the first; r->training.clip is set. */
static bool find_batch(struct running *r, const json_t *shards, struct dispute_fit *out, struct error *err)
{
    if (!running_data(r, shards, err))
        return false;
    for (int64_t i = 0; i < r->steps && i < BATCHES; i++) {
        sampler_next(&r->sampler, &r->batch);

        const int64_t size = r->batch.rows * r->batch.time, most = out->rows * out->time;

        if (size > most || (size == most && r->batch.time > out->time)) {
            out->rows = r->batch.rows;
            out->time = r->batch.time;
        }
    }
    return true;
}

struct reading {
    struct merkle_part *part;
    size_t element;
};

static void note_run(void *context, uint64_t first, uint64_t count)
{
    const struct reading *r = context;

    merkle_part_want(r->part, first * r->element, count * r->element);
}

/* Bytes that a pick shows of the parts of one base: their leaves, and at most a sibling for each level and end of a run of them. */
static uint64_t shown_bytes(const struct merkle_part *part)
{
    uint64_t leaves = 0, ends = 0, levels = 0;

    for (uint64_t i = 0; i < part->leaves; i++) {
        leaves += part->wanted[i];
        ends += i > 0 && part->wanted[i] != part->wanted[i - 1];
    }
    while (part->leaves >> levels > 1)
        levels++;
    return leaves * MERKLE_LEAF + ends * levels * HASH_SIZE;
}

/* Adds what a pick shows of one base, for all parts that read it. */
static uint64_t base_bytes(const struct dispute_shape *shape, const struct dispute_reads *reads, uint32_t base)
{
    const struct graph_node *n = &shape->g->nodes[base];
    const size_t element = type_bytes(n->type);
    struct merkle_part part;
    uint64_t bytes;

    merkle_part_new(&part, n->values * element);
    for (size_t t = 0; t < reads->count; t++)
        for (uint32_t i = 0; i < reads->tiles[t].part_count; i++)
            if (reads->tiles[t].parts[i].base == base)
                tile_part_runs(&reads->tiles[t].parts[i], note_run, &(struct reading){ &part, element });
    bytes = shown_bytes(&part);
    merkle_part_free(&part);
    return bytes;
}

/* Whether an earlier part reads that base, too. */
static bool is_counted(const struct dispute_reads *reads, size_t tile, uint32_t part)
{
    const uint32_t base = reads->tiles[tile].parts[part].base;

    for (size_t t = 0; t <= tile; t++)
        for (uint32_t i = 0; i < (t < tile ? reads->tiles[t].part_count : part); i++)
            if (reads->tiles[t].parts[i].base == base)
                return true;
    return false;
}

static bool tile_pick(const struct session *s, const struct dispute_shape *shape, uint32_t node, uint64_t first, uint64_t count,
                      uint64_t *bytes, struct error *err)
{
    struct dispute_reads reads;

    if (!dispute_reads_new(shape, node, first, count, s->shown, &reads, err))
        return false;
    *bytes = PICK_HEAD + shape->tensor_count * HASH_SIZE;
    for (size_t t = 0; t < reads.count; t++)
        for (uint32_t i = 0; i < reads.tiles[t].part_count; i++) {
            const uint32_t base = reads.tiles[t].parts[i].base;

            if (dispute_is_shown(shape, base) && !dispute_reads_makes(&reads, base) && !is_counted(&reads, t, i))
                *bytes += base_bytes(shape, &reads, base);
        }
    dispute_reads_free(&reads);
    return true;
}

static bool find_pick(const struct session *s, const struct dispute_shape *shape, struct dispute_fit *out, struct error *err)
{
    for (uint32_t i = 0; i < shape->entry_count; i++) {
        const struct graph_node *n = &shape->g->nodes[shape->entries[i]];
        const uint64_t whole = TILE_BYTES / type_bytes(n->type), tiles = shape->first[i + 1] - shape->first[i];

        for (uint64_t tile = 0; tile < tiles; tile += tiles - 1 ? tiles - 1 : 1) { /* the first and the last */
            const uint64_t first = tile * whole, left = n->values - first;
            uint64_t bytes;

            if (!tile_pick(s, shape, shape->entries[i], first, left < whole ? left : whole, &bytes, err))
                return false;
            if (bytes > out->pick) {
                out->pick = bytes;
                out->operator_name = operator_table[n->op].name;
            }
        }
    }
    return true;
}

bool dispute_fit(struct session *s, const json_t *context, const json_t *shards, struct dispute_fit *out, struct error *err)
{
    struct running r;
    const struct dispute_shape *shape;
    bool ok;

    *out = (struct dispute_fit){ .allowed = s->memory, .operator_name = "" };
    ok = running_begin(&r, s, context, err);
    if (ok && dispute_by_tiles(s, 1, r.steps)) {
        ok = find_batch(&r, shards, out, err) &&
             session_step_bytes(s, out->rows, out->time, r.training.clip, &out->step, &out->traced, err) &&
             (shape = dispute_shape_of(s, out->rows, out->time, r.training.clip, err)) != NULL && find_pick(s, shape, out, err);
        if (ok)
            out->opening = OPENING_HEAD + shape->first[shape->entry_count] * HASH_SIZE;
    }
    running_free(&r);
    return ok || error_at(err, "dispute");
}

json_t *job_fit(struct session *s, const json_t *job, struct error *err)
{
    struct dispute_fit fit;

    if (!dispute_fit(s, json_object_get(job, "context"), json_object_get(job, "shards"), &fit, err))
        return NULL;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I}", "rows", (json_int_t)fit.rows, "time", (json_int_t)fit.time,
                     "step", (json_int_t)fit.step, "traced", (json_int_t)fit.traced, "allowed", (json_int_t)fit.allowed,
                     "opening", (json_int_t)fit.opening, "pick", (json_int_t)fit.pick, "operator", fit.operator_name, "limit",
                     (json_int_t)DISPUTE_OBJECT);
}
