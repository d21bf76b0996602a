/* The bits of every operator and of its gradient, as tests/golden/operators.txt has them: the same for every instruction set and number of
 * threads, and the same as ever. The file was written by this program (RONDO_WRITE=1) when each operator was first checked against its
 * meaning (gradient_test.c); a change of a line is a change of the kernel class. */
#include <sodium.h>

#include "native/kernel/class.h"
#include "tests/unit/gradient_sites.h"

static const char path[] = RONDO_SOURCE "/tests/golden/operators.txt";

/* All outputs of a run, into the hash. */
static void hash_outputs(struct pool *pool, crypto_generichash_state *hash)
{
    seed = 5;
    struct data d = data_new();
    run(&(struct executor_options){ .pool = pool }, &d);
    for (uint32_t i = 0; i < g->output_count; i++)
        crypto_generichash_update(hash, d.outputs[i], bytes_of(&g->nodes[g->outputs[i].node]));
    data_free(&d);
}

/* One way of an operator: its result and, where it has them, the gradients of its operands. */
static void hash_site(const struct site *s, bool passes, struct pool *pool, crypto_generichash_state *hash)
{
    uint32_t gradient[4];
    char name[16];
    output("y", s->y);
    if (passes) {
        if (!graph_backward_from(g, s->y, cotangent(s->y), s->by, wanted(s), gradient, &err))
            fail_msg("%s", err.message);
        for (unsigned i = 0; i < wanted(s); i++) {
            sprintf(name, "d%u", i);
            output(name, gradient[i]);
        }
    }
    hash_outputs(pool, hash);
}

static void start_again(void)
{
    done(NULL);
    fresh(NULL);
}

static void drawn_site(enum operator_code op, struct site *s)
{
    uint32_t node;
    *s = of(checked(graph_add(g,
                              &(struct graph_request){ .op = op,
                                                       .axes = (struct graph_word[]){ { "a", 5 }, { "b", 7 } },
                                                       .axes_count = 2,
                                                       .integers = (int64_t[]){ -1 },
                                                       .integers_count = 1,
                                                       .name = "label" },
                              &node, &err),
                    &node),
            GRAPH_NONE, GRAPH_NONE, GRAPH_NONE);
}

/* "name version hash\n"; false when the operator computes nothing of its own. */
static bool line_of(enum operator_code op, struct pool *pool, char *line, size_t size)
{
    const struct row *row = &rows[op];
    const bool drawn = op == OPERATOR_UNIFORM || op == OPERATOR_NORMAL;
    crypto_generichash_state hash;
    uint8_t digest[16];
    char hex[33];
    struct site s;
    if (!row->build && !drawn)
        return false;
    crypto_generichash_init(&hash, NULL, 0, sizeof digest);
    for (unsigned turn = 0; turn < 2; turn++) {
        real = turn ? TENSOR_F64 : TENSOR_F32;
        if (turn && !(operator_table[op].flags & OPERATOR_F64))
            continue;
        if (drawn) {
            drawn_site(op, &s);
            hash_site(&s, false, pool, &hash);
        } else {
            for (unsigned way = 0; row->build(op, way, &s); way++, start_again())
                hash_site(&s, row->passing == PASSES, pool, &hash);
        }
        start_again();
    }
    real = TENSOR_F32;
    crypto_generichash_final(&hash, digest, sizeof digest);
    sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
    snprintf(line, size, "%s %u %s\n", operator_table[op].name, operator_table[op].version, hex);
    return true;
}

/* What only a gradient makes, and further results, are in the line of the operator whose they are. */
static bool has_line(enum operator_code op)
{
    return rows[op].passing != AFTER && op != OPERATOR_RESULT;
}

static void write_all(void)
{
    FILE *file = fopen(path, "w");
    char line[128];
    assert_non_null(file);
    for (unsigned op = 0; op < OPERATOR_CODES; op++)
        if (has_line((enum operator_code)op) && line_of((enum operator_code)op, NULL, line, sizeof line))
            fputs(line, file);
    fclose(file);
}

static void test_every_operator_gives_the_bits_it_gave(void **state)
{
    (void)state;
    if (getenv("RONDO_WRITE"))
        write_all();
    for (int isa = 0; isa < KERNEL_ISAS; isa++) {
        if (!kernel_isa_present((enum kernel_isa)isa))
            continue;
        assert_true(kernel_isa_use((enum kernel_isa)isa, &err));
        struct pool *pool = isa % 2 ? pool_new(3) : NULL;
        FILE *file = fopen(path, "r");
        char want[128], got[128];
        assert_non_null(file);
        for (unsigned op = 0; op < OPERATOR_CODES; op++) {
            if (!has_line((enum operator_code)op) || !line_of((enum operator_code)op, pool, got, sizeof got))
                continue;
            if (!fgets(want, sizeof want, file) || strcmp(want, got) != 0)
                fail_msg("%s: \"%.*s\" is not what %s has", kernel_isa_name((enum kernel_isa)isa), (int)strcspn(got, "\n"), got,
                         path);
        }
        assert_null(fgets(want, sizeof want, file));
        fclose(file);
        pool_free(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_operator_gives_the_bits_it_gave, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
