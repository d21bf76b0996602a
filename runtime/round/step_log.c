#include "runtime/round/step_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/crypto/root.h"
#include "runtime/doc/documents.h"
#include "runtime/round/assignment.h"
#include "runtime/round/plan_codec.h"
#include "runtime/round/value.h"

bool step_is_shown(const json_t *context, int64_t step, int64_t steps)
{
    const int64_t every = value_integer(context, "checkpoint_every");
    return every <= 1 || (step + 1) % every == 0 || step + 1 == steps;
}

uint64_t step_log_size(int64_t steps)
{
    const int64_t counted = steps < 0 ? 0 : steps > STEP_LOG_STEPS ? STEP_LOG_STEPS : steps;
    return STEP_LOG_HEAD + 2 * STEP_LOG_ENDS + (uint64_t)counted * STEP_LOG_LEAF;
}

void step_log_free(struct step_log *log)
{
    free(log->leaves);
    *log = (struct step_log){ 0 };
}

static void add_float(struct buffer *out, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    buffer_add_u32(out, bits);
}

void step_log_encode(const struct step_log *log, struct buffer *out)
{
    buffer_add(out, "RNDL", 4);
    buffer_add_u16(out, 1);
    buffer_add_u16(out, 0);
    buffer_add_u32(out, log->steps);
    buffer_add(out, log->start.bytes, HASH_SIZE);
    buffer_add(out, log->carry_in.bytes, HASH_SIZE);
    for (uint32_t i = 0; i < log->steps; i++) {
        buffer_add(out, log->leaves[i].batch.bytes, HASH_SIZE);
        add_float(out, log->leaves[i].loss);
        buffer_add(out, log->leaves[i].state.bytes, HASH_SIZE);
    }
    buffer_add(out, log->body.bytes, HASH_SIZE);
    buffer_add(out, log->carry_out.bytes, HASH_SIZE);
}

static struct hash read_hash(struct reader *r)
{
    struct hash hash = { 0 };
    const uint8_t *bytes = reader_bytes(r, HASH_SIZE);

    if (bytes)
        memcpy(hash.bytes, bytes, HASH_SIZE);
    return hash;
}

