/* tile.h: any few elements of any operator's result, from the parts of its operands that tile_part_runs tells alone, are to the bit those of
 * a run of the whole graph. */
#include "native/graph/rewrite.h"
#include "native/graph/tile.h"
#include "tests/unit/gradient_sites.h"

/* What a run left: bytes of each node, NULL for nodes that were not computed. */
struct seen {
    const struct graph *g;
    void **bytes;
};

static void keep(void *context, uint32_t node, const void *bytes, size_t size)
{
    struct seen *s = context;
    s->bytes[node] = malloc(size + 8);
    memcpy(s->bytes[node], bytes, size);
}

/* Elements outside of what a tile says it needs are of this byte: a NaN as a real, out of every range as an index. */
enum { RUBBISH = 0xff };

struct shown {
    const char *from;
    char *to;
    size_t size;
    uint64_t count, total;
};

static void show_run(void *context, uint64_t first, uint64_t count)
{
    struct shown *s = context;
    assert_true(first < s->total && count <= s->total - first);
    memcpy(s->to + first * s->size, s->from + first * s->size, count * s->size);
    s->count += count;
}

static uint64_t tiles, whole_elements, shown_elements;

static void check_tile(const struct seen *s, const struct place *places, uint32_t node, uint64_t first, uint64_t count)
{
    const size_t size = type_bytes(s->g->nodes[node].type);
    void **data = calloc(s->g->node_count + 1, sizeof *data);
    char *got = malloc(count * size + 8);
    struct tile t;
    if (!tile_new(s->g, places, node, first, count, &t, &err))
        fail_msg("%s", err.message);
    for (uint32_t i = 0; i < t.part_count; i++) {
        const struct graph_node *base = &s->g->nodes[t.parts[i].base];
        struct shown shown = { s->bytes[t.parts[i].base], NULL, type_bytes(base->type), 0, base->values };
        if (!shown.from)
            continue; /* fixed */
        if (!data[t.parts[i].base]) {
            data[t.parts[i].base] = malloc(base->values * shown.size + 8);
            memset(data[t.parts[i].base], RUBBISH, base->values * shown.size);
        }
        shown.to = data[t.parts[i].base];
        tile_part_runs(&t.parts[i], show_run, &shown);
        whole_elements += base->values;
        shown_elements += shown.count;
    }
    if (!tile_compute(&t, NULL, (const void *const *)data, &no_seed, got, &err))
        fail_msg("%s: %s", err.place, err.message);
    if (memcmp(got, (char *)s->bytes[node] + first * size, count * size) != 0)
        fail_msg("%s: elements %llu to %llu of node %u differ from those of a run", operator_table[s->g->nodes[node].op].name,
                 (unsigned long long)first, (unsigned long long)(first + count), node);
    tiles++;
    tile_free(&t);
    for (uint32_t i = 0; i < s->g->node_count; i++)
        free(data[i]);
    free(data);
    free(got);
}

static void *view_copied(const struct graph *c, const struct place *places, uint32_t node, const void *base)
{
    const struct graph_node *n = &c->nodes[node];
    const struct place *at = &places[node];
    const enum tensor_type type = (enum tensor_type)n->type;
    struct walk walk = { .rank = n->rank };
    ptrdiff_t step = 1;
    void *bytes = malloc(bytes_of(n) + 8);
    for (unsigned i = n->rank; i-- > 0;) {
        walk.size[i] = n->axis[i].size;
        walk.from[i] = at->stride[i];
        walk.to[i] = step;
        step *= (ptrdiff_t)n->axis[i].size;
    }
    walk_copy(NULL, walk, type, (const char *)base + at->offset * (ptrdiff_t)type_bytes(n->type), type, bytes);
    return bytes;
}

