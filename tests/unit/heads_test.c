/* What has a value for every row and word runs by tiles, and the bits are those of the whole. A traced run computes every node as it stands. */
#include "tests/unit/arranged.h"

#include "native/graph/arrange.h"
#include "native/graph/backward.h"
#include "native/graph/body.h"
#include "native/graph/rewrite.h"
#include "native/graph/wire.h"

static struct body *bodies;
static uint32_t body_count;

enum { ROWS = 3, TIME = 150, EMBED = 20, VOCAB = 70 };

/* -sum of weighted log-probabilities of the next token, and its gradient by h. `seen`: the log-probabilities are an output too. */
static void head_built(bool seen, bool weighted)
{
    const uint32_t h = input("h", TENSOR_F32, "row=3 time=150 embed=20"), table = input("table", TENSOR_F32, "vocab=70 embed=20");
    const uint32_t ids = input("ids", TENSOR_I32, "row=3 time=150"), weight = input("weight", TENSOR_F32, "row=3 time=150");
    const uint32_t logits = over(OPERATOR_DOT, h, table, "embed");
    const uint32_t logprob = shifted(over(OPERATOR_TOKEN_LOGPROB, logits, shifted(ids, -1), "vocab"), 1);
    const uint32_t minus = over(OPERATOR_NEG, logprob, GRAPH_NONE, "");
    const uint32_t loss = weighted ? over(OPERATOR_SUM, minus, weight, "row time")
                                   : over(OPERATOR_SUM, over(OPERATOR_MUL, minus, weight, ""), GRAPH_NONE, "row time");
    uint32_t gradient;
    ok(graph_backward(g, loss, &h, 1, &gradient, &err));
    ok(graph_output(g, "loss", loss, &err));
    ok(graph_output(g, "dh", gradient, &err));
    if (seen)
        ok(graph_output(g, "logprob", logprob, &err));
}

static void head_compared(float share)
{
    float *h = numbers(ROWS * TIME * EMBED, 1), *table = numbers(VOCAB * EMBED, 99), *weight = numbers(ROWS * TIME, 7);
    int32_t *ids = malloc(ROWS * TIME * sizeof *ids);
    for (uint32_t i = 0; i < ROWS * TIME; i++) {
        ids[i] = (int32_t)((i * 2654435761u) >> 8) % VOCAB;
        ids[i] = ids[i] < 0 ? -ids[i] : ids[i];
        if (number(1000 + i) >= share)
            weight[i] = i % 2 ? 0.0f : -0.0f;
    }
    same_bits((const void *[]){ h, table, ids, weight }, true);
    free(h);
    free(table);
    free(weight);
    free(ids);
}

static void a_head_in_tiles_gives_the_bits_of_whole_logits(void **state)
{
    (void)state;
    uint32_t *from;
    head_built(false, true);
    struct graph *arranged = arrange_heads(g, &from, &bodies, &body_count, &err);
    ok(arranged != NULL);
    assert_true(has(arranged, OPERATOR_HEAD));
    assert_false(has(arranged, OPERATOR_TOKEN_LOGPROB));
    graph_free(arranged);
    bodies_free(bodies, body_count);
    free(from);
    for (int i = 0; i < 5; i++)
        head_compared((float[]){ 2.0f, 0.5f, -0.5f, -0.98f, -2.0f }[i]);
}

static void log_probabilities_that_are_read_otherwise_are_all_there(void **state)
{
    (void)state;
    head_built(true, true);
    head_compared(-0.5f);
}

static void a_product_with_weights_reads_every_log_probability(void **state)
{
    (void)state;
    head_built(false, false);
    head_compared(-0.5f);
}

/* Whether arranging leaves no whole logits, and how many heads there are. */
static void heads_counted(uint32_t heads)
{
    uint32_t *from, count = 0;
    struct graph *arranged = arrange_heads(g, &from, &bodies, &body_count, &err);
    ok(arranged != NULL);
    for (uint32_t i = 0; i < arranged->node_count; i++)
        count += arranged->nodes[i].op == OPERATOR_HEAD;
    assert_int_equal(count, heads);
    assert_true(has(arranged, OPERATOR_TOKEN_LOGPROB) == (heads == 0));
    graph_free(arranged);
    bodies_free(bodies, body_count);
    free(from);
}

