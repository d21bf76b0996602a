#include "native/graph/wire.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t magic[4] = { 'R', 'G', 'R', '1' };

/* ---- encoding ---- */

/* Names by first use: order[id] is the number on the wire plus one, list[] the ids in that order. */
struct name_order {
    uint32_t *order, *list;
    uint32_t count;
};

static uint32_t name_used(struct name_order *o, uint32_t id)
{
    if (o->order[id] == 0) {
        o->list[o->count++] = id;
        o->order[id] = o->count;
    }
    return o->order[id] - 1;
}

static struct name_order name_order_of(const struct graph *g)
{
    struct name_order o = { calloc(g->name_count + 1, sizeof *o.order), calloc(g->name_count + 1, sizeof *o.list), 0 };
    if (!o.order || !o.list)
        abort();
    for (uint32_t i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->nodes[i];
        for (uint32_t k = 0; k < n->axes_count; k++)
            name_used(&o, graph_axes(g, n)[k].name);
        if (n->name != GRAPH_NONE)
            name_used(&o, n->name);
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        name_used(&o, g->outputs[i].name);
    return o;
}

static void encode_node(const struct graph *g, const struct graph_node *n, struct name_order *o, struct buffer *out)
{
    buffer_add_u8(out, n->op);
    buffer_add_u8(out, operator_table[n->op].version);
    buffer_add_u8(out, operator_table[n->op].flags & OPERATOR_TYPED ? n->type : 0);
    buffer_add_u16(out, (uint16_t)n->input_count);
    for (uint32_t k = 0; k < n->input_count; k++)
        buffer_add_u32(out, graph_inputs(g, n)[k]);
    buffer_add_u8(out, (uint8_t)n->axes_count);
    for (uint32_t k = 0; k < n->axes_count; k++) {
        buffer_add_u32(out, name_used(o, graph_axes(g, n)[k].name));
        buffer_add_u64(out, graph_axes(g, n)[k].size);
    }
    buffer_add_u32(out, n->numbers_count);
    for (uint32_t k = 0; k < n->numbers_count; k++) {
        uint64_t bits;
        memcpy(&bits, &graph_numbers(g, n)[k], sizeof bits);
        buffer_add_u64(out, bits);
    }
    buffer_add_u8(out, (uint8_t)n->integers_count);
    for (uint32_t k = 0; k < n->integers_count; k++)
        buffer_add_u64(out, (uint64_t)graph_integers(g, n)[k]);
    buffer_add_u32(out, n->name == GRAPH_NONE ? 0 : name_used(o, n->name) + 1);
}

static void encode_notes(const struct graph *g, struct buffer *out)
{
    struct name_order o = { calloc(g->name_count + 1, sizeof *o.order), calloc(g->name_count + 1, sizeof *o.list), 0 };
    if (!o.order || !o.list)
        abort();
    for (uint32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].note != GRAPH_NONE)
            name_used(&o, g->nodes[i].note);
    buffer_add_u32(out, o.count);
    for (uint32_t i = 0; i < o.count; i++) {
        const char *text = g->names[o.list[i]];
        buffer_add_u16(out, (uint16_t)strlen(text));
        buffer_add(out, text, strlen(text));
    }
    for (uint32_t i = 0; i < g->node_count; i++)
        buffer_add_u32(out, g->nodes[i].note == GRAPH_NONE ? 0 : name_used(&o, g->nodes[i].note) + 1);
    free(o.order);
    free(o.list);
}

void graph_encode(const struct graph *g, bool notes, struct buffer *out)
{
    struct name_order o = name_order_of(g);
    buffer_add(out, magic, sizeof magic);
    buffer_add_u8(out, notes);
    buffer_add_u32(out, o.count);
    for (uint32_t i = 0; i < o.count; i++) {
        const char *text = g->names[o.list[i]];
        buffer_add_u8(out, (uint8_t)strlen(text));
        buffer_add(out, text, strlen(text));
    }
    buffer_add_u32(out, g->node_count);
    for (uint32_t i = 0; i < g->node_count; i++)
        encode_node(g, &g->nodes[i], &o, out);
    buffer_add_u32(out, g->output_count);
    for (uint32_t i = 0; i < g->output_count; i++) {
        buffer_add_u32(out, name_used(&o, g->outputs[i].name));
        buffer_add_u32(out, g->outputs[i].node);
    }
    free(o.order);
    free(o.list);
    if (notes)
        encode_notes(g, out);
}

