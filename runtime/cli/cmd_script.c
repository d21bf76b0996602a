#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/json.h"
#include "native/base/scratch.h"
#include "native/model/source.h"
#include "runtime/cli/commands.h"
#include "runtime/role/bench.h"
#include "runtime/role/fit.h"
#include "runtime/role/run_file.h"
#include "runtime/script/host.h"

enum { CONFIG_LIMIT = 16 << 20 };

/* Fuel ends a loop; the clock is for a machine that is busy otherwise. */
static const struct script_limits patient = { .seconds = 60 };

/* --- shared --------------------------------------------------------------------------------------------------------------- */

/* NAME=VALUE as a spec has it: whole numbers, flags, and text (fractions are text there, too). */
static bool add_option(json_t *options, const char *given, struct error *err)
{
    const char *equals = strchr(given, '=');
    char name[128], *end;

    if (!equals || equals == given || equals - given >= (long)sizeof name)
        return error_set(err, ERROR_USAGE, "such as --option gamma=1.5", "--option %s: NAME=VALUE is needed", given);
    snprintf(name, sizeof name, "%.*s", (int)(equals - given), given);

    long long whole = strtoll(equals + 1, &end, 10);
    json_t *value = equals[1] && !*end                 ? json_integer(whole)
                    : strcmp(equals + 1, "true") == 0  ? json_true()
                    : strcmp(equals + 1, "false") == 0 ? json_false()
                                                       : json_string(equals + 1);

    if (json_object_set_new(options, name, value) != 0)
        return error_set(err, ERROR_USAGE, NULL, "--option %s is not UTF-8", given);
    return true;
}

static json_t *script_options(const struct invocation *in, struct error *err)
{
    json_t *options = json_object();

    for (size_t i = 0; i < in->count; i++)
        if (strcmp(in->given[i].option->name, "option") == 0 && !add_option(options, in->given[i].value, err)) {
            json_decref(options);
            return NULL;
        }
    return options;
}

static void print_list(const char *title, const json_t *list)
{
    json_t *each;
    size_t index;

    if (!json_array_size(list))
        return;
    printf("%-10s", title);
    json_array_foreach(list, index, each)
    {
        json_t *name = json_is_object(each) ? json_object_get(each, "name") : each;

        printf("%s%s", index ? ", " : "", json_string_value(name));
    }
    putchar('\n');
}

static void print_value(const json_t *value)
{
    char *text = json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    fputs(text ? text : "", stdout);
    free(text);
}

static void print_options(const json_t *options)
{
    json_t *each, *bound;
    size_t index;

    json_array_foreach(options, index, each)
    {
        printf("%-10s%-22s %-8s ", index ? "" : "options", json_string_value(json_object_get(each, "name")),
               json_string_value(json_object_get(each, "type")));
        print_value(json_object_get(each, "value"));
        if ((bound = json_object_get(each, "min")) && !json_is_null(bound)) {
            fputs(" >= ", stdout);
            print_value(bound);
        }
        if ((bound = json_object_get(each, "max")) && !json_is_null(bound)) {
            fputs(" <= ", stdout);
            print_value(bound);
        }
        if (json_is_array(bound = json_object_get(each, "choices"))) {
            fputs(" of ", stdout);
            print_value(bound);
        }
        if (json_is_string(bound = json_object_get(each, "help")))
            printf("  %s", json_string_value(bound));
        putchar('\n');
    }
}

static void print_description(const struct script_set *set, const json_t *meta)
{
    printf("%s.lua@%.8s  %s\n", set->files[0].name, json_string_value(json_object_get(meta, "hash")),
           json_string_value(json_object_get(meta, "kind")));
    if (json_is_string(json_object_get(meta, "data")))
        printf("data      %s\n", json_string_value(json_object_get(meta, "data")));
    print_list("serves", json_object_get(meta, "architectures"));
    print_list("imports", json_object_get(meta, "imports"));
    print_options(json_object_get(meta, "options"));
}

/* Reads FILE with what it may import. The options are kept by the caller. */
static bool read_script(const struct invocation *in, json_t *options, struct script_set *set, struct error *err)
{
    char folder[4096];

    return script_set_read(run_file_scripts(folder), in->argument[0], options, set, err);
}

/* --- describe and check --------------------------------------------------------------------------------------------------- */

static int describe_main(struct invocation *in)
{
    struct script_set set = { 0 };
    struct error err = { 0 };
    json_t *options = script_options(in, &err), *meta = NULL;

    if (options && read_script(in, options, &set, &err))
        meta = script_describe(&set.bundle, &patient, &err);
    if (meta && in->json)
        command_print_json(json_incref(meta));
    else if (meta)
        print_description(&set, meta);
    json_decref(meta);
    json_decref(options);
    script_set_free(&set);
    return meta ? EXIT_OK : command_fail(in, &err);
}