static void a_gradient_that_depends_on_the_log_probabilities_has_a_head_of_its_own(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++) {
        uint32_t gradients[2];
        if (trained) {
            graph_free(g);
            fresh(NULL);
        }
        const uint32_t h = input("h", TENSOR_F32, "row=3 time=150 embed=20"),
                       table = input("table", TENSOR_F32, "vocab=70 embed=20");
        const uint32_t ids = input("ids", TENSOR_I32, "row=3 time=150"), weight = input("weight", TENSOR_F32, "row=3 time=150");
        const uint32_t logprob = over(OPERATOR_TOKEN_LOGPROB, over(OPERATOR_DOT, h, table, "embed"), ids, "vocab");
        const uint32_t square = over(OPERATOR_MUL, over(OPERATOR_SQUARE, logprob, GRAPH_NONE, ""), weight, "");
        const uint32_t loss = over(OPERATOR_SUM, square, GRAPH_NONE, "row time");
        ok(graph_backward(g, loss, (const uint32_t[]){ h, table }, trained ? 2 : 1, gradients, &err));
        ok(graph_output(g, "dh", gradients[0], &err) && graph_output(g, "loss", loss, &err));
        if (trained)
            ok(graph_output(g, "dE", gradients[1], &err));
        heads_counted(2);
        head_compared(2.0f);
        head_compared(-0.5f);
        head_compared(-2.0f);
    }
}

static void the_gradient_of_a_trained_table_is_summed_in_tiles(void **state)
{
    (void)state;
    uint32_t gradients[2];
    const uint32_t h = input("h", TENSOR_F32, "row=3 time=150 embed=20"), table = input("table", TENSOR_F32, "vocab=70 embed=20");
    const uint32_t ids = input("ids", TENSOR_I32, "row=3 time=150"), weight = input("weight", TENSOR_F32, "row=3 time=150");
    const uint32_t logprob = over(OPERATOR_TOKEN_LOGPROB, over(OPERATOR_DOT, h, table, "embed"), ids, "vocab");
    const uint32_t loss = over(OPERATOR_SUM, logprob, weight, "row time");
    ok(graph_backward(g, loss, (const uint32_t[]){ h, table }, 2, gradients, &err));
    ok(graph_output(g, "dh", gradients[0], &err) && graph_output(g, "dE", gradients[1], &err));
    ok(graph_output(g, "loss", loss, &err));
    heads_counted(1);
    for (int i = 0; i < 5; i++)
        head_compared((float[]){ 2.0f, 0.5f, -0.5f, -0.98f, -2.0f }[i]);
}

static void a_head_without_gradient_gives_log_probabilities_and_the_likeliest_token(void **state)
{
    (void)state;
    const uint32_t h = input("h", TENSOR_F32, "row=3 time=150 embed=20"), table = input("table", TENSOR_F32, "vocab=70 embed=20");
    const uint32_t ids = input("ids", TENSOR_I32, "row=3 time=150");
    input("weight", TENSOR_F32, "row=3 time=150");
    const uint32_t logits = over(OPERATOR_DOT, h, table, "embed");
    ok(graph_output(g, "logprob", over(OPERATOR_TOKEN_LOGPROB, logits, ids, "vocab"), &err));
    ok(graph_output(g, "best", over(OPERATOR_ARGMAX, logits, GRAPH_NONE, "vocab"), &err));
    heads_counted(1);
    head_compared(2.0f);
}

/* ---- heads with more to them, and tied tables ---- */

struct shape {
    unsigned rows, time, vocab, embed;
    bool adapter, bias, trained; /* the bias, and of a head that is not tied the table */
    double cap, temperature;     /* 0: none */
    bool tied, late;             /* late: the gradient depends on the log-probabilities */
};