static float read_float(struct reader *r)
{
    uint32_t bits = reader_u32(r);
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

bool step_log_decode(const void *bytes, size_t size, struct step_log *out, struct error *err)
{
    struct reader r = reader_of(bytes, size);
    const uint8_t *magic = reader_bytes(&r, 4);
    uint16_t version = reader_u16(&r), zero = reader_u16(&r);

    *out = (struct step_log){ .steps = reader_u32(&r) };
    if (!r.ok)
        return error_set(err, ERROR_TRUNCATED, NULL, "a step log of %zu bytes", size);
    if (memcmp(magic, "RNDL", 4) != 0 || version != 1 || zero != 0)
        return error_set(err, ERROR_SYNTAX, NULL, "this is no step log of version 1");
    if (out->steps == 0 || out->steps > STEP_LOG_STEPS)
        return error_set(err, ERROR_LIMIT, NULL, "a step log of %u steps", out->steps);
    if (size != STEP_LOG_HEAD + 2 * STEP_LOG_ENDS + (size_t)out->steps * STEP_LOG_LEAF)
        return error_set(err, ERROR_TRUNCATED, NULL, "a step log of %u steps has %zu bytes", out->steps, size);
    out->leaves = calloc(out->steps, sizeof *out->leaves);
    if (!out->leaves)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a step log");
    out->start = read_hash(&r);
    out->carry_in = read_hash(&r);
    for (uint32_t i = 0; i < out->steps; i++) {
        out->leaves[i].batch = read_hash(&r);
        out->leaves[i].loss = read_float(&r);
        out->leaves[i].state = read_hash(&r);
        if (!isfinite(out->leaves[i].loss)) {
            step_log_free(out);
            return error_set(err, ERROR_NON_FINITE, NULL, "the loss of step %u is not finite", i);
        }
    }
    out->body = read_hash(&r);
    out->carry_out = read_hash(&r);
    return true;
}

int64_t step_log_difference(const struct step_log *a, const struct step_log *b)
{
    uint32_t steps = a->steps < b->steps ? a->steps : b->steps;

    if (!hash_equal(a->start, b->start) || !hash_equal(a->carry_in, b->carry_in))
        return 0;
    for (uint32_t i = 0; i < steps; i++)
        if (!hash_equal(a->leaves[i].batch, b->leaves[i].batch) || !hash_equal(a->leaves[i].state, b->leaves[i].state) ||
            memcmp(&a->leaves[i].loss, &b->leaves[i].loss, sizeof(float)) != 0)
            return (int64_t)i + 1;
    if (a->steps != b->steps || !hash_equal(a->body, b->body) || !hash_equal(a->carry_out, b->carry_out))
        return (int64_t)steps + 1;
    return -1;
}

float step_log_loss(const struct step_log *log)
{
    double sum = 0;

    for (uint32_t i = 0; i < log->steps; i++)
        sum += (double)log->leaves[i].loss;
    return (float)(sum / (double)log->steps);
}

json_t *probe_positions(const json_t *context, int64_t step, uint64_t values)
{
    struct hash seed = document_hash(context, "seed");
    const char *group = document_text(context, "group");

    return assignment_positions(seed, group ? group : document_text(context, "did"), step, PROBE_VALUES, values);
}

static bool same_bits(const json_t *text, float value)
{
    json_t *want = document_json_float(value);
    bool same = json_equal(text, want);

    json_decref(want);
    return same;
}

static bool probes_fit(const json_t *contribution, const json_t *context, const struct step_log *log)
{
    json_t *probes = json_object_get(contribution, "probes"), *steps = json_object_get(context, "probes"), *probe;
    size_t index;

    if (json_array_size(probes) != json_array_size(steps))
        return false;
    json_array_foreach(probes, index, probe)
    {
        int64_t step = json_integer_value(json_array_get(steps, index));
        json_t *value;
        size_t at;

        if (value_integer(probe, "step") != step || step < 0 || step >= (int64_t)log->steps ||
            !same_bits(json_object_get(probe, "loss"), log->leaves[step].loss))
            return false;
        json_array_foreach(json_object_get(probe, "values"), at, value)
        {
            if (!isfinite(document_float(value)))
                return false;
        }
    }
    return true;
}

/* What it begins with is what its trainer's latest kept contribution ended with, or nothing; what it ends with is kept only where the plan says
 * so, and then it names the object. */
static bool carry_fits(const json_t *contribution, const json_t *context)
{
    const struct hash empty = root_empty(), in = document_hash(contribution, "carry_in"),
                      out = document_hash(contribution, "carry_out");
    const json_t *carry = json_object_get(context, "carry");
    const bool keeps = value_is(json_object_get(context, "plan"), "inner", "keep");

    return (hash_equal(in, empty) || (carry && hash_equal(in, document_hash(carry, "root")))) &&
           (hash_equal(out, empty) || keeps) && hash_equal(out, empty) == (json_object_get(contribution, "carry") == NULL);
}

static bool states_fit(const json_t *context, const struct step_log *log)
{
    const struct hash none = { { 0 } };

    for (uint32_t i = 0; i < log->steps; i++)
        if (!step_is_shown(context, i, log->steps) && !hash_equal(log->leaves[i].state, none))
            return false;
    return true;
}

const char *contribution_code(const json_t *contribution, const json_t *context, const struct step_log *log, struct hash body)
{
    struct hash state = document_hash(context, "state");
    const json_t *plan = json_object_get(context, "plan");

    if (!hash_equal(document_hash(contribution, "start"), state))
        return "start";
    if (value_integer(contribution, "steps") != value_integer(plan, "steps") ||
        log->steps != (uint64_t)value_integer(plan, "steps"))
        return "steps";
    if (!plan_codec_fits(json_object_get(contribution, "codec"), plan))
        return "codec";
    if (value_integer(contribution, "fragment") != value_integer(plan, "fragment"))
        return "fragment";
    if (!carry_fits(contribution, context))
        return "carry";
    if (!hash_equal(log->start, state) || !hash_equal(log->carry_in, document_hash(contribution, "carry_in")) ||
        !hash_equal(log->carry_out, document_hash(contribution, "carry_out")) || !states_fit(context, log))
        return "step_log";
    if (!hash_equal(document_hash(contribution, "body"), body) || !hash_equal(log->body, body))
        return "body";
    if (!hash_equal(document_hash(contribution, "end"), log->leaves[log->steps - 1].state))
        return "end";
    if (!same_bits(json_object_get(contribution, "loss"), step_log_loss(log)))
        return "loss";
    return probes_fit(contribution, context, log) ? "ok" : "probes";
}
