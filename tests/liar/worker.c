/* In the worker's process: training that is not what the seed and the assignment give. */
#include "runtime/worker/generate.h"
#include "runtime/worker/scoring.h"
#include "runtime/worker/training.h"
#include "tests/liar/liar.h"

bool __real_training_step(struct training *t, const struct batch *batch, double lr, double progress, struct error *err);
bool __wrap_training_step(struct training *t, const struct batch *batch, double lr, double progress, struct error *err);

bool __wrap_training_step(struct training *t, const struct batch *batch, double lr, double progress, struct error *err)
{
    if (liar_tells("noise") && t->random.step == 1)
        for (size_t i = 0; i < 64; i++)
            t->values[i] += i % 2 ? 0.01f : -0.01f;
    return __real_training_step(t, batch, lr, progress, err);
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
