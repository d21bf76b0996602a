#include "runtime/cli/speaker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "runtime/role/bench.h"

/* --- source --------------------------------------------------------------------------------------------------------------- */

static bool open_run(struct speaker *s, struct invocation *in, struct error *err)
{
    struct archive *a = &s->archive;
    struct hash id;

    s->opened = true;
    if (!archive_open(a, in->home, option_text(in, "run", NULL), err))
        return false;
    s->outer = document_text(archive_record(a, (int64_t)json_array_size(a->finals) - 1), "outer");
    if (!s->outer)
        return error_set(err, ERROR_MISSING, "let it run first", "run %s has no decided round", a->course.run);
    return cid_parse(s->outer, &id, err) && archive_worker(a, in->threads, err) && archive_gather(a, id, true, err);
}

static bool open_model(struct speaker *s, struct invocation *in, struct error *err)
{
    const char *path = option_text(in, "template", NULL);
    char pocket[4200];
    struct buffer template = { 0 };
    bool ok = !path || file_read(path, SPEAKER_FILE_MOST, &template, err);

    buffer_add_u8(&template, 0);
    s->adapter = option_text(in, "adapter", NULL);
    ok = ok && scratch_open(&s->home, "speaker", err);
    s->scratch = ok;
    s->opened = ok && archive_new(&s->archive, s->home.path, err);
    ok = s->opened && bench_open(&s->archive, option_text(in, "model", bench_pocket(pocket)), s->adapter,
                                 path ? (const char *)template.bytes : NULL, in->threads, err);
    buffer_free(&template);
    return ok;
}

bool speaker_open(struct speaker *s, struct invocation *in, struct error *err)
{
    bool run = option_flag(in, "run") || (option_flag(in, "home") && !option_flag(in, "model"));

    *s = (struct speaker){ 0 };
    if (run && (option_flag(in, "model") || option_flag(in, "adapter") || option_flag(in, "template")))
        return error_set(err, ERROR_USAGE, NULL,
                         "a run has its model, adapter and template: leave --model, --adapter and --template out");
    return run ? open_run(s, in, err) : open_model(s, in, err);
}

void speaker_close(struct speaker *s)
{
    if (s->opened)
        archive_close(&s->archive);
    if (s->scratch)
        scratch_close(&s->home);
    *s = (struct speaker){ 0 };
}

/* --- rule ----------------------------------------------------------------------------------------------------------------- */

/* Puts the option's number into the job as `field`, if it was given. */
static bool number(const struct invocation *in, json_t *job, const char *option, const char *field, double least, double most,
                   struct error *err)
{
    const char *text = option_text(in, option, NULL);
    char *end;
    double value;

    if (!text)
        return true;
    value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        return error_set(err, ERROR_USAGE, NULL, "--%s %s: a number from %g to %g is needed", option, text, least, most);
    json_object_set_new(job, field, json_real(value));
    return true;
}

static bool stops(const struct invocation *in, json_t *job, struct error *err)
{
    json_t *list = json_array();

    json_object_set_new(job, "stop", list);
    for (size_t i = 0; i < in->count; i++) {
        if (strcmp(in->given[i].option->name, "stop") != 0)
            continue;
        if (!*in->given[i].value || json_array_append_new(list, json_string(in->given[i].value)) != 0)
            return error_set(err, ERROR_USAGE, NULL, "--stop: UTF-8 text is needed, one character at least");
    }
    return true;
}

bool speaker_constrain(const struct invocation *in, json_t *job, struct error *err)
{
    const char *what = option_text(in, "constrain", NULL);

    if (!what)
        return true;
    if (strcmp(what, "tools") != 0 && strcmp(what, "tools-or-text") != 0)
        return error_set(err, ERROR_USAGE, NULL, "--constrain %s: tools or tools-or-text is what answers can be constrained to",
                         what);
    json_object_set_new(job, "constrain", json_string(what));
    return true;
}

json_t *speaker_rule(const struct invocation *in, struct error *err)
{
    int64_t most = 128, seed = 0, top_k = 0;
    bool drawn;
    json_t *job = json_pack("{s:s}", "job", "sample");

    if (option_integer(in, "max-tokens", 1, 1 << 20, &most, err) && option_integer(in, "seed", 0, INT64_MAX, &seed, err) &&
        option_integer(in, "top-k", 0, 1 << 24, &top_k, err) && number(in, job, "temperature", "temperature", 0, 100, err) &&
        number(in, job, "top-p", "top_p", 1e-9, 1, err) && number(in, job, "min-p", "min_p", 0, 0.999999, err) &&
        number(in, job, "repetition", "repetition", 0.01, 100, err) && stops(in, job, err) && speaker_constrain(in, job, err)) {
        const bool as_model = option_flag(in, "as-model");

        json_object_set_new(job, "max_tokens", json_integer(most));
        json_object_set_new(job, "seed", json_integer(seed));
        if (as_model)
            json_object_set_new(job, "as_model", json_true());
        else if (!json_object_get(job, "temperature"))
            json_object_set_new(job, "temperature", json_real(0));
        if (!as_model || option_flag(in, "top-k"))
            json_object_set_new(job, "top_k", json_integer(top_k));
        drawn = json_number_value(json_object_get(job, "temperature")) > 0;
        if ((drawn || as_model) && option_flag(in, "greedy"))
            error_set(err, ERROR_USAGE, NULL, "--greedy and --%s exclude each other", drawn ? "temperature" : "as-model");
        else if (!drawn && !as_model && (top_k > 0 || json_object_get(job, "top_p") || json_object_get(job, "min_p")))
            error_set(err, ERROR_USAGE, "give --temperature, too", "--top-k, --top-p and --min-p say what is drawn from");
        else if (option_flag(in, "constrain") && option_flag(in, "stop"))
            error_set(err, ERROR_USAGE, NULL, "--constrain and --stop exclude each other: a call is whole");
        else
            return job;
    }
    json_decref(job);
    return NULL;
}

/* --- jobs ----------------------------------------------------------------------------------------------------------------- */

json_t *speaker_job(struct speaker *s, json_t *job, worker_progress *progress, void *context, struct error *err)
{
    if (s->outer)
        json_object_set_new(job, "outer", json_string(s->outer));
    if (s->adapter)
        json_object_set_new(job, "adapter", json_string(s->adapter));
    return archive_job(&s->archive, job, progress, context, err);
}

void speaker_print(void *context, json_t *progress)
{
    struct speaker_stream *s = context;
    const json_t *text = json_object_get(progress, "text");

    if (!text || s->silent)
        return;
    fwrite(json_string_value(text), 1, json_string_length(text), stdout);
    fflush(stdout);
    s->told += json_string_length(text);
}