static uint32_t sized(const char *name, enum tensor_type type, const char *format, unsigned a, unsigned b, unsigned c)
{
    char axes[80];
    snprintf(axes, sizeof axes, format, a, b, c);
    return input(name, type, axes);
}

static uint32_t by(enum operator_code op, uint32_t x, double value, bool first)
{
    uint32_t number;
    ok(graph_constant(g, TENSOR_F32, value, &number, &err));
    return first ? over(op, number, x, "") : over(op, x, number, "");
}

/* The graph of a shape, canonical: the loss, and the gradients of all that is trained. */
static void shape_built(const struct shape *s)
{
    uint32_t wrt[5], gradients[5], count = 0, h;
    const uint32_t table = sized("table", TENSOR_F32, "vocab=%u embed=%u", s->vocab, s->embed, 0);
    const uint32_t ids = sized("ids", TENSOR_I32, "row=%u time=%u", s->rows, s->time, 0);
    const uint32_t weight = sized("weight", TENSOR_F32, "row=%u time=%u", s->rows, s->time, 0);
    if (s->tied) {
        ok(graph_over(g, OPERATOR_GATHER, table, shifted(ids, 1), GRAPH_NONE, "vocab", &h, &err));
        h = over(OPERATOR_SILU, by(OPERATOR_MUL, h, 3, false), GRAPH_NONE, "");
        wrt[count++] = table;
    } else {
        wrt[count++] = h = sized("h", TENSOR_F32, "row=%u time=%u embed=%u", s->rows, s->time, s->embed);
    }
    uint32_t y = over(OPERATOR_DOT, h, table, "embed");
    if (s->trained && !s->tied)
        wrt[count++] = table;
    if (s->adapter) {
        const uint32_t a = wrt[count++] = sized("a", TENSOR_F32, "rank=3 embed=%u", s->embed, 0, 0);
        const uint32_t b = wrt[count++] = sized("b", TENSOR_F32, "vocab=%u rank=3", s->vocab, 0, 0);
        const uint32_t low = over(OPERATOR_DOT, over(OPERATOR_DOT, h, a, "embed"), b, "rank");
        y = over(OPERATOR_ADD, y, by(OPERATOR_MUL, low, 2, false), "");
    }
    if (s->bias) {
        const uint32_t bias = sized("bias", TENSOR_F32, "vocab=%u", s->vocab, 0, 0);
        y = over(OPERATOR_ADD, y, bias, "");
        if (s->trained)
            wrt[count++] = bias;
    }
    if (s->cap > 0)
        y = by(OPERATOR_MUL, over(OPERATOR_TANH, by(OPERATOR_DIV, y, s->cap, false), GRAPH_NONE, ""), s->cap, true);
    if (s->temperature > 0)
        y = by(OPERATOR_DIV, y, s->temperature, false);
    uint32_t logprob = over(OPERATOR_TOKEN_LOGPROB, y, ids, "vocab");
    if (s->late)
        logprob = over(OPERATOR_SQUARE, logprob, GRAPH_NONE, "");
    const uint32_t loss = over(OPERATOR_SUM, logprob, weight, "row time");
    ok(graph_backward(g, loss, wrt, count, gradients, &err));
    ok(graph_output(g, "loss", loss, &err));
    for (uint32_t i = 0; i < count; i++) {
        char name[8];
        snprintf(name, sizeof name, "g%u", i);
        ok(graph_output(g, name, gradients[i], &err));
    }
    struct graph *canonical = graph_rewrite(g, NULL, &err);
    ok(canonical != NULL);
    graph_free(g);
    g = canonical;
}

