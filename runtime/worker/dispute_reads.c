#include "runtime/worker/dispute_reads.h"

#include <stdlib.h>

bool dispute_is_shown(const struct dispute_shape *shape, uint32_t base)
{
    const struct graph_node *n = &shape->g->nodes[base];

    if (n->op == OPERATOR_INPUT || n->op == OPERATOR_PARAMETER)
        return dispute_tensor(shape, graph_text(shape->g, n->name)) >= 0;
    return tile_computed(shape->g, shape->places, base);
}

/* Bytes of this base that the tile's parts read, at most all of them; GRAPH_NONE: of every base that is shown. */
static uint64_t read_bytes(const struct dispute_shape *shape, const struct tile *t, uint32_t base)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < t->part_count; i++) {
        const struct graph_node *n = &shape->g->nodes[t->parts[i].base];
        const uint64_t values = t->parts[i].values < n->values ? t->parts[i].values : n->values;

        if (base == GRAPH_NONE ? dispute_is_shown(shape, t->parts[i].base) : t->parts[i].base == base)
            sum += values * type_bytes(n->type);
    }
    return sum;
}

bool dispute_reads_makes(const struct dispute_reads *reads, uint32_t base)
{
    for (size_t i = 1; i < reads->count; i++)
        if (reads->tiles[i].node == base)
            return true;
    return false;
}

/* Adds what makes this operand where that is less to show. */
static bool consider(const struct dispute_shape *shape, struct dispute_reads *reads, uint32_t base, uint64_t above,
                     struct error *err)
{
    const uint64_t bytes = read_bytes(shape, &reads->tiles[0], base);
    struct tile *maker = &reads->tiles[reads->count];

    if (bytes <= above || !tile_computed(shape->g, shape->places, base) || dispute_reads_makes(reads, base))
        return true;
    if (!tile_new(shape->g, shape->places, base, 0, shape->g->nodes[base].values, maker, err))
        return false;
    if (read_bytes(shape, maker, GRAPH_NONE) >= bytes) {
        tile_free(maker);
        return true;
    }
    for (size_t at = reads->count++; at > 1 && reads->tiles[at - 1].node > base; at--) { /* operands before who reads them */
        const struct tile later = reads->tiles[at - 1];

        reads->tiles[at - 1] = reads->tiles[at];
        reads->tiles[at] = later;
    }
    return true;
}

bool dispute_reads_new(const struct dispute_shape *shape, uint32_t node, uint64_t first, uint64_t count, uint64_t above,
                       struct dispute_reads *out, struct error *err)
{
    struct tile tile;
    bool ok = tile_new(shape->g, shape->places, node, first, count, &tile, err);

    *out = (struct dispute_reads){ 0 };
    if (!ok)
        return false;
    out->tiles = calloc(tile.part_count + 1, sizeof *out->tiles);
    if (!out->tiles)
        abort();
    out->tiles[out->count++] = tile;
    for (uint32_t i = 0; ok && i < tile.part_count; i++)
        ok = consider(shape, out, tile.parts[i].base, above, err);
    if (!ok)
        dispute_reads_free(out);
    return ok;
}

void dispute_reads_free(struct dispute_reads *reads)
{
    for (size_t i = 0; i < reads->count; i++)
        tile_free(&reads->tiles[i]);
    free(reads->tiles);
    *reads = (struct dispute_reads){ 0 };
}