static void check_graph(void)
{
    struct graph *c = graph_compact(g, NULL, &err);
    struct seen seen = { c, calloc(c->node_count + 1, sizeof(void *)) };
    struct place *places = place_all(c);
    seed = 5;
    struct data d = data_new();
    struct executor *ex = executor_new(c, &(struct executor_options){ .trace = keep, .trace_context = &seen }, &err);
    if (!ex || !executor_run(ex, (const void *const *)d.bound, d.outputs, &no_seed, &err))
        fail_msg("%s: %s", err.place, err.message);
    for (uint32_t i = 0; i < c->bound_count; i++)
        keep(&seen, c->bound[i], d.bound[i], bytes_of(&c->nodes[c->bound[i]]));
    for (uint32_t i = 0; i < c->node_count; i++) {
        const uint64_t values = c->nodes[i].values, sizes[] = { 1, 3, 4, values };
        if (!seen.bytes[places[i].base])
            continue;
        if (!seen.bytes[i]) /* a view: its elements in their own order, from wherever they lie */
            seen.bytes[i] = view_copied(c, places, i, seen.bytes[places[i].base]);
        for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (uint64_t first = 0; first < values; first += sizes[k])
                check_tile(&seen, places, i, first, values - first < sizes[k] ? values - first : sizes[k]);
    }
    executor_free(ex);
    data_free(&d);
    for (uint32_t i = 0; i < c->node_count; i++)
        free(seen.bytes[i]);
    free(seen.bytes);
    free(places);
    graph_free(c);
}

static void test_any_elements_of_any_operator_and_its_gradient_come_from_parts(void **state)
{
    for (unsigned op = 0; op < OPERATOR_CODES; op++) {
        struct site s;
        for (unsigned way = 0; rows[op].build && rows[op].build((enum operator_code)op, way, &s); way++) {
            uint32_t gradient[4];
            output("y", s.y);
            if (rows[op].passing == PASSES) {
                assert_true(graph_backward_from(g, s.y, cotangent(s.y), s.by, wanted(&s), gradient, &err));
                for (unsigned i = 0; i < wanted(&s); i++)
                    output((const char *[]){ "d0", "d1", "d2", "d3" }[i], gradient[i]);
            }
            check_graph();
            done(state);
            fresh(state);
        }
        done(state);
        fresh(state);
    }
    assert_true(tiles > 1000 && shown_elements * 2 < whole_elements); /* parts are parts */
}

static void test_a_product_needs_its_rows_and_the_other_side(void **state)
{
    (void)state;
    struct tile t;
    const uint32_t x = input("x", "time=8 embed=16"), w = input("w", "ffn=32 embed=16"),
                   y = over(OPERATOR_DOT, x, w, GRAPH_NONE, "embed");
    struct place *places = place_all(g);
    assert_true(tile_new(g, places, y, 64, 64, &t, &err)); /* times 2 and 3 */
    assert_int_equal(t.part_count, 2);
    assert_int_equal(t.parts[0].values, 2 * 16);
    assert_int_equal(t.parts[0].offset, 2 * 16);
    assert_int_equal(t.parts[1].values, 32 * 16);
    tile_free(&t);
    assert_true(tile_new(g, places, y, 33, 4, &t, &err)); /* time 1, four of ffn */
    assert_int_equal(t.parts[0].values, 16);
    assert_int_equal(t.parts[1].values, 4 * 16);
    assert_int_equal(t.parts[1].offset, 16);
    tile_free(&t);
    free(places);
}

static void test_what_is_outside_of_a_value_is_refused(void **state)
{
    (void)state;
    struct tile t;
    const uint32_t x = input("x", "time=8 embed=16"), y = op1(OPERATOR_EXP, x),
                   z = over(OPERATOR_TRANSPOSE, y, GRAPH_NONE, GRAPH_NONE, "embed time");
    struct place *places = place_all(g);
    const struct {
        uint32_t node;
        uint64_t first, count;
    } bad[] = { { z, 0, 129 }, { y, 128, 1 }, { y, 0, 0 }, { y, 1, 128 }, { y, UINT64_MAX, 2 }, { 99, 0, 1 } };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(tile_new(g, places, bad[i].node, bad[i].first, bad[i].count, &t, &err));
        assert_int_equal(err.code, ERROR_RANGE);
    }
    free(places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_elements_of_any_operator_and_its_gradient_come_from_parts, fresh, done),
        cmocka_unit_test_setup_teardown(test_a_product_needs_its_rows_and_the_other_side, fresh, done),
        cmocka_unit_test_setup_teardown(test_what_is_outside_of_a_value_is_refused, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
