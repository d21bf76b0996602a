#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/worker/dispute_internal.h"
#include "runtime/worker/dispute_reads.h"
#include "runtime/worker/failure.h"

enum { VERSION = 1 };

/* --- which parts a tile needs ---------------------------------------------------------------------------------------------- */

/* The memory of one operand: what of it is needed, whose word it rests on, and the bytes that are there. */
struct evidence {
    uint32_t base;
    struct merkle_part part;
    void *bytes; /* mapped: only what is needed is filled in; NULL where everybody knows it (`known`) */
    const void *known;
    long tensor; /* of the state, or -1 */
};

struct exhibit {
    struct dispute_step *d;
    struct dispute_reads reads;
    struct evidence *list; /* ascending by base; owned */
    size_t count;
    const void **data; /* per node of the graph; owned */
    void **made;       /* of reads.tiles from the second on; owned */
};

static void exhibit_free(struct exhibit *x)
{
    for (size_t i = 0; i < x->count; i++) {
        if (x->list[i].bytes)
            munmap(x->list[i].bytes, x->list[i].part.size + 1);
        merkle_part_free(&x->list[i].part);
    }
    for (size_t i = 1; x->made && i < x->reads.count; i++)
        free(x->made[i]);
    free(x->made);
    free(x->list);
    free(x->data);
    dispute_reads_free(&x->reads);
    *x = (struct exhibit){ 0 };
}

struct wanting {
    struct merkle_part *part;
    size_t element;
};

static void want_run(void *context, uint64_t first, uint64_t count)
{
    const struct wanting *w = context;

    merkle_part_want(w->part, first * w->element, count * w->element);
}

/* What everybody knows of a bound node: a number, a field of the batch, a frozen weight. NULL with `err`. */
static const void *known_bytes(struct dispute_step *d, uint32_t node, struct error *err)
{
    const struct graph_node *n = &d->g->nodes[node];
    struct running *r = &d->running;
    const char *name = graph_text(d->g, n->name), *field = batch_input(name);

    if (strcmp(name, "lr") == 0 && !running_rates(r, err))
        return NULL;
    const void *bytes = strcmp(name, "lr") == 0           ? &r->training.lr
                        : strcmp(name, "b.progress") == 0 ? &r->training.progress
                                                          : batch_field(&r->batch, field);
    uint64_t values = bytes ? n->values : 0;

    if (!bytes)
        bytes = session_weight(r->s, name, &values, err);
    if (bytes && values != n->values)
        bytes = NULL, error_set(err, ERROR_SHAPE, NULL, "%s has another size than the step's graph", name);
    return bytes;
}

static bool is_bound(const struct graph_node *n)
{
    return n->op == OPERATOR_INPUT || n->op == OPERATOR_PARAMETER;
}

