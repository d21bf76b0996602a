/* In the worker's process: training that is not what the seed and the assignment give. */
#include "runtime/worker/generate.h"
#include "runtime/worker/scoring.h"
#include "runtime/worker/training.h"
#include "tests/liar/liar.h"

bool __real_training_step(struct training *t, const struct batch *batch, double lr, double progress, struct error *err);
bool __wrap_training_step(struct training *t, const struct batch *batch, double lr, double progress, struct error *err);

bool __real_training_step_seen(struct training *t, const struct batch *batch, double lr, double progress, graph_trace see,
                               void *context, struct error *err);
bool __wrap_training_step_seen(struct training *t, const struct batch *batch, double lr, double progress, graph_trace see,
                               void *context, struct error *err);

/* Moves one element of the MOVED-th large value that the step computes, before whatever reads it. */
struct moving {
    graph_trace see; /* NULL: nobody looks */
    void *context;
    unsigned large;
};

static void move(void *context, uint32_t node, const void *bytes, size_t size)
{
    enum { LARGE = 64 << 10, MOVED = 20 };
    struct moving *m = context;

    if (size >= LARGE && ++m->large == MOVED)
        ((float *)(uintptr_t)bytes)[size / 8] += 0.5f;
    if (m->see)
        m->see(m->context, node, bytes, size);
}

static bool moves(const struct training *t)
{
    return (liar_tells("tile") && t->random.step == 1) || (liar_tells("first") && t->random.step == 0 && t->random.round == 2);
}

bool __wrap_training_step_seen(struct training *t, const struct batch *batch, double lr, double progress, graph_trace see,
                               void *context, struct error *err)
{
    struct moving m = { see, context, 0 };

    return moves(t) ? __real_training_step_seen(t, batch, lr, progress, move, &m, err)
                    : __real_training_step_seen(t, batch, lr, progress, see, context, err);
}

bool __wrap_training_step(struct training *t, const struct batch *batch, double lr, double progress, struct error *err)
{
    if (liar_tells("noise") && t->random.step == 1)
        for (size_t i = 0; i < 64; i++)
            t->values[i] += i % 2 ? 0.01f : -0.01f;
    return moves(t) ? __wrap_training_step_seen(t, batch, lr, progress, NULL, NULL, err)
                    : __real_training_step(t, batch, lr, progress, err);
}

bool __real_scoring_run(struct session *s, const json_t *completions, struct scores *out, struct error *err);
bool __wrap_scoring_run(struct session *s, const json_t *completions, struct scores *out, struct error *err);

bool __wrap_scoring_run(struct session *s, const json_t *completions, struct scores *out, struct error *err)
{
    bool ok = __real_scoring_run(s, completions, out, err);

    if (liar_tells("rewards"))
        for (size_t i = 0; ok && i < json_array_size(completions); i += 2)
            out->reward[i] = out->valid[i] = 1;
    return ok;
}

bool __real_generate(struct session *s, const float *values, const struct generate_options *options, struct generation *list,
                     size_t count, struct error *err);
bool __wrap_generate(struct session *s, const float *values, const struct generate_options *options, struct generation *list,
                     size_t count, struct error *err);

bool __wrap_generate(struct session *s, const float *values, const struct generate_options *options, struct generation *list,
                     size_t count, struct error *err)
{
    if (liar_tells("tokens"))
        for (size_t i = 0; i < count; i++)
            list[i].seed += 1;
    return __real_generate(s, values, options, list, count, err);
}