/* Runs it on numbers, of whose weights a share below `share` is not 0. */
static void shape_compared(const struct shape *s, float share)
{
    const void *inputs[8];
    void *owned[8];
    for (uint32_t i = 0; i < g->bound_count; i++) {
        const struct graph_node *n = &g->nodes[g->bound[i]];
        float *x = numbers(n->values, 77 * i + 1);
        if (n->type == TENSOR_I32)
            for (uint64_t k = 0; k < n->values; k++)
                ((int32_t *)x)[k] = (int32_t)((k * 2654435761u >> 7) % s->vocab);
        if (strcmp(g->names[n->name], "weight") == 0)
            for (uint64_t k = 0; k < n->values; k++)
                x[k] = number(1000 + (uint32_t)k) < share ? x[k] : 0;
        inputs[i] = owned[i] = x;
    }
    same_bits(inputs, false);
    for (uint32_t i = 0; i < g->bound_count; i++)
        free(owned[i]);
}

/* Compares, and holds the memory to less than one value for each row and word. */
static void shape_tiled(const struct shape *s, uint32_t heads)
{
    shape_built(s);
    heads_counted(heads);
    struct executor *ex = executor_new(g, NULL, &err);
    ok(ex != NULL);
    if (s->rows * s->time > 3 * BODY_CHUNK && s->vocab > 8 * s->embed && s->vocab < BODY_FEW)
        assert_true(executor_bytes(ex) < (uint64_t)s->rows * s->time * s->vocab * sizeof(float));
    executor_free(ex);
    shape_compared(s, 2);
    shape_compared(s, -0.5f);
    shape_compared(s, -0.998f);
    shape_compared(s, -2);
    graph_free(g);
    fresh(NULL);
}

static void a_cap_a_bias_and_a_temperature_run_in_the_tiles_of_a_head(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++)
        shape_tiled(&(struct shape){ .rows = 3,
                                     .time = 150,
                                     .vocab = 70,
                                     .embed = 8,
                                     .bias = i & 1,
                                     .cap = i & 2 ? 0.5 : 0,
                                     .temperature = i & 4 ? 0.7 : 0 },
                    1);
}

static void an_adapter_on_a_head_runs_in_its_tiles(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        shape_tiled(
            &(struct shape){
                .rows = 2, .time = 301, .vocab = 90, .embed = 8, .adapter = true, .cap = i & 1 ? 2 : 0, .bias = i & 2 },
            1);
}

static void a_trained_bias_is_summed_by_lanes_over_tiles(void **state)
{
    (void)state;
    shape_tiled(&(struct shape){ .rows = 3, .time = 150, .vocab = 70, .embed = 8, .bias = true, .trained = true }, 1);
    shape_tiled(
        &(struct shape){
            .rows = 4, .time = 256, .vocab = 80, .embed = 8, .bias = true, .trained = true, .cap = 1, .adapter = true },
        1);
    /* more rows than one block of lanes has */
    shape_tiled(&(struct shape){ .rows = 17, .time = 251, .vocab = 40, .embed = 4, .bias = true, .trained = true }, 1);
}

static void a_gradient_that_comes_late_has_a_body_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        shape_tiled(&(struct shape){ .rows = 4,
                                     .time = 200,
                                     .vocab = 90,
                                     .embed = 8,
                                     .late = true,
                                     .cap = 1,
                                     .adapter = i & 1,
                                     .bias = i & 2,
                                     .trained = i & 2 },
                    2);
}

/* A table that is looked up, too: the gradient of the head goes on from that of the lookup, which comes last. */
static void a_tied_table_keeps_only_the_columns_that_its_lookup_names(void **state)
{
    (void)state;
    shape_tiled(&(struct shape){ .rows = 2, .time = 150, .vocab = 1300, .embed = 20, .tied = true }, 1);
    shape_tiled(&(struct shape){ .rows = 4, .time = 225, .vocab = 3700, .embed = 8, .tied = true, .cap = 3 }, 1);
    shape_tiled(&(struct shape){ .rows = 2, .time = 150, .vocab = 1300, .embed = 20, .tied = true, .adapter = true }, 1);
    shape_tiled(&(struct shape){ .rows = 2, .time = 150, .vocab = 1300, .embed = 20, .tied = true, .late = true }, 2);
}

