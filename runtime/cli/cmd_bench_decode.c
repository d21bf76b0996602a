/* Tokens a second at the shapes of SmolLM2-135M, against transformers' generate and llama.cpp, and of a base of 4 bits against ours in float32. */
#include <string.h>
#include <unistd.h>

#include "runtime/cli/benches.h"
#include "runtime/cli/decode_load.h"
#include "runtime/cli/stepper.h"

enum { TOKENS = 32 }; /* of each sequence in one measurement */

enum peer { TRANSFORMERS, LLAMA, OURS };

static const struct load {
    const char *name;
    int rows;
    enum tensor_type base;
    enum peer peer;
} loads[] = {
    { "decode.f32.1", 1, TENSOR_F32, TRANSFORMERS }, { "decode.f32.8", 8, TENSOR_F32, TRANSFORMERS },
    { "decode.llama.1", 1, TENSOR_F32, LLAMA },      { "decode.llama.8", 8, TENSOR_F32, LLAMA },
    { "decode.q4.1", 1, TENSOR_Q4_0, OURS },         { "decode.q4.8", 8, TENSOR_Q4_0, OURS },
};
enum { LOADS = sizeof loads / sizeof *loads };

static const struct {
    const char *script, *name, *why;
} peers[] = {
    [TRANSFORMERS] = { "bench/peers/torch_decode.py", "transformers",
                       "torch and transformers cannot be imported, or this is no checkout" },
    [LLAMA] = { "bench/peers/llama_decode.py", "llama.cpp", "llama_cpp and gguf cannot be imported, or this is no checkout" },
};

static bool tokens_served(void *context, const char *line, struct error *err)
{
    (void)line;
    return decode_load_run(context, TOKENS, err);
}

static bool serve(const char *name, unsigned threads, struct error *err)
{
    for (size_t i = 0; i < LOADS; i++)
        if (strcmp(loads[i].name, name) == 0) {
            struct decode_load *load = decode_load_new(loads[i].rows, loads[i].base, threads, err);
            bool ok = load && stepper_serve("rondo", tokens_served, load, err);

            if (load)
                decode_load_free(load);
            return ok;
        }
    return error_set(err, ERROR_USAGE, "decode.f32.1, decode.f32.8, decode.llama.1, decode.q4.1, ...", "no load is called \"%s\"",
                     name);
}

static bool start_ours(struct stepper *s, const char *program, const char *load, unsigned threads, struct error *err)
{
    char count[16];

    snprintf(count, sizeof count, "%u", threads);
    return stepper_start(s, (const char *const[]){ program, "bench", "decode", "--serve", load, "--threads", count, NULL }, err);
}

static bool start_peer(struct stepper *s, const struct load *load, unsigned threads, struct error *err)
{
    char count[16], tokens[16], sequences[16];

    snprintf(count, sizeof count, "%u", threads);
    snprintf(tokens, sizeof tokens, "%d", TOKENS);
    snprintf(sequences, sizeof sequences, "%d", load->rows);
    return stepper_start(s,
                         (const char *const[]){ stepper_python(), peers[load->peer].script, "--rows", sequences, "--tokens",
                                                tokens, "--threads", count, NULL },
                         err);
}

/* In float32 against another program; of 4 bits against ours in float32. */
static bool load_run(struct measure *m, const struct load *load, const char *program, struct error *err)
{
    const unsigned threads = m->in->threads;
    const double tokens = (double)load->rows * TOKENS;
    struct stepper ours, theirs;
    const bool peer = load->peer != OURS;

    if (!measure_wanted(m, load->name))
        return true;
    if (peer && !start_peer(&theirs, load, threads, err)) {
        error_clear(err);
        measure_absent(m, load->name, peers[load->peer].name, peers[load->peer].why, "sh bench/run.sh, or RONDO_BENCH_PYTHON");
        return true;
    }
    if (!peer && !start_ours(&theirs, program, load->rows == 1 ? loads[0].name : loads[1].name, threads, err))
        return false;
    if (!start_ours(&ours, program, load->name, threads, err)) {
        stepper_stop(&theirs);
        return false;
    }

    struct measure_row row =
        measure_run(m, &(struct measure_contest){ .name = load->name,
                                                  .unit = "tokens/s",
                                                  .peer = peer ? theirs.name : "rondo, float32",
                                                  .ours = { stepper_step, &ours, tokens, threads, &ours.cpu },
                                                  .theirs = { stepper_step, &theirs, tokens, threads, &theirs.cpu },
                                                  .least = 1e-6,
                                                  .rest = 0.3 });
    bool ok = (!ours.failed && !theirs.failed) ||
              error_set(err, ERROR_MISSING, NULL, "%s: a process ended before its tokens", load->name);

    if (ok)
        measure_print(m, &row);
    stepper_stop(&ours);
    stepper_stop(&theirs);
    return ok;
}

bool bench_decode(struct measure *m, struct error *err)
{
    const char *served = option_text(m->in, "serve", NULL);
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    if (served)
        return serve(served, m->in->threads, err);
    program[length > 0 ? length : 0] = 0;
    for (size_t i = 0; i < LOADS; i++)
        if (!load_run(m, &loads[i], program, err))
            return false;
    return true;
}
