/* Products with matrices that an index picks, and scatters of outer products, give the bits of the graph as it stands, where every picked
 * matrix and outer product is made (a traced run), in the memory that they would have taken. */
#include "native/graph/backward.h"
#include "native/graph/rewrite.h"
#include "native/kernel/class.h"
#include "native/model/convert.h"
#include "tests/unit/arranged.h"

struct shape {
    unsigned row, time, slot, expert, embed, width;
};

static const struct shape shapes[] = {
    { 1, 1, 1, 1, 1, 1 },     { 2, 3, 2, 5, 7, 3 },   { 1, 5, 4, 4, 32, 24 },   { 2, 13, 2, 3, 33, 256 },
    { 1, 40, 3, 6, 65, 257 }, { 3, 7, 2, 8, 17, 64 }, { 1, 300, 2, 2, 16, 16 }, { 1, 9, 3, 5, 100, 512 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes, WAYS = 3 };

static const char *axes(const char *format, const struct shape *s)
{
    static char text[4][128];
    static unsigned at;
    char *out = text[at = (at + 1) % 4];
    size_t used = 0;
    for (const char *c = format; *c; c++) {
        const unsigned size = *c == 'r'   ? s->row
                              : *c == 't' ? s->time
                              : *c == 's' ? s->slot
                              : *c == 'e' ? s->expert
                              : *c == 'd' ? s->embed
                              : *c == 'k' ? 5
                                          : s->width;
        used += (size_t)snprintf(out + used, sizeof text[0] - used, "%s%c=%u", used ? " " : "", *c, size);
    }
    return out;
}

static uint32_t f32(const char *name, const char *format, const struct shape *s)
{
    return input(name, TENSOR_F32, axes(format, s));
}

static uint32_t picked(uint32_t table, uint32_t index)
{
    return over(OPERATOR_GATHER, table, index, "e");
}

static uint32_t both(enum operator_code op, uint32_t x, uint32_t y)
{
    return over(op, x, y, "");
}

/* A mixture's layer and the gradients of all that it reads, as graph_rewrite leaves it. */
static void mixture(const struct shape *s)
{
    const uint32_t x = f32("x", "rtd", s), gate = f32("gate", "ewd", s), up = f32("up", "ewd", s), down = f32("down", "edw", s),
                   weight = f32("weight", "rts", s), index = input("index", TENSOR_I32, axes("rts", s));
    const uint32_t inner =
        both(OPERATOR_MUL, over(OPERATOR_SILU, over(OPERATOR_DOT, x, picked(gate, index), "d"), GRAPH_NONE, ""),
             over(OPERATOR_DOT, x, picked(up, index), "d"));
    const uint32_t y = both(OPERATOR_MUL, over(OPERATOR_DOT, inner, picked(down, index), "w"), weight);
    const uint32_t out = both(OPERATOR_ADD, x, over(OPERATOR_SUM, y, GRAPH_NONE, "s"));
    const uint32_t loss = over(OPERATOR_SUM, over(OPERATOR_TANH, out, GRAPH_NONE, ""), GRAPH_NONE, "r t d");
    uint32_t gradients[5];
    ok(graph_backward(g, loss, (uint32_t[]){ x, gate, up, down, weight }, 5, gradients, &err) &&
       graph_output(g, "out", out, &err) && graph_output(g, "dx", gradients[0], &err) &&
       graph_output(g, "dgate", gradients[1], &err) && graph_output(g, "dup", gradients[2], &err) &&
       graph_output(g, "ddown", gradients[3], &err) && graph_output(g, "dweight", gradients[4], &err));
    struct graph *canonical = graph_rewrite(g, NULL, &err);
    ok(canonical != NULL);
    graph_free(g);
    g = canonical;
}

/* Experts by turns, some without a token, or all tokens with the same ones. */
static int32_t *chosen(const struct shape *s, unsigned way)
{
    const uint32_t count = s->row * s->time * s->slot;
    int32_t *index = malloc((count + 1) * sizeof *index);
    for (uint32_t i = 0; i < count; i++)
        index[i] = (int32_t)((way == 0   ? i
                              : way == 1 ? (uint32_t)((number(i) + 1) * 1000) % (s->expert > 2 ? s->expert - 1 : s->expert)
                                         : i % s->slot) %
                             s->expert);
    return index;
}

struct bound {
    void *data[16];
};

static struct bound bound_new(const struct shape *s, unsigned way)
{
    struct bound b = { { 0 } };
    for (uint32_t i = 0; i < g->bound_count; i++) {
        const struct graph_node *n = &g->nodes[g->bound[i]];
        b.data[i] = n->type == TENSOR_I32 ? (void *)chosen(s, way) : numbers(n->values, 1000 * i + 7 * way);
    }
    return b;
}

static void bound_free(struct bound *b)
{
    for (uint32_t i = 0; i < g->bound_count; i++)
        free(b->data[i]);
}

/* For every instruction set; by one thread and two. */
static void same_everywhere(const struct shape *s)
{
    const enum kernel_isa before = kernel_isa();
    for (unsigned way = 0; way < WAYS; way++) {
        struct bound b = bound_new(s, way);
        for (int isa = 0; isa < KERNEL_ISAS; isa++)
            if (kernel_isa_present((enum kernel_isa)isa)) {
                assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
                same_bits((const void *const *)b.data, false);
            }
        bound_free(&b);
    }
    assert_true(kernel_isa_use(before, NULL));
}

/* In less than the matrices and outer products of one expert of each token and slot would take. */
static void little_memory(const struct shape *s)
{
    struct executor *ex = executor_new(g, NULL, &err);
    ok(ex != NULL);
    assert_true(executor_bytes(ex) < (uint64_t)s->row * s->time * s->slot * s->embed * s->width * sizeof(float));
    executor_free(ex);
}

static void a_layer_of_experts_and_its_gradients_have_the_bits_of_the_graph(void **state)
{
    for (unsigned i = 0; i < SHAPES; i++) {
        mixture(&shapes[i]);
        same_everywhere(&shapes[i]);
        if (shapes[i].width > 100)
            little_memory(&shapes[i]);
        done(state);
        fresh(state);
    }
}

/* Adapters whose matrices are picked, too: a scaled product onto another, and a gradient summed over slots of a few values each. */
static void adapters_of_experts_have_the_bits_of_the_graph(void **state)
{
    for (unsigned i = 0; i < SHAPES; i++) {
        const struct shape *s = &shapes[i];
        const uint32_t x = f32("x", "rtd", s), base = f32("base", "ewd", s), a = f32("a", "ekd", s), b = f32("b", "ewk", s),
                       index = input("index", TENSOR_I32, axes("rts", s));
        uint32_t half, gradients[3];
        ok(graph_constant(g, TENSOR_F32, 0.5, &half, &err));
        const uint32_t product = over(OPERATOR_DOT, over(OPERATOR_DOT, x, picked(a, index), "d"), picked(b, index), "k");
        const uint32_t y = both(OPERATOR_ADD, over(OPERATOR_DOT, x, picked(base, index), "d"), both(OPERATOR_MUL, product, half));
        const uint32_t loss = over(OPERATOR_SUM, over(OPERATOR_TANH, y, GRAPH_NONE, ""), GRAPH_NONE, "r t s w");
        ok(graph_backward(g, loss, (uint32_t[]){ x, a, b }, 3, gradients, &err) && graph_output(g, "y", y, &err) &&
           graph_output(g, "dx", gradients[0], &err) && graph_output(g, "da", gradients[1], &err) &&
           graph_output(g, "db", gradients[2], &err));
        struct graph *canonical = graph_rewrite(g, NULL, &err);
        ok(canonical && has(canonical, OPERATOR_LOW_RANK));
        graph_free(g);
        g = canonical;
        same_everywhere(s);
        done(state);
        fresh(state);
    }
}

static uint32_t turned(uint32_t x, const char *axes)
{
    return over(OPERATOR_TRANSPOSE, x, GRAPH_NONE, axes);
}

/* Operands that lie otherwise in memory, the picked one first, and a matrix that is an output as well. */
static void operands_lie_as_they_like(void **state)
{
    const struct shape s = { 2, 5, 3, 4, 37, 256 };
    for (unsigned k = 0; k < 32; k++) {
        uint32_t x = f32("x", "rtd", &s), gate = f32("gate", k & 1 ? "edw" : "ewd", &s),
                 index = input("index", TENSOR_I32, axes("rts", &s)), gradients[2];
        const uint32_t wanted[2] = { x, gate };
        x = k & 2 ? turned(x, "d t r") : x;
        index = k & 4 ? turned(index, "s r t") : index;
        const uint32_t matrix = picked(gate, index);
        const uint32_t y = k & 8 ? over(OPERATOR_DOT, matrix, x, "d") : over(OPERATOR_DOT, x, matrix, "d");
        const uint32_t loss = over(OPERATOR_SUM, over(OPERATOR_SQUARE, y, GRAPH_NONE, ""), GRAPH_NONE, "r t s w");
        ok(graph_backward(g, loss, wanted, 2, gradients, &err) && graph_output(g, "y", y, &err) &&
           graph_output(g, "dx", gradients[0], &err) && graph_output(g, "dgate", gradients[1], &err) &&
           (!(k & 16) || graph_output(g, "matrix", matrix, &err)));
        same_everywhere(&s);
        done(state);
        fresh(state);
    }
}

/* Blocks of random codes whose scales are ordinary numbers. */
static uint8_t *stored_numbers(enum tensor_type type, size_t values)
{
    const size_t block = tensor_block_bytes(type), count = values / tensor_block_values(type);
    uint8_t *bytes = malloc(count * block);
    for (size_t i = 0; i < count * block; i++)
        bytes[i] = (uint8_t)((i * 2654435761u) >> 13);
    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * block, (uint16_t[]){ (uint16_t)(0x3c00 + i % 100) }, 2);
    return bytes;
}

