#include <stdio.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/text/template.h"
#include "runtime/cli/commands.h"

enum { CONTEXT_LIMIT = 64 << 20 };

static bool read_date(const struct invocation *in, struct template_options *options, struct error *err)
{
    const char *date = option_text(in, "date", NULL);

    if (!date || date_parse(date, &options->date, err))
        return true;
    err->code = ERROR_USAGE;
    return error_at(err, "--date");
}

static bool render(const struct invocation *in, struct template_output *out, struct error *err)
{
    const char *path = option_text(in, "template", NULL), *values = option_text(in, "context", NULL);
    struct template_options options = { .date = TEMPLATE_DATE, .literal = true };
    struct template *template = NULL;
    struct buffer source = { 0 };
    json_t *context = NULL;
    bool ok = (path && values) || error_set(err, ERROR_USAGE, NULL, "--template and --context are needed");

    ok = ok && read_date(in, &options, err) && file_read(path, TEMPLATE_MAX_SOURCE, &source, err);
    if (ok) {
        template = template_new((const char *)source.bytes, source.size, err);
        ok = template || error_at(err, "%s", path);
    }
    if (ok) {
        context = json_read_file(values, CONTEXT_LIMIT, err);
        ok = context && (json_is_object(context) ||
                         error_set(err, ERROR_TYPE, "its members are the template's variables", "not a JSON object") ||
                         error_at(err, "%s", values));
    }
    if (ok && !template_render(template, context, &options, out, err)) {
        if (err->code == ERROR_SCRIPT && !err->hint[0])
            snprintf(err->hint, sizeof err->hint, "the template refuses this context: change one of them");
        ok = error_at(err, "%s", path);
    }
    json_decref(context);
    template_free(template);
    buffer_free(&source);
    return ok;
}

static int render_main(struct invocation *in)
{
    struct template_output out = { 0 };
    struct error err = { 0 };

    if (!render(in, &out, &err))
        return command_fail(in, &err);
    if (in->json)
        command_print_json(json_pack("{s:o}", "text", json_stringn(buffer_text(&out.text), out.text.size)));
    else
        fwrite(out.text.bytes, 1, out.text.size, stdout);
    template_output_free(&out);
    return EXIT_OK;
}

static const struct option options[] = {
    { "template", "FILE", "a chat template, as chat_template.jinja" },
    { "context", "FILE", "a JSON object: messages, tools, add_generation_prompt, bos_token and what else the template reads" },
    { "date", "YYYY-MM-DD", "what strftime_now prints (default 2026-01-01, as in a run that names none)" },
    { NULL, NULL, NULL },
};

const struct command command_render = {
    "render",
    "",
    "the text that a chat template makes of a context",
    "rondo render --template models/pocket/chat_template.jinja --context context.json\n"
    "rondo render --template chat_template.jinja --context context.json --date 2026-01-31",
    "Prints the rendering and nothing else, as transformers' apply_chat_template would with these variables; a variable that\n"
    "is not in the context is undefined, one that should be None is null. When the template raises, or needs what is not\n"
    "offered, nothing is printed but the line and the reason on standard error, exit status 3.",
    options,
    render_main,
};
