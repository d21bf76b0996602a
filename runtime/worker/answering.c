#include "runtime/worker/answering.h"

#include <stdlib.h>

#include "runtime/doc/documents.h"
#include "runtime/worker/constraint.h"
#include "runtime/worker/sampling.h"
#include "runtime/worker/values.h"

enum { REPORT_EVERY = 32 }; /* tokens */

struct answering {
    struct session *session;
    const struct job_reporter *to;
    size_t count;
    struct tokens *prompts;  /* of every item */
    struct generation *list; /* of those that fit, in order */
    size_t *place;           /* in `list`, of every item; SIZE_MAX: too long */
    size_t asked;            /* in `list` */
    bool constrained;
    struct constraints only;
    uint64_t tokens; /* drawn so far */
};

static bool read_item(struct answering *a, const json_t *job, const json_t *item, size_t i, struct error *err)
{
    struct generation *g = &a->list[a->asked];

    if (!sampling_prompt(a->session, item, &a->prompts[i], err))
        return false;
    a->place[i] = SIZE_MAX;
    if ((int64_t)a->prompts[i].count >= a->session->rules.context)
        return true;
    *g = (struct generation){ .prompt = a->prompts[i].ids,
                              .prompt_count = (uint32_t)a->prompts[i].count,
                              .most = (uint32_t)document_integer(job, "max_tokens"),
                              .seed = (uint64_t)document_integer(job, "seed") + i };
    a->place[i] = a->asked++;
    return !a->constrained || constraints_add(&a->only, a->place[i], json_object_get(item, "conversation"), err);
}

static bool read_items(struct answering *a, const json_t *job, struct error *err)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(job, "items"), i, item)
    {
        const char *place = document_text(item, "place");

        if (!read_item(a, job, item, i, err))
            return place ? error_at(err, "%s", place) : error_at(err, "items[%zu]", i);
    }
    return true;
}

static bool drawn_token(void *context, const struct generation *g, struct error *err)
{
    struct answering *a = context;
    json_int_t done = 0;
    json_t *report;

    (void)g;
    (void)err;
    if (++a->tokens % REPORT_EVERY != 0 || !a->to)
        return true;
    for (size_t i = 0; i < a->asked; i++)
        done += a->list[i].end != GENERATE_RUNNING;
    report = json_pack("{s:I, s:I}", "answered", done, "tokens", (json_int_t)a->tokens);
    a->to->report(a->to->context, report);
    json_decref(report);
    return true;
}

static json_t *answers(const struct answering *a, struct error *err)
{
    json_t *list = json_array();
    struct buffer text = { 0 };
    bool ok = true;

    for (size_t i = 0; ok && i < a->count; i++) {
        const struct generation *g = a->place[i] == SIZE_MAX ? NULL : &a->list[a->place[i]];

        buffer_clear(&text);
        ok = !g || generate_text(a->session, g->tokens, g->count, true, &text, err);
        json_array_append_new(list, json_pack("{s:s%, s:I, s:I, s:s}", "text", buffer_text(&text), text.size, "tokens",
                                              (json_int_t)(g ? g->count : 0), "prompt_tokens", (json_int_t)a->prompts[i].count,
                                              "end", sampling_end(g ? g->end : GENERATE_CONTEXT)));
    }
    buffer_free(&text);
    if (ok)
        return json_pack("{s:o}", "answers", list);
    json_decref(list);
    return NULL;
}

static bool answers_constrained(struct answering *a, const json_t *job, struct generate_options *options, struct error *err)
{
    bool ok = constraints_of(&a->only, a->session, job, a->list, a->count, options, err);

    a->constrained = options->allow != NULL;
    return ok;
}

json_t *job_answer(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err)
{
    struct answering a = { .session = s, .to = to, .count = json_array_size(json_object_get(job, "items")) };
    uint32_t ends[GENERATE_ENDS];
    struct generate_options options = { .ends = ends,
                                        .end_count = generate_ends(s, ends),
                                        .rows = (uint32_t)document_integer(job, "rows"),
                                        .token = drawn_token,
                                        .context = &a };
    float *values = NULL;
    json_t *result = NULL;

    a.prompts = calloc(a.count + 1, sizeof *a.prompts);
    a.list = calloc(a.count + 1, sizeof *a.list);
    a.place = calloc(a.count + 1, sizeof *a.place);
    if (!a.prompts || !a.list || !a.place)
        error_set(err, ERROR_MEMORY, "fewer of them", "no memory for %zu items", a.count);
    else if (sampling_rule(s, job, &options.rule, err) && (values = values_read(s, job, err)) &&
             answers_constrained(&a, job, &options, err) && read_items(&a, job, err) &&
             generate(s, values, &options, a.list, a.asked, err))
        result = answers(&a, err);
    for (size_t i = 0; a.prompts && a.list && i < a.count; i++) {
        generation_free(&a.list[i]);
        tokens_free(&a.prompts[i]);
    }
    constraints_free(&a.only);
    free(a.prompts);
    free(a.list);
    free(a.place);
    free(values);
    return result;
}