struct graph_hash graph_hash(const struct graph *g)
{
    static const uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES] = "rondo/graph";
    struct graph_hash h;
    struct buffer b = { 0 };
    graph_encode(g, false, &b);
    crypto_generichash_blake2b_salt_personal(h.bytes, sizeof h.bytes, b.bytes, b.size, NULL, 0, NULL, personal);
    buffer_free(&b);
    return h;
}

/* ---- decoding ---- */

struct decoding {
    struct reader in;
    struct graph *g;
    char **names; /* owned texts */
    uint32_t name_count;
    char **notes;
    uint32_t note_count;
    struct error *err;
};

static bool short_of(struct decoding *d)
{
    return error_set(d->err, ERROR_TRUNCATED, NULL, "the bytes end before the graph does");
}

/* A list of texts with lengths of `width` bytes. The count is checked against what is left before anything is allocated. */
static bool decode_texts(struct decoding *d, unsigned width, char ***texts, uint32_t *total)
{
    const uint32_t count = reader_u32(&d->in);
    if (count > reader_left(&d->in) / (width + 1))
        return short_of(d);
    if (count > d->g->limits.names)
        return error_set(d->err, ERROR_LIMIT, NULL, "%u names, the limit is %u", count, d->g->limits.names);
    *texts = calloc((size_t)count + 1, sizeof **texts);
    if (!*texts)
        abort();
    for (uint32_t i = 0; i < count; i++) {
        const size_t size = width == 1 ? reader_u8(&d->in) : reader_u16(&d->in);
        const uint8_t *bytes = reader_bytes(&d->in, size);
        if (!d->in.ok)
            return short_of(d);
        if (size == 0 || size > GRAPH_NAME || memchr(bytes, 0, size))
            return error_set(d->err, ERROR_SYNTAX, NULL, "a name of %zu bytes, or with a zero in it", size);
        (*texts)[i] = strndup((const char *)bytes, size);
        if (!(*texts)[i])
            abort();
        *total = i + 1;
    }
    return true;
}

/* What one node takes from the heap while it is decoded. */
struct node_parts {
    struct graph_word axes[GRAPH_ATTRIBUTE_AXES];
    int64_t integers[8];
    uint32_t *inputs;
    double *numbers;
};

static bool decode_lists(struct decoding *d, struct graph_request *r, struct node_parts *p)
{
    r->input_count = reader_u16(&d->in);
    if (r->input_count > reader_left(&d->in) / 4)
        return short_of(d);
    r->inputs = p->inputs = malloc((r->input_count + 1) * sizeof *p->inputs);
    if (!p->inputs)
        abort();
    for (size_t i = 0; i < r->input_count; i++)
        p->inputs[i] = reader_u32(&d->in);
    r->axes_count = reader_u8(&d->in);
    if (r->axes_count > GRAPH_ATTRIBUTE_AXES)
        return error_set(d->err, ERROR_LIMIT, NULL, "%zu axes, the limit is %d", r->axes_count, GRAPH_ATTRIBUTE_AXES);
    for (size_t i = 0; i < r->axes_count; i++) {
        const uint32_t name = reader_u32(&d->in);
        if (name >= d->name_count)
            return error_set(d->err, ERROR_RANGE, NULL, "name %u, but there are %u", name, d->name_count);
        p->axes[i] = (struct graph_word){ d->names[name], reader_u64(&d->in) };
    }
    r->axes = p->axes;
    r->numbers_count = reader_u32(&d->in);
    if (r->numbers_count > reader_left(&d->in) / 8)
        return short_of(d);
    r->numbers = p->numbers = malloc((r->numbers_count + 1) * sizeof *p->numbers);
    if (!p->numbers)
        abort();
    for (size_t i = 0; i < r->numbers_count; i++) {
        const uint64_t bits = reader_u64(&d->in);
        memcpy(&p->numbers[i], &bits, sizeof bits);
    }
    r->integers_count = reader_u8(&d->in);
    if (r->integers_count > 8)
        return error_set(d->err, ERROR_LIMIT, NULL, "%zu integers", r->integers_count);
    for (size_t i = 0; i < r->integers_count; i++)
        p->integers[i] = (int64_t)reader_u64(&d->in);
    r->integers = p->integers;
    const uint32_t name = reader_u32(&d->in);
    if (name > d->name_count)
        return error_set(d->err, ERROR_RANGE, NULL, "name %u, but there are %u", name - 1, d->name_count);
    r->name = name ? d->names[name - 1] : NULL;
    return d->in.ok || short_of(d);
}

