/* 10 MB of mixed text to token ids on one thread, against the libraries that most use: tokenizers (Rust) and tiktoken. */
#include <stdio.h>
#include <stdlib.h>

#include "native/base/file.h"
#include "native/text/tokenizer.h"
#include "runtime/cli/benches.h"
#include "runtime/cli/stepper.h"

static const char TEXT[] = "build/bench-text.txt";

/* A file of the repository, or of the fixtures beside it. */
static const struct row {
    const char *name, *library, *file;
    bool fixture;
} ROWS[] = {
    { "tokenize.r50k.tokenizers", "tokenizers", "tokenizer/ranks/r50k_base.tiktoken", true },
    { "tokenize.r50k.tiktoken", "tiktoken", "tokenizer/ranks/r50k_base.tiktoken", true },
    { "tokenize.cl100k.tiktoken", "tiktoken", "tokenizer/ranks/cl100k_base.tiktoken", true },
    { "tokenize.pocket.tokenizers", "tokenizers", "models/pocket/tokenizer.json", false },
};

struct side {
    struct tokenizer *tokenizer;
    struct buffer text;
    struct tokens tokens;
    bool failed;
};

static void encode(void *context)
{
    struct side *s = context;

    s->tokens.count = 0;
    s->failed = !tokenizer_encode(s->tokenizer, (const char *)s->text.bytes, s->text.size, false, &s->tokens, NULL) || s->failed;
}

static bool contest(struct measure *m, const struct row *row, struct stepper *theirs, struct side *ours, struct error *err)
{
    const double megabytes = (double)ours->text.size * 1e-6;
    const struct measure_row result =
        measure_run(m, &(struct measure_contest){ .name = row->name,
                                                  .unit = "MB/s",
                                                  .peer = theirs->name,
                                                  .ours = { encode, ours, megabytes, 1 },
                                                  .theirs = { stepper_step, theirs, megabytes, 1, &theirs->cpu },
                                                  .least = 0.2 });

    if (theirs->failed || ours->failed)
        return error_set(err, ERROR_MISSING, NULL, "%s", ours->failed ? "the text is refused" : "the peer ended before its pass");
    measure_print(m, &result);
    return true;
}

static bool run_row(struct measure *m, const struct row *row, struct error *err)
{
    const char *fixtures = getenv("RONDO_FIXTURES");
    struct stepper theirs = { 0 };
    struct side ours = { 0 };
    char path[4096];

    snprintf(path, sizeof path, "%s%s%s",
             !row->fixture ? ""
             : fixtures    ? fixtures
                           : "../shared/fixtures",
             row->fixture ? "/" : "", row->file);
    if (!measure_wanted(m, row->name))
        return true;
    if (!(ours.tokenizer = tokenizer_read_file(path, NULL))) {
        measure_absent(m, row->name, row->library, "its vocabulary cannot be read",
                       "RONDO_FIXTURES, the folder of the fixtures; run in a checkout");
        return true;
    }
    if (!stepper_start(&theirs,
                       (const char *const[]){ stepper_python(), "bench/peers/text_tokens.py", "--library", row->library,
                                              "--tokenizer", path, "--text", TEXT, NULL },
                       err)) {
        error_clear(err);
        measure_absent(m, row->name, row->library, "it cannot be imported, or this is no checkout",
                       "sh bench/run.sh, or RONDO_BENCH_PYTHON");
        tokenizer_free(ours.tokenizer);
        return true;
    }

    const bool ok = file_read(TEXT, TOKENIZER_MAX_TEXT, &ours.text, err) && contest(m, row, &theirs, &ours, err);

    stepper_stop(&theirs);
    tokenizer_free(ours.tokenizer);
    buffer_free(&ours.text);
    tokens_free(&ours.tokens);
    return ok || error_at(err, "%s", row->name);
}

bool bench_tokenize(struct measure *m, struct error *err)
{
    bool ok = true;

    for (size_t i = 0; ok && i < sizeof ROWS / sizeof *ROWS; i++)
        ok = run_row(m, &ROWS[i], err);
    return ok;
}