static void a_tile_of_two_chunks_has_the_same_bits(void **state)
{
    (void)state;
    shape_tiled(
        &(struct shape){ .rows = 4, .time = 215, .vocab = BODY_FEW, .embed = 4, .tied = true, .bias = true, .trained = true }, 1);
    shape_tiled(&(struct shape){ .rows = 4, .time = 215, .vocab = BODY_FEW, .embed = 4, .cap = 3 }, 1);
}

static void a_tied_table_of_few_words_has_its_logits_computed_again(void **state)
{
    (void)state;
    shape_tiled(&(struct shape){ .rows = 1, .time = 300, .vocab = 700, .embed = 20, .tied = true }, 2);
    shape_tiled(&(struct shape){ .rows = 4, .time = 250, .vocab = 300, .embed = 8, .tied = true, .cap = 3 }, 2);
    shape_tiled(&(struct shape){ .rows = 1, .time = 300, .vocab = 700, .embed = 20, .tied = true, .late = true }, 3);
}

static void logits_that_are_an_output_stay_whole(void **state)
{
    (void)state;
    const struct shape s = { .rows = 3, .time = 100, .vocab = 70, .embed = 8, .cap = 1 };
    shape_built(&s);
    for (uint32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].op == OPERATOR_TANH)
            ok(graph_output(g, "capped", i, &err));
    heads_counted(0);
    shape_compared(&s, 2);
}

static void an_internal_operator_is_not_taken_from_the_wire(void **state)
{
    (void)state;
    enum operator_code code;
    struct buffer bytes = { 0 };
    uint32_t *from;
    assert_false(operator_find("head", &code));
    head_built(false, true);
    struct graph *arranged = arrange_heads(g, &from, &bodies, &body_count, &err);
    ok(arranged != NULL);
    graph_encode(arranged, false, &bytes);
    assert_null(graph_decode(bytes.bytes, bytes.size, NULL, &err));
    assert_int_equal(err.code, ERROR_UNKNOWN);
    buffer_free(&bytes);
    graph_free(arranged);
    bodies_free(bodies, body_count);
    free(from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_head_in_tiles_gives_the_bits_of_whole_logits, fresh, done),
        cmocka_unit_test_setup_teardown(log_probabilities_that_are_read_otherwise_are_all_there, fresh, done),
        cmocka_unit_test_setup_teardown(a_product_with_weights_reads_every_log_probability, fresh, done),
        cmocka_unit_test_setup_teardown(a_gradient_that_depends_on_the_log_probabilities_has_a_head_of_its_own, fresh, done),
        cmocka_unit_test_setup_teardown(the_gradient_of_a_trained_table_is_summed_in_tiles, fresh, done),
        cmocka_unit_test_setup_teardown(a_head_without_gradient_gives_log_probabilities_and_the_likeliest_token, fresh, done),
        cmocka_unit_test_setup_teardown(a_cap_a_bias_and_a_temperature_run_in_the_tiles_of_a_head, fresh, done),
        cmocka_unit_test_setup_teardown(an_adapter_on_a_head_runs_in_its_tiles, fresh, done),
        cmocka_unit_test_setup_teardown(a_trained_bias_is_summed_by_lanes_over_tiles, fresh, done),
        cmocka_unit_test_setup_teardown(a_gradient_that_comes_late_has_a_body_of_its_own, fresh, done),
        cmocka_unit_test_setup_teardown(a_tied_table_keeps_only_the_columns_that_its_lookup_names, fresh, done),
        cmocka_unit_test_setup_teardown(a_tile_of_two_chunks_has_the_same_bits, fresh, done),
        cmocka_unit_test_setup_teardown(a_tied_table_of_few_words_has_its_logits_computed_again, fresh, done),
        cmocka_unit_test_setup_teardown(logits_that_are_an_output_stay_whole, fresh, done),
        cmocka_unit_test_setup_teardown(an_internal_operator_is_not_taken_from_the_wire, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
