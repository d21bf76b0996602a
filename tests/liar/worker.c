/* In the worker's process: training that is not what the seed and the assignment give. */
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