static void print_check(const struct script_set *set, const json_t *checked)
{
    json_t *each, *fault = json_object_get(checked, "fault");
    size_t index;

    print_description(set, checked);
    print_list("reads", json_object_get(checked, "fields"));
    print_list("gradients", json_object_get(checked, "gradients"));
    print_list("unread", json_object_get(checked, "unread"));
    if (json_object_get(checked, "plan")) {
        fputs("plan      ", stdout);
        print_value(json_object_get(checked, "plan"));
        putchar('\n');
    }
    json_array_foreach(json_object_get(checked, "graphs"), index, each)
    {
        printf("%-10s%-22s %lld nodes  %.16s\n", index ? "" : "graphs", json_string_value(json_object_get(each, "name")),
               (long long)json_integer_value(json_object_get(each, "nodes")), json_string_value(json_object_get(each, "hash")));
    }
    json_array_foreach(json_object_get(checked, "warnings"), index, each)
    {
        printf("warning   %s\n", json_string_value(each));
    }
    if (fault)
        printf("wrong     %s (%s)\n", json_string_value(json_object_get(fault, "message")),
               json_string_value(json_object_get(fault, "hint")));
    else
        puts("ok        traced twice in fresh processes, with equal results");
}

static int check_main(struct invocation *in)
{
    const char *config_path = option_text(in, "config", NULL);
    struct script_set set = { 0 };
    struct error err = { 0 };
    json_t *options = script_options(in, &err), *config = NULL, *checked = NULL;

    if (options && (!config_path || (config = json_read_file(config_path, CONFIG_LIMIT, &err))) &&
        read_script(in, options, &set, &err))
        checked = script_check(&set.bundle, config, &patient, &err);
    if (checked && in->json)
        command_print_json(json_incref(checked));
    else if (checked)
        print_check(&set, checked);

    bool checks = checked, wrong = json_object_get(checked, "fault") != NULL;

    json_decref(checked);
    json_decref(config);
    json_decref(options);
    script_set_free(&set);
    if (checks)
        return wrong ? EXIT_VERDICT : EXIT_OK;
    command_fail(in, &err);
    return err.code == ERROR_MISMATCH ? EXIT_VERDICT : error_status(err.code);
}

/* --- try ------------------------------------------------------------------------------------------------------------------ */

struct trial {
    const struct invocation *in;
    double first, last;
    bool began, several; /* `several`: more than one trainer */
};

static void step_told(void *context, json_t *progress)
{
    struct trial *t = context;
    json_t *metric;
    const char *name;

    if (!json_object_get(progress, "steps"))
        return;
    t->last = json_number_value(json_object_get(progress, "loss"));
    if (!t->began)
        t->first = t->last;
    t->began = true;
    if (t->in->quiet)
        return;
    if (t->in->json) {
        command_print_json(json_incref(progress));
        return;
    }
    if (t->several)
        printf("trainer %lld  ", (long long)json_integer_value(json_object_get(progress, "trainer")));
    printf("round %lld  step %3lld/%lld  loss %.4f", (long long)json_integer_value(json_object_get(progress, "round")),
           (long long)json_integer_value(json_object_get(progress, "step")),
           (long long)json_integer_value(json_object_get(progress, "steps")), t->last);
    json_object_foreach(json_object_get(progress, "metrics"), name, metric)
    {
        printf("  %s %.4f", name, json_number_value(metric));
    }
    printf("  %.0f tokens/s\n", json_number_value(json_object_get(progress, "tokens_per_second")));
    fflush(stdout);
}

/* A run around the script in a folder of its own, which goes afterwards. */
static json_t *try_script(struct trial *t, const struct bench_part *part, struct error *err)
{
    struct scratch home;
    json_t *run = bench_draft(part, err), *result;

    if (!run)
        return NULL;
    t->several = bench_trainers(part->kind) > 1;
    if (!scratch_open(&home, "try", err)) {
        json_decref(run);
        return NULL;
    }

    struct fit_options fit = { .runfile = part->script,
                               .run = run,
                               .home = home.path,
                               .seed = option_text(t->in, "seed", "try"),
                               .threads = t->in->threads,
                               .trainers = bench_trainers(part->kind),
                               .step = step_told,
                               .context = t };

    result = fit_run(&fit, err);
    scratch_close(&home);
    json_decref(run);
    return result;
}

/* Where nothing else is said: the pocket model and its conversations. */
static bool choose_model(const struct invocation *in, struct bench_part *part, char model[4200], char data[4400],
                         struct error *err)
{
    const char *given = option_text(in, "model", NULL);
    struct model_source *source;