static bool decode_node(struct decoding *d)
{
    struct graph_request r = { 0 };
    struct node_parts p = { 0 };
    uint32_t node;
    const unsigned op = reader_u8(&d->in), version = reader_u8(&d->in), type = reader_u8(&d->in);
    if (!d->in.ok)
        return short_of(d);
    if (op >= OPERATOR_INTERNAL)
        return error_set(d->err, ERROR_UNKNOWN, "a newer version of the program may know it", "operator %u is not known", op);
    if (version != operator_table[op].version)
        return error_set(d->err, ERROR_UNSUPPORTED, "use the version of the program that the run names",
                         "operator %s of version %u, this is version %u", operator_table[op].name, version,
                         operator_table[op].version);
    r.op = (enum operator_code)op;
    r.type = (enum tensor_type)type;
    const bool ok = decode_lists(d, &r, &p) && graph_add(d->g, &r, &node, d->err);
    free(p.inputs);
    free(p.numbers);
    return ok;
}

static bool decode_outputs(struct decoding *d)
{
    const uint32_t count = reader_u32(&d->in);
    if (count > reader_left(&d->in) / 8)
        return short_of(d);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t name = reader_u32(&d->in), node = reader_u32(&d->in);
        if (name >= d->name_count)
            return error_set(d->err, ERROR_RANGE, NULL, "name %u, but there are %u", name, d->name_count);
        if (!graph_output(d->g, d->names[name], node, d->err))
            return false;
    }
    return true;
}

static bool decode_notes(struct decoding *d)
{
    if (!decode_texts(d, 2, &d->notes, &d->note_count))
        return false;
    for (uint32_t i = 0; i < d->g->node_count; i++) {
        const uint32_t note = reader_u32(&d->in);
        if (!d->in.ok)
            return short_of(d);
        if (note > d->note_count)
            return error_set(d->err, ERROR_RANGE, NULL, "note %u, but there are %u", note - 1, d->note_count);
        if (note)
            d->g->nodes[i].note = graph_name(d->g, d->notes[note - 1]);
    }
    return true;
}

/* Encoding what was read must give the same bytes: so there is one encoding of a graph, and one hash. */
static bool canonical(struct decoding *d, const void *bytes, size_t size, bool notes)
{
    struct buffer again = { 0 };
    graph_encode(d->g, notes, &again);
    const bool same = again.size == size && memcmp(again.bytes, bytes, size) == 0;
    buffer_free(&again);
    return same || error_set(d->err, ERROR_SYNTAX, NULL, "the encoding of the graph is not the canonical one");
}

static bool decode_all(struct decoding *d, const void *bytes, size_t size)
{
    const uint8_t *start = reader_bytes(&d->in, sizeof magic);
    const unsigned notes = reader_u8(&d->in);
    if (!d->in.ok)
        return short_of(d);
    if (memcmp(start, magic, sizeof magic) != 0 || notes > 1)
        return error_set(d->err, ERROR_SYNTAX, NULL, "this is no graph");
    if (!decode_texts(d, 1, &d->names, &d->name_count))
        return false;
    const uint32_t nodes = reader_u32(&d->in);
    if (nodes > d->g->limits.nodes)
        return error_set(d->err, ERROR_LIMIT, NULL, "%u nodes, the limit is %u", nodes, d->g->limits.nodes);
    for (uint32_t i = 0; i < nodes; i++)
        if (!decode_node(d))
            return error_at(d->err, "node %u", i);
    if (!decode_outputs(d) || (notes && !decode_notes(d)))
        return false;
    return canonical(d, bytes, size, notes == 1);
}

static void texts_free(char **texts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

struct graph *graph_decode(const void *bytes, size_t size, const struct graph_limits *limits, struct error *err)
{
    struct decoding d = { .in = reader_of(bytes, size), .g = graph_new(limits), .err = err };
    const bool ok = decode_all(&d, bytes, size);
    texts_free(d.names, d.name_count);
    texts_free(d.notes, d.note_count);
    if (!ok) {
        graph_free(d.g);
        return NULL;
    }
    return d.g;
}