/* Where a base's bytes come from. False with `err`. */
static bool find_source(struct exhibit *x, struct evidence *e, struct error *err)
{
    struct dispute_step *d = x->d;
    const struct graph_node *n = &d->g->nodes[e->base];

    e->tensor = is_bound(n) ? dispute_tensor(d->shape, graph_text(d->g, n->name)) : -1;
    if (is_bound(n) && e->tensor < 0)
        return (e->known = known_bytes(d, e->base, err)) != NULL;
    if (e->tensor >= 0 && d->index == 1) { /* the start, which the record before has */
        if (!dispute_load(d, err))
            return false;
        e->known = d->tensors[e->tensor].bytes;
        return true;
    }
    e->bytes = mmap(NULL, e->part.size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (e->bytes != MAP_FAILED)
        return true;
    e->bytes = NULL;
    return error_set(err, ERROR_MEMORY, NULL, "no room for an operand of %llu bytes", (unsigned long long)e->part.size);
}

/* What known_bytes points to. */
static void set_numbers(struct running *r, int64_t step)
{
    r->training.progress = (float)running_progress(r, step);
    if (r->rates)
        r->training.lr = (float)r->rates[step];
}

static void add_part(struct exhibit *x, const struct tile_part *part)
{
    const struct dispute_step *d = x->d;
    const struct graph_node *base = &d->g->nodes[part->base];
    size_t at = 0;

    if (dispute_reads_makes(&x->reads, part->base) || (!is_bound(base) && !tile_computed(d->g, d->places, part->base)))
        return; /* the judge makes it, or it is fixed */
    while (at < x->count && x->list[at].base < part->base)
        at++;
    if (at == x->count || x->list[at].base != part->base) {
        memmove(x->list + at + 1, x->list + at, (x->count - at) * sizeof *x->list);
        x->list[at] = (struct evidence){ .base = part->base };
        x->count++;
        merkle_part_new(&x->list[at].part, dispute_bytes(d, part->base));
    }
    tile_part_runs(part, want_run, &(struct wanting){ &x->list[at].part, type_bytes(base->type) });
}

static bool exhibit_new(struct exhibit *x, struct dispute_step *d, uint32_t entry, uint64_t tile, struct error *err)
{
    const uint32_t node = d->entries[entry];
    const size_t size = type_bytes(d->g->nodes[node].type);
    const uint64_t whole = TILE_BYTES / size, first = tile * whole, left = d->g->nodes[node].values - first;

    size_t parts = 0;

    *x = (struct exhibit){ .d = d, .data = calloc(d->g->node_count + 1, sizeof *x->data) };
    if (!dispute_reads_new(d->shape, node, first, left < whole ? left : whole, d->running.s->shown, &x->reads, err))
        return false;
    for (size_t t = 0; t < x->reads.count; t++)
        parts += x->reads.tiles[t].part_count;
    x->made = calloc(x->reads.count, sizeof *x->made);
    x->list = calloc(parts + 1, sizeof *x->list);
    for (size_t t = 0; t < x->reads.count; t++)
        for (uint32_t i = 0; i < x->reads.tiles[t].part_count; i++)
            add_part(x, &x->reads.tiles[t].parts[i]);
    for (size_t i = 0; i < x->count; i++) {
        if (!find_source(x, &x->list[i], err))
            return false;
        x->data[x->list[i].base] = x->list[i].known ? x->list[i].known : x->list[i].bytes;
    }
    set_numbers(&d->running, d->index - 1);
    return true;
}

static bool rests_on_state(const struct exhibit *x)
{
    for (size_t i = 0; i < x->count; i++)
        if (!x->list[i].known && x->list[i].tensor >= 0)
            return true;
    return false;
}

/* --- the challenger ------------------------------------------------------------------------------------------------------ */

/* Values and state, to run the step twice. */
static void *state_kept(const struct dispute_step *d)
{
    struct buffer kept = { 0 };

    for (size_t i = 0; i < d->tensor_count; i++) {
        uint64_t count, size;

        named_tensor_size(&d->tensors[i], &count, &size);
        buffer_add(&kept, d->tensors[i].bytes, (size_t)size);
    }
    return kept.bytes;
}

static void state_restored(struct dispute_step *d, const void *kept)
{
    const uint8_t *from = kept;

    for (size_t i = 0; i < d->tensor_count; i++) {
        uint64_t count, size;

        named_tensor_size(&d->tensors[i], &count, &size);
        memcpy((void *)(uintptr_t)d->tensors[i].bytes, from, (size_t)size);
        from += size;
    }
    d->running.training.random.step = (uint64_t)(d->index - 1);
}

static void copy_seen(void *context, uint32_t node, const void *bytes, size_t size)
{
    const struct exhibit *x = context;

    for (size_t i = 0; i < x->count; i++)
        if (x->list[i].base == node && x->list[i].bytes)
            memcpy(x->list[i].bytes, bytes, size);
}

/* The entry and the tile of the first that differs; false: none does. */
static bool first_difference(const struct dispute_step *d, const struct hash *ours, const struct hash *theirs, uint32_t *entry,
                             uint64_t *tile)
{
    for (*entry = 0; *entry < d->entry_count; ++*entry)
        for (uint64_t i = d->first[*entry]; i < d->first[*entry + 1]; i++)
            if (!hash_equal(ours[i], theirs[i])) {
                *tile = i - d->first[*entry];
                return true;
            }
    return false;
}

static void write_roots(const struct exhibit *x, struct buffer *out)
{
    const struct dispute_step *d = x->d;

    buffer_add_u32(out, rests_on_state(x) ? (uint32_t)d->tensor_count : 0);
    for (size_t i = 0; rests_on_state(x) && i < d->tensor_count; i++) {
        uint64_t count, size;

        named_tensor_size(&d->tensors[i], &count, &size);

        const struct hash root = merkle_of(d->tensors[i].bytes, (size_t)size);

        buffer_add(out, root.bytes, sizeof root.bytes);
    }
}

/* With the state as it is before the step: the parts of the tile's operands. */
static bool write_pick(struct dispute_step *d, const void *kept, uint32_t entry, uint64_t tile, struct buffer *out,
                       struct error *err)
{
    struct running *r = &d->running;
    const int64_t step = d->index - 1;
    struct exhibit x;
    bool ok = exhibit_new(&x, d, entry, tile, err);

    if (ok) {
        buffer_add(out, "RNDK", 4);
        buffer_add_u16(out, VERSION);
        buffer_add_u16(out, 0);
        buffer_add_u32(out, (uint32_t)d->index);
        buffer_add_u32(out, entry);
        buffer_add_u64(out, tile);
        write_roots(&x, out);
        for (size_t i = 0; i < x.count; i++)
            if (x.list[i].bytes && x.list[i].tensor >= 0)
                memcpy(x.list[i].bytes, d->tensors[x.list[i].tensor].bytes, x.list[i].part.size);
        ok = training_step_seen(&r->training, &r->batch, r->rates[step], running_progress(r, step), copy_seen, &x, err);
        if (!ok && failure_is_everywhere(err)) { /* what the tile is made of came before */
            error_clear(err);
            ok = true;
        }
        state_restored(d, kept);
    }
    for (size_t i = 0; ok && i < x.count; i++)
        if (x.list[i].bytes)
            merkle_part_write(&x.list[i].part, x.list[i].bytes, out);
    exhibit_free(&x);
    return ok;
}

bool dispute_write_pick(struct dispute_step *d, uint32_t entry, uint64_t tile, struct buffer *out, struct error *err)
{
    void *kept = state_kept(d);
    const bool ok = write_pick(d, kept, entry, tile, out, err);

    free(kept);
    return ok;
}

bool dispute_pick(struct session *s, const struct dispute_case *c, const void *opening, size_t opening_size,
                  const struct job_reporter *to, struct buffer *pick, struct dispute_verdict *out, struct error *err)
{
    struct dispute_step d;
    const struct hash *theirs = NULL;
    struct hash *ours = NULL;
    void *kept = NULL;
    uint32_t entry;
    uint64_t tile;
    bool ok = dispute_step_new(&d, s, c, true, to, err);

    *out = (struct dispute_verdict){ .code = "rejected", .why = "equal" };
    if (ok && !(theirs = dispute_read_opening(&d, opening, opening_size)))
        ok = error_set(err, ERROR_SYNTAX, "it convicts its maker as it is", "the opening is malformed");
    if (ok) {
        kept = state_kept(&d);
        ok = (ours = dispute_tiles(&d, err)) != NULL;
        state_restored(&d, kept);
    }
    if (ok && first_difference(&d, ours, theirs, &entry, &tile)) {
        *out = (struct dispute_verdict){ .code = "ok", .why = "" };
        dispute_name(&d, entry, tile, out);
        ok = write_pick(&d, kept, entry, tile, pick, err);
    }
    free(ours);
    free(kept);
    dispute_step_free(&d);
    return ok;
}

bool dispute_compare(struct session *s, const struct dispute_case *c, const void *a, size_t a_size, const void *b, size_t b_size,
                     struct dispute_verdict *out, struct error *err)
{
    struct dispute_step d;
    const struct hash *ours, *theirs;
    uint32_t entry;
    uint64_t tile;
    bool ok = dispute_step_new(&d, s, c, false, NULL, err);

    *out = (struct dispute_verdict){ .code = "rejected", .why = "equal" };
    if (ok) {
        ours = dispute_read_opening(&d, a, a_size);
        theirs = dispute_read_opening(&d, b, b_size);
        ok = (ours && theirs) || error_set(err, ERROR_SYNTAX, NULL, "an opening has not the shape of the step");
    }
    if (ok && first_difference(&d, ours, theirs, &entry, &tile)) {
        *out = (struct dispute_verdict){ .code = "ok", .why = "" };
        dispute_name(&d, entry, tile, out);
    }
    dispute_step_free(&d);
    return ok;
}

/* --- the referee --------------------------------------------------------------------------------------------------------- */

struct read_pick {
    uint32_t entry;
    uint64_t tile;
    struct reader in; /* at the roots */
};

static bool read_head(const struct dispute_step *d, const void *pick, size_t size, struct read_pick *out)
{
    *out = (struct read_pick){ .in = reader_of(pick, size) };

    const uint8_t *magic = reader_bytes(&out->in, 4);
    const bool head = magic && memcmp(magic, "RNDK", 4) == 0 && reader_u16(&out->in) == VERSION && reader_u16(&out->in) == 0 &&
                      reader_u32(&out->in) == (uint64_t)d->index;

    out->entry = reader_u32(&out->in);
    out->tile = reader_u64(&out->in);
    return out->in.ok && head && out->entry < d->entry_count && out->tile < d->first[out->entry + 1] - d->first[out->entry];
}

/* The roots of the state's tensors before the step, held to the leaf before. */
static const struct hash *read_roots(const struct exhibit *x, const struct dispute_case *c, struct reader *in)
{
    const struct dispute_step *d = x->d;
    const uint32_t count = reader_u32(in);

    if (count != (rests_on_state(x) ? d->tensor_count : 0))
        return NULL;

    const struct hash *roots = (const void *)reader_bytes(in, count * sizeof *roots);

    return roots && (count == 0 || hash_equal(root_of_roots(d->tensors, roots, count), c->log->leaves[d->index - 2].state))
               ? roots
               : NULL;
}

static bool read_parts(struct exhibit *x, const struct dispute_case *c, const struct hash *tiles, struct reader *in)
{
    const struct dispute_step *d = x->d;
    const struct hash *roots = read_roots(x, c, in);
    bool ok = roots != NULL;

    for (size_t i = 0; ok && i < x->count; i++) {
        struct evidence *e = &x->list[i];
        struct error ignored = { 0 };

        if (e->bytes)
            ok = merkle_part_read(&e->part, e->tensor >= 0 ? roots[e->tensor] : dispute_root(d, tiles, d->entry_of[e->base]), in,
                                  e->bytes, &ignored);
    }
    return ok && reader_left(in) == 0;
}

/* One of the tiles, from what is shown, known or made. NULL with `err`. Owned. */
static void *tile_bytes(const struct exhibit *x, const struct tile *t, size_t *size, struct error *err)
{
    const struct dispute_step *d = x->d;
    void *bytes;

    *size = (size_t)t->count * type_bytes(d->g->nodes[t->node].type);
    bytes = malloc(*size);
    if (!bytes)
        error_set(err, ERROR_MEMORY, NULL, "no memory for a tile of %zu bytes", *size);
    else if (tile_compute(t, d->running.s->pool, x->data, &d->running.training.random, bytes, err))
        return bytes;
    free(bytes);
    return NULL;
}

/* Whether the tile, computed from the parts, is another than the trace has. An index outside its axis makes it so: nobody can have computed
 * that value. False with `err` where this machine cannot tell. */
static bool tile_compared(struct exhibit *x, struct hash theirs, bool *differs, struct error *err)
{
    void *bytes;
    size_t size;
    bool ok = true;

    for (size_t i = 1; ok && i < x->reads.count; i++) {
        x->made[i] = tile_bytes(x, &x->reads.tiles[i], &size, err);
        x->data[x->reads.tiles[i].node] = x->made[i];
        ok = x->made[i] != NULL;
    }
    bytes = ok ? tile_bytes(x, &x->reads.tiles[0], &size, err) : NULL;
    *differs = !bytes || !hash_equal(merkle_of(bytes, size), theirs);
    free(bytes);
    if (!bytes && err->code == ERROR_RANGE) {
        error_clear(err);
        return true;
    }
    return bytes != NULL;
}

bool dispute_judge(struct session *s, const struct dispute_case *c, const void *opening, size_t opening_size, const void *pick,
                   size_t pick_size, struct dispute_verdict *out, struct error *err)
{
    struct dispute_step d;
    struct exhibit x = { 0 };
    struct read_pick p;
    bool ok = dispute_step_new(&d, s, c, false, NULL, err);
    const struct hash *tiles = ok ? dispute_read_opening(&d, opening, opening_size) : NULL;

    *out = (struct dispute_verdict){ .code = "rejected", .why = "malformed" };
    if (ok && !tiles) {
        *out = (struct dispute_verdict){ .code = "upheld", .why = "malformed" };
    } else if (ok && read_head(&d, pick, pick_size, &p) && (ok = exhibit_new(&x, &d, p.entry, p.tile, err))) {
        dispute_name(&d, p.entry, p.tile, out);
        out->why = "proof";
        if (read_parts(&x, c, tiles, &p.in)) {
            bool differs;

            ok = tile_compared(&x, tiles[d.first[p.entry] + p.tile], &differs, err);
            out->code = differs ? "upheld" : "rejected";
            out->why = "tile";
        }
    }
    exhibit_free(&x);
    dispute_step_free(&d);
    return ok;
}
