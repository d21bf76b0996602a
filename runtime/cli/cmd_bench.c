#include <string.h>

#include "native/base/buffer.h"
#include "native/kernel/class.h"
#include "runtime/cli/benches.h"
#include "runtime/cli/commands.h"

/* The parts, in the order in which all of them run; one a line, so that additions do not collide. */
/* clang-format off */
static const struct {
    const char *name;
    bool (*run)(struct measure *m, struct error *err);
} parts[] = {
    { "aggregate", bench_aggregate },
    { "attention", bench_attention },
    { "codec", bench_codec },
    { "decode", bench_decode },
    { "functions", bench_functions },
    { "gemm", bench_gemm },
    { "hash", bench_hash },
    { "network", bench_network },
    { "step", bench_step },
    { "tokenize", bench_tokenize },
};
/* clang-format on */

enum { PARTS = sizeof parts / sizeof *parts };

static const struct option options[] = {
    { "pairs", "N", "pairs of measurements, 5 to 101 (default 5)" },
    { "only", "NAME", "rows whose names start so" },
    { "cpu", NULL, "count processor time: for a machine that is busy otherwise; of N threads an Nth" },
    { "serve", "STEP",
      "of step: answer each line of standard input by one step (lora.4x256, ..., full, qlora, traced); of decode: by tokens "
      "(decode.f32.1, ...); of gemm: ours or openblas" },
    { "profile", NULL, "of a step: time, rates and share of the machine's limit for each operator" },
    { NULL, NULL, NULL },
};

static bool run_part(const char *name, struct measure *m, struct error *err)
{
    for (size_t i = 0; i < PARTS; i++)
        if (strcmp(parts[i].name, name) == 0)
            return parts[i].run(m, err) || error_at(err, "%s", name);
    return error_set(err, ERROR_USAGE, "see rondo bench --help", "no bench is called \"%s\"", name);
}

/* Whether some row was asked for; else the rows that there are. */
static bool some_row(const struct measure *m, struct error *err)
{
    struct buffer rows = { 0 };
    const char *name;
    json_t *wanted;

    json_object_foreach(m->names, name, wanted)
    {
        if (json_is_true(wanted)) {
            buffer_free(&rows);
            return true;
        }
        buffer_printf(&rows, "%s%s", rows.size ? ", " : "rows begin with one of: ", name);
    }
    error_set(err, ERROR_USAGE, buffer_text(&rows), "--only %s: no row of these parts is called so", m->only);
    buffer_free(&rows);
    return false;
}

static bool run_parts(struct measure *m, struct error *err)
{
    const struct invocation *in = m->in;

    for (size_t i = 0; i < (in->arguments ? in->arguments : PARTS); i++)
        if (!run_part(in->arguments ? in->argument[i] : parts[i].name, m, err))
            return false;
    return option_text(in, "serve", NULL) || some_row(m, err);
}

static int bench_main(struct invocation *in)
{
    struct error err = { 0 };
    int64_t pairs = 5;
    bool ok;

    if (!option_integer(in, "pairs", 5, MEASURE_PAIRS, &pairs, &err) || !kernel_start(&err))
        return command_fail(in, &err);

    struct measure m = { .in = in,
                         .only = option_text(in, "only", ""),
                         .names = json_object(),
                         .pairs = (size_t)pairs,
                         .profile = option_flag(in, "profile"),
                         .cpu = option_flag(in, "cpu") };

    ok = run_parts(&m, &err);
    json_decref(m.names);
    return ok ? EXIT_OK : command_fail(in, &err);
}

const struct command command_bench = {
    "bench",
    "[PART...]",
    "measure the fast parts against the best peers on this machine, side by side",
    "rondo bench codec hash\nrondo bench hash --json --pairs 9",
    "Parts: aggregate (rules over eight contributions, against plain C), attention (2048 positions, against PyTorch), codec "
    "(bytes read a second, against memcpy), decode (tokens that go on, against transformers and llama.cpp), functions "
    "(exp, tanh, "
    "..., against the C library), gemm (products at the shapes of SmolLM2-135M, against OpenBLAS), hash (state root and leaves, "
    "against "
    "libsodium), network (eight nodes on loopback: time of a round beyond training, memory, a restart, an attack, blocks against "
    "curl from nginx), step (a "
    "training step, against PyTorch), tokenize (10 MB of mixed text, against tokenizers and tiktoken). "
    "Without a part, all. Each row is the median of interleaved pairs; with "
    "--json one "
    "object a line. A peer that is not installed is said to be absent: sh bench/run.sh installs the peers and runs all.",
    options,
    bench_main,
};
