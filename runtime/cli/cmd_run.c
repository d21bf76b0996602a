/* Before a run: check and create. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/commands.h"
#include "runtime/role/create.h"
#include "runtime/role/quote.h"

/* --- check --------------------------------------------------------------------------------------------------------------- */

static const struct option check_options[] = {
    { "no-measure", NULL, "run no training step: time and memory stay unknown" },
    { NULL, NULL, NULL },
};

static double part(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static const char *word(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "-";
}

static const char *size_text(double bytes, char text[32])
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
    size_t unit = 0;

    while (bytes >= 1000 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

static const char *time_text(double seconds, char text[32])
{
    if (seconds < 120)
        snprintf(text, 32, "%.1f s", seconds);
    else if (seconds < 7200)
        snprintf(text, 32, "%.0f min", seconds / 60);
    else
        snprintf(text, 32, "%.1f h", seconds / 3600);
    return text;
}

static void print_plans(const json_t *plans)
{
    json_t *each;
    size_t index;

    json_array_foreach(plans, index, each)
    {
        char *text = json_dumps(json_object_get(each, "plan"), JSON_COMPACT | JSON_SORT_KEYS);

        if (part(each, "from") == part(each, "to"))
            printf("  round %.0f  ", part(each, "from"));
        else
            printf("  rounds %.0f to %.0f  ", part(each, "from"), part(each, "to"));
        printf("%s%s\n", json_is_true(json_object_get(each, "depends")) ? "depends on the rounds before; for example " : "",
               text);
        free(text);
    }
}

static void print_time(const json_t *quote)
{
    const json_t *time = json_object_get(quote, "time"), *memory = json_object_get(quote, "memory"),
                 *round = json_object_get(time, "training_per_round"), *all = json_object_get(time, "in_all");
    char a[32], b[32], c[32], d[32];

    if (json_is_object(time))
        printf("time     training %s to %s a round, %s to %s in all, on machines like this one, each trainer alone on its own\n",
               time_text(json_number_value(json_array_get(round, 0)), a),
               time_text(json_number_value(json_array_get(round, 1)), b), time_text(json_number_value(json_array_get(all, 0)), c),
               time_text(json_number_value(json_array_get(all, 1)), d));
    else
        printf("time     unknown: no step was measured\n");
    if (json_is_object(memory))
        printf("memory   trainer %s (training %s, measured; a disputed step %s), syncer %s\n",
               size_text(part(memory, "trainer"), a), size_text(part(memory, "training"), b),
               size_text(part(memory, "dispute"), c), size_text(part(memory, "syncer"), d));
    else
        printf("memory   unknown: no step was measured\n");
}

static void print_money(const json_t *money)
{
    const json_t *each = json_object_get(money, "each_trainer_per_round");
    const char *least = json_string_value(json_array_get(each, 0)), *most = json_string_value(json_array_get(each, 1));
    bool even = strcmp(least, most) == 0;

    printf("money    %s %s a round: %s to trainers (%s%s%s each%s, when all are accepted), %s to syncers; %s in all\n",
           word(money, "per_round"), word(money, "asset"), word(money, "trainers_per_round"), least, even ? "" : " to ",
           even ? "" : most, even ? "" : " by their shards", word(money, "syncers_per_round"), word(money, "in_all"));
}

/* What the spec says of rows beside the dataset; nothing when it says nothing. */
static void print_rows(const json_t *spec)
{
    const json_t *packing = json_object_get(spec, "packing"), *date = json_object_get(spec, "template_date");
    const char *before = "rows     ";

    if (packing) {
        printf("%seach row of %.0f tokens holds several conversations (packing)", before, part(spec, "context"));
        before = ", ";
    }
    if (json_is_true(json_object_get(spec, "coalesce"))) {
        printf("%sa turn that begins the next one of its conversation goes into it (coalesce)", before);
        before = ", ";
    }
    if (json_is_true(json_object_get(spec, "surround"))) {
        printf("%stext stands between what the tokenizer puts around it (surround)", before);
        before = ", ";
    }
    if (date) {
        printf("%sstrftime_now prints %s", before, json_string_value(date));
        before = ", ";
    }
    if (json_is_true(json_object_get(spec, "parse_special"))) {
        printf("%sspecial tokens in messages are control tokens (parse_special)", before);
        before = ", ";
    }
    if (*before == ',')
        printf("\n");
}

static void print_quote(const json_t *quote)
{
    const json_t *work = json_object_get(quote, "work"), *bytes = json_object_get(quote, "bytes"),
                 *rollouts = json_object_get(quote, "rollouts"), *disk = json_object_get(quote, "disk"),
                 *money = json_object_get(quote, "money"), *c = json_object_get(quote, "committee");
    char a[32], b[32], e[32];

    printf("work     %.0f rounds, %.0f trainers, %.0f syncers; %.0f parameters are trained\n", part(work, "rounds"),
           part(work, "trainers"), part(work, "syncers"), part(work, "parameters"));
    printf("         %.0f steps a trainer, %.0f in all, at most %.0f tokens\n", part(work, "steps_per_trainer"),
           part(work, "steps"), part(work, "tokens_at_most"));
    print_rows(json_object_get(quote, "spec"));
    if (json_is_object(rollouts))
        printf("rollouts %.0f batches, groups of %.0f; at most %.0f completions, %.0f tokens drawn\n", part(rollouts, "batches"),
               part(rollouts, "samples"), part(rollouts, "completions_at_most"), part(rollouts, "drawn_tokens_at_most"));
    printf("bytes    a payload at most %s; %s sent a round, %s in all: dense exchange every step would be %.0f times as much\n",
           size_text(part(bytes, "payload_at_most"), a), size_text(part(bytes, "per_round"), b),
           size_text(part(bytes, "in_all"), e), part(bytes, "times_less_than_dense"));
    printf("disk     sponsor %s, trainer %s, syncer %s\n", size_text(part(disk, "sponsor"), a),
           size_text(part(disk, "trainer"), b), size_text(part(disk, "syncer"), e));
    print_time(quote);
    print_money(money);
    printf("         what a round does not pay comes back %.0f rounds later\n", part(money, "expiry_rounds"));
    if (part(work, "replicas") > 1)
        printf("tier     replicated: %.0f trainers at least get the same shards; what two of them, and more than half, give "
               "alike counts "
               "once\n",
               part(work, "replicas"));
    printf("trust    %.0f of %.0f syncers decide; %.0f may lie in every respect (f), what %.0f of them list counts (t)\n",
           part(c, "threshold"), part(c, "members"), part(c, "liars_tolerated"), part(c, "counted_by"));
    printf("         %.0f liars together could fork the run, %.0f release its money, with %.0f down it waits\n",
           part(c, "forks_with_liars"), part(c, "releases_with"), part(c, "waits_with_members_down"));
}

static void print_check(const json_t *quote)
{
    char *spec = json_dumps(json_object_get(quote, "spec"), JSON_INDENT(2));
    json_t *each;
    size_t index;

    printf("%s\n\nplans\n", spec);
    free(spec);
    print_plans(json_object_get(quote, "plans"));
    puts("");
    print_quote(quote);
    json_array_foreach(json_object_get(quote, "placeholders"), index, each)
    {
        printf("%s %s\n", index == 0 ? "\nmade up for this check:\n " : " ", json_string_value(each));
    }
    json_array_foreach(json_object_get(quote, "warnings"), index, each)
    {
        printf("%s %s\n", index == 0 ? "\nwarnings:\n " : " ", json_string_value(each));
    }
}

static int check_main(struct invocation *in)
{
    struct error err = { 0 };
    struct quote_options options = {
        .runfile = in->argument[0], .home = in->home, .measure = !option_flag(in, "no-measure"), .threads = in->threads
    };
    json_t *quote = quote_of(&options, &err);

    if (!quote)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(quote);
    } else {
        print_check(quote);
        json_decref(quote);
    }
    return EXIT_OK;
}

const struct command command_run_check = {
    "run check",
    "FILE",
    "the spec a run file makes, and what it will take: work, bytes, disk, memory, time, money",
    "rondo run check scripts/runs/quickstart.lua\nrondo run check my_run.lua --no-measure --json",
    "Nothing is signed, sent or kept. Keys that the file does not have yet are made up and said so. Exit status 3 when the file "
    "is\n"
    "refused; then its field and what is allowed are named.",
    check_options,
    check_main,
};

/* --- create -------------------------------------------------------------------------------------------------------------- */

static const struct option create_options_table[] = {
    { "ledger", "URL", "where the budget lies (default http://127.0.0.1:8645)" },
    { "panel", "FILE", "JSON list of {\"did\", \"account\"} of the syncers, when the run file has none" },
    { "allow", "FILE", "JSON list of the trainers' DIDs, when the run file has none" },
    { "name", "NAME", "folder HOME/nodes/NAME with the sponsor's key.json (default: sponsor)" },
    { "plain", NULL, "plain HTTP to a ledger on another machine" },
    { NULL, NULL, NULL },
};

static int create_main(struct invocation *in)
{
    struct error err = { 0 };
    struct create_options options = { .what = in->argument[0],
                                      .home = in->home,
                                      .name = option_text(in, "name", "sponsor"),
                                      .ledger = option_text(in, "ledger", "http://127.0.0.1:8645"),
                                      .panel = option_text(in, "panel", NULL),
                                      .allow = option_text(in, "allow", NULL),
                                      .passphrase = getenv("RONDO_PASSPHRASE"),
                                      .plain = option_flag(in, "plain"),
                                      .quiet = in->quiet };
    json_t *result = create_run(&options, &err);

    if (!result)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(result);
        return EXIT_OK;
    }
    printf("%s\n", word(result, "run"));
    if (!in->quiet)
        fprintf(stderr, "%s %s in escrow for %.0f rounds. Next: rondo sponsor %s --home %s --ledger %s\n",
                word(result, "escrowed"), word(result, "asset"), part(result, "rounds"), word(result, "run"), in->home,
                options.ledger);
    json_decref(result);
    return EXIT_OK;
}

const struct command command_run_create = {
    "run create",
    "FILE",
    "sign a run, keep everything it names, and put its money into escrows",
    "rondo run create my_run.lua --ledger http://127.0.0.1:8645 --panel panel.json --allow trainers.json\n"
    "rondo run create RUN --ledger http://127.0.0.1:8645   (goes on with a funding that was broken off)",
    "Prints the run's id. Scripts, model and data go into HOME/nodes/sponsor/blocks, from where `rondo sponsor` serves them. A\n"
    "signed run cannot be changed, and an escrow comes back only after its expiry: look at `rondo run check` first. A spec "
    "whose\n"
    "disputes trainers like this machine could not answer is refused (--memory says what theirs have).",
    create_options_table,
    create_main,
};