static void stored_tables_are_read_as_they_are(void **state)
{
    static const enum tensor_type types[] = { TENSOR_BF16, TENSOR_Q8_0, TENSOR_Q4_0 };
    const struct shape s = { 1, 21, 2, 5, 64, 96 };
    (void)state;
    /* forward, and the gradient of what the experts read: a frozen base */
    const uint32_t x = f32("x", "rtd", &s), gate = f32("gate", "ewd", &s), index = input("index", TENSOR_I32, axes("rts", &s));
    const uint32_t y = over(OPERATOR_DOT, x, picked(gate, index), "d");
    const uint32_t loss = over(OPERATOR_SUM, over(OPERATOR_SQUARE, y, GRAPH_NONE, ""), GRAPH_NONE, "r t s w");
    uint32_t gradient;
    ok(graph_backward(g, loss, &x, 1, &gradient, &err) && graph_output(g, "y", y, &err) && graph_output(g, "dx", gradient, &err));
    struct bound b = bound_new(&s, 1);
    const size_t values = (size_t)5 * 96 * 64;
    for (unsigned t = 0; t < sizeof types / sizeof *types; t++) {
        uint64_t bytes;
        float *out[2][2], *table = malloc(values * sizeof *table);
        uint8_t *stored = stored_numbers(types[t], values);
        convert_to_f32(types[t], stored, values, table);
        for (int k = 0; k < 2; k++) {
            const uint8_t of[3] = { TENSOR_F32, k ? (uint8_t)types[t] : TENSOR_F32, TENSOR_I32 };
            struct executor *ex = executor_new(g, &(struct executor_options){ .stored = of }, &err);
            ok(ex != NULL);
            out[k][0] = malloc(21 * 2 * 96 * sizeof(float));
            out[k][1] = malloc(21 * 64 * sizeof(float));
            ok(executor_run(ex, (const void *[]){ b.data[0], k ? (void *)stored : table, b.data[2] }, (void *const *)out[k], NULL,
                            &err));
            bytes = executor_bytes(ex);
            assert_true(bytes < (uint64_t)21 * 2 * 96 * 64 * 4);
            executor_free(ex);
        }
        assert_memory_equal(out[0][0], out[1][0], 21 * 2 * 96 * sizeof(float));
        assert_memory_equal(out[0][1], out[1][1], 21 * 64 * sizeof(float));
        for (int k = 0; k < 2; k++) {
            free(out[k][0]);
            free(out[k][1]);
        }
        free(table);
        free(stored);
    }
    bound_free(&b);
}