    part->model = given ? given : bench_pocket(model);
    snprintf(data, 4400, "%.4000s/tools/train.jsonl", part->model);
    part->data = option_text(in, "data", access(data, R_OK) == 0 ? data : NULL);
    if (!part->data)
        return error_set(err, ERROR_USAGE, "--data FILE", "the model brings no data to train on");
    source = model_open(part->model, err);
    if (source)
        part->context = bench_context(model_config(source), 448);
    model_close(source);
    return source != NULL;
}

/* Checked by itself first, so that faults name the file. */
static json_t *kind_of(const struct invocation *in, json_t *options, struct error *err)
{
    struct script_set set = { 0 };
    json_t *checked = read_script(in, options, &set, err) ? script_check(&set.bundle, NULL, &patient, err) : NULL,
           *fault = json_object_get(checked, "fault");

    if (fault) {
        error_set(err, ERROR_SCRIPT, json_string_value(json_object_get(fault, "hint")), "%s",
                  json_string_value(json_object_get(fault, "message")));
        error_at(err, "%s", set.files[0].name);
        json_decref(checked);
        checked = NULL;
    }
    script_set_free(&set);
    return checked;
}

static int try_main(struct invocation *in)
{
    struct trial t = { .in = in };
    struct error err = { 0 };
    char model[4200], data[4400];
    int64_t steps = 20;
    json_t *options = script_options(in, &err), *checked = NULL, *result = NULL;
    struct bench_part part = { .script = in->argument[0], .options = options };

    if (options && option_integer(in, "steps", 2, 100000, &steps, &err) && choose_model(in, &part, model, data, &err) &&
        (checked = kind_of(in, options, &err))) {
        part.kind = json_string_value(json_object_get(checked, "kind"));
        part.keeps_peer = json_is_true(json_object_get(checked, "keeps_peer"));
        part.steps = (steps + 1) / 2;
        result = try_script(&t, &part, &err);
    }
    json_decref(options);
    if (!result) {
        json_decref(checked);
        return command_fail(in, &err);
    }
    if (in->json)
        command_print_json(json_pack("{s:s, s:f, s:f, s:O}", "kind", part.kind, "first", t.first, "last", t.last, "rounds",
                                     json_object_get(result, "rounds")));
    else
        printf("loss %.4f -> %.4f\n", t.first, t.last);
    json_decref(checked);
    json_decref(result);
    return EXIT_OK;
}

/* --- rows ----------------------------------------------------------------------------------------------------------------- */

#define SCRIPT_TEXT                                                                                                              \
    "FILE is a path, or the name of a script that ships. It runs in the sandbox that nodes use. A fault is told with its\n"      \
    "place, as focal_sft.lua@1f2e3d4c:9: the digits begin the hash of the file's text."

static const struct option describe_options[] = {
    { "option", "NAME=VALUE", "an option of the script; may be repeated" },
    { NULL, NULL, NULL },
};

const struct command command_script_describe = {
    "script describe",
    "FILE",
    "what a script is: kind, hash, imports, options",
    "rondo script describe chat_sft\nrondo script describe focal_sft.lua --option gamma=1 --json",
    SCRIPT_TEXT,
    describe_options,
    describe_main,
};

static const struct option check_options[] = {
    { "option", "NAME=VALUE", "an option of the script; may be repeated" },
    { "config", "FILE", "config.json for a model script (default: a small decoder)" },
    { NULL, NULL, NULL },
};

const struct command command_script_check = {
    "script check",
    "FILE",
    "admit a script and trace its graphs",
    "rondo script check focal_sft.lua\nrondo script check llama --config models/pocket/config.json",
    SCRIPT_TEXT " Graphs are traced\ntwice in fresh processes, at small sizes; exit status 1 when the two differ, or when a text "
                "model looks ahead or across documents.",
    check_options,
    check_main,
};

static const struct option try_options[] = {
    { "option", "NAME=VALUE", "an option of the script; may be repeated" },
    { "data", "FILE", "JSONL file to train on (default: the model's tools/train.jsonl)" },
    { "model", "PATH", "folder or .gguf file (default: the pocket model that ships)" },
    { "steps", "N", "steps in all, over two rounds (default 20; a schedule plans its own)" },
    { "seed", "TEXT", "seed of order and random choices (default: try)" },
    { NULL, NULL, NULL },
};

const struct command command_script_try = {
    "script try",
    "FILE",
    "train a small model for a few steps with a script",
    "rondo script try focal_sft.lua --data conversations.jsonl\nrondo script try lion --steps 40\n"
    "rondo script try close_match --data models/pocket/first_word/train.jsonl",
    "The script takes its part (objective, inner optimiser, aggregator, schedule, model, or reward of grpo) in a run of two "
    "rounds with one trainer;\n"
    "all other parts are plain. Each step's loss, the script's metrics and the speed are shown as they come. Nothing is kept.",
    try_options,
    try_main,
};
