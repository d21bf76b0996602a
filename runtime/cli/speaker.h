/* speaker.h - a model that talks: what `sample`, `chat` and `eval` share.
 *
 *     --model, --adapter, --template   a model by itself ──┐
 *                                                          ├──> a worker that has it open ── speaker_job ──> text
 *     --home, --run                    a run's last state ─┘
 *
 * A command lists SPEAKER_SOURCE, and SPEAKER_RULE where it draws tokens, among its options.
 */
#ifndef RONDO_CLI_SPEAKER_H
#define RONDO_CLI_SPEAKER_H

#include "native/base/scratch.h"
#include "runtime/cli/command.h"
#include "runtime/role/archive.h"

enum { SPEAKER_FILE_MOST = 1 << 20 };

#define SPEAKER_SOURCE                                                                                                           \
    { "model", "PATH", "folder or .gguf file (default: the pocket model that ships)" },                                          \
        { "adapter", "DIR", "LoRA adapter in PEFT's layout, such as a run's" },                                                  \
        { "run", "RUN", "last state of this run of the home, instead of a model" },                                              \
    {                                                                                                                            \
        "template", "FILE", "chat template (default: the model's)"                                                               \
    }

#define SPEAKER_RULE                                                                                                             \
    { "max-tokens", "N", "stop after so many tokens (default 128)" },                                                            \
        { "greedy", NULL, "always the most likely token (the default)" },                                                        \
        { "as-model", NULL, "draw as the model's generation_config.json says, where no option says otherwise" },                 \
        { "temperature", "T", "draw from softmax(logits / T)" }, { "top-k", "K", "draw among the K most likely" },               \
        { "top-p", "P", "draw among the most likely that together reach P" },                                                    \
        { "min-p", "P", "draw among those at least P times as likely as the first" },                                            \
        { "repetition", "R", "divide the logits of tokens that were there by R (default 1)" },                                   \
        { "constrain", "tools[-or-text]", "the answer is calls of the conversation's tools, right by their schemas, or text" },  \
        { "stop", "TEXT", "end before this text; may be given more than once" },                                                 \
    {                                                                                                                            \
        "seed", "N", "of the draws (default 0)"                                                                                  \
    }

struct speaker {
    struct archive archive;
    struct scratch home; /* of a model by itself: the worker's folder */
    bool opened, scratch;
    const char *outer;   /* the run's last state; NULL: the model's values */
    const char *adapter; /* NULL: none */
};

/* By the options of SPEAKER_SOURCE. Close it after a failure, too. Errors: usage (a model and a run), missing, those of opening. */
bool speaker_open(struct speaker *s, struct invocation *in, struct error *err);
void speaker_close(struct speaker *s);

/* A job "sample" by the options of SPEAKER_RULE, without prompt. New reference; NULL with `err` (usage). */
json_t *speaker_rule(const struct invocation *in, struct error *err);

/* Puts --constrain into a job. Errors: usage. */
bool speaker_constrain(const struct invocation *in, json_t *job, struct error *err);

/* Runs a job on what is open: outer and adapter are put in. New reference; NULL with `err`. Takes the reference of `job`. */
json_t *speaker_job(struct speaker *s, json_t *job, worker_progress *progress, void *context, struct error *err);

/* Prints the text of a sample job's reports as they come. */
struct speaker_stream {
    bool silent;
    size_t told; /* bytes that are out */
};
worker_progress speaker_print; /* context: struct speaker_stream */

#endif