static void an_index_outside_the_experts_is_refused(void **state)
{
    const struct shape s = { 1, 3, 2, 5, 8, 8 };
    (void)state;
    const uint32_t x = f32("x", "rtd", &s), gate = f32("gate", "ewd", &s), index = input("index", TENSOR_I32, axes("rts", &s));
    ok(graph_output(g, "y", over(OPERATOR_DOT, x, picked(gate, index), "d"), &err));
    struct bound b = bound_new(&s, 0);
    float y[3 * 2 * 8];
    ((int32_t *)b.data[2])[4] = 5;
    struct executor *ex = executor_new(g, NULL, &err);
    ok(ex != NULL);
    assert_false(executor_run(ex, (const void *const *)b.data, (void *[]){ y }, NULL, &err));
    assert_string_equal(err.message, "gather: index 5 is outside e=5");
    executor_free(ex);
    bound_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_layer_of_experts_and_its_gradients_have_the_bits_of_the_graph, fresh, done),
        cmocka_unit_test_setup_teardown(adapters_of_experts_have_the_bits_of_the_graph, fresh, done),
        cmocka_unit_test_setup_teardown(operands_lie_as_they_like, fresh, done),
        cmocka_unit_test_setup_teardown(stored_tables_are_read_as_they_are, fresh, done),
        cmocka_unit_test_setup_teardown(an_index_outside_the_experts_is_refused, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
