/* A run on the terminal, looked at again and again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/cli/commands.h"
#include "runtime/role/watch.h"
#include "runtime/round/value.h"

static const struct option options[] = {
    { "every", "SECONDS", "from one look to the next (default 2)" },
    { "once", NULL, "look once and end" },
    { "plain", NULL, "plain HTTP to other machines than this one" },
    { NULL, NULL, NULL },
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* --- lines as wide as the terminal, of what others wrote ------------------------------------------------------------------- */

struct screen {
    size_t width, height, lines;
    bool color;
};

static struct screen screen_now(const struct invocation *in)
{
    struct winsize size = { 0 };
    bool terminal = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;

    return (struct screen){ terminal ? size.ws_col : 200, terminal && size.ws_row > 0 ? size.ws_row : 1000, 0, in->color };
}

/* Cut at the width; no control character of a stranger reaches the terminal. */
static void put(struct screen *s, const char *style, const char *format, ...)
{
    char line[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (size_t i = 0; line[i]; i++) {
        if ((unsigned char)line[i] < ' ' || (unsigned char)line[i] >= 127)
            line[i] = '?';
        if (i == s->width) {
            line[i] = '\0';
            break;
        }
    }
    printf("%s%s%s\n", s->color ? style : "", line, s->color && style[0] ? "\033[0m" : "");
    s->lines++;
}

static const char *amount_of(const json_t *paid, const char *did)
{
    const char *amount = value_text(paid, did);

    return amount[0] ? amount : "-";
}

static void put_nodes(struct screen *s, const json_t *look)
{
    const json_t *paid = json_object_get(look, "paid");
    json_t *node;
    size_t index;

    put(s, "\033[1m", "%-16s %-8s %-14s %6s %5s %14s  %s", "node", "role", "phase", "round", "view", "paid", "endpoint");
    json_array_foreach(json_object_get(look, "nodes"), index, node)
    {
        bool answers = json_is_true(json_object_get(node, "answers"));
        long long view = (long long)value_integer(node, "view");
        char round[24] = "-", in_view[24] = "-";

        if (answers && !value_is(node, "role", "sponsor"))
            snprintf(round, sizeof round, "%lld", (long long)value_integer(node, "round"));
        if (answers && view > 0)
            snprintf(in_view, sizeof in_view, "%lld", view);
        put(s, answers ? "" : "\033[2m", "%-16.16s %-8.8s %-14.14s %6s %5s %14s  %s", value_text(node, "name"),
            value_text(node, "role"),
            answers                           ? value_text(node, "phase")
            : value_text(node, "endpoint")[0] ? "no answer"
                                              : "not listening",
            round, in_view, amount_of(paid, value_text(node, "did")), value_text(node, "endpoint"));
    }
}

static void put_rounds(struct screen *s, const json_t *look)
{
    const json_t *rounds = json_object_get(look, "rounds");
    size_t count = json_array_size(rounds), room = s->height > s->lines + 8 ? s->height - s->lines - 8 : 3;

    put(s, "\033[1m", "%6s %-6s %9s %8s %10s %9s  %s", "round", "kind", "accepted", "refused", "loss", "disputes", "settles");
    for (size_t i = count > room ? count - room : 0; i < count; i++) {
        const json_t *r = json_array_get(rounds, i), *loss = json_object_get(r, "loss"), *settled = json_object_get(r, "settled");
        char mean[24] = "-", settles[64] = "";
        json_int_t refused = 0;
        const char *code;
        json_t *n;
        size_t at = 0, index;

        json_object_foreach(json_object_get(r, "refused"), code, n) refused += json_integer_value(n);
        if (json_is_real(loss))
            snprintf(mean, sizeof mean, "%.4f", json_real_value(loss));
        json_array_foreach(settled, index, n) if (at + 24 < sizeof settles) at +=
            (size_t)snprintf(settles + at, sizeof settles - at, "%lld ", (long long)json_integer_value(n));
        put(s, value_is(r, "kind", "skip") ? "\033[33m" : "", "%6lld %-6.6s %9lld %8lld %10s %9lld  %s%s",
            (long long)value_integer(r, "round"), value_text(r, "kind"), (long long)value_integer(r, "accepted"),
            (long long)refused, mean, (long long)value_integer(r, "disputes"), settles, value_text(r, "reason"));
    }
}

static void draw(const struct invocation *in, const json_t *look)
{
    struct screen s = screen_now(in);
    json_t *text;
    size_t index;

    if (isatty(STDOUT_FILENO))
        fputs("\033[H\033[J", stdout);
    put(&s, "\033[1m", "%s  round %lld of %lld%s  %s", value_text(look, "name"), (long long)value_integer(look, "round"),
        (long long)value_integer(look, "rounds_planned"), json_is_true(json_object_get(look, "finished")) ? ", finished" : "",
        value_text(look, "run"));
    put(&s, "", "");
    put_nodes(&s, look);
    put(&s, "", "");
    put_rounds(&s, look);
    if (json_array_size(json_object_get(look, "alerts")))
        put(&s, "", "");
    json_array_foreach(json_object_get(look, "alerts"), index, text)
    {
        put(&s, "\033[31m", "! %s", json_string_value(text));
    }
    fflush(stdout);
}

/* --- the command -------------------------------------------------------------------------------------------------------------- */

enum { SILENT_LOOKS = 5 };

static bool somebody_answers(const json_t *look)
{
    json_t *node;
    size_t index;

    json_array_foreach(json_object_get(look, "nodes"), index,
                       node) if (json_is_true(json_object_get(node, "answers"))) return true;
    return false;
}

static int watch_main(struct invocation *in)
{
    struct error err = { 0 };
    struct watch *watch = NULL;
    int64_t every = 2;
    bool finished = false;
    int silent = 0;

    if (option_integer(in, "every", 1, 3600, &every, &err))
        watch = watch_new(in->home, in->arguments ? in->argument[0] : NULL, option_flag(in, "plain"), &err);
    if (!watch)
        return command_fail(in, &err);
    signal(SIGINT, interrupt);
    while (!interrupted && !finished && silent < SILENT_LOOKS) {
        json_t *look = watch_look(watch);

        silent = somebody_answers(look) ? 0 : silent + 1;
        finished = option_flag(in, "once") || json_is_true(json_object_get(look, "finished"));
        if (in->json) {
            command_print_json(look);
            fflush(stdout);
        } else {
            draw(in, look);
            json_decref(look);
        }
        if (!finished)
            sleep((unsigned)every);
    }
    watch_free(watch);
    if (silent == SILENT_LOOKS) {
        error_set(&err, ERROR_NETWORK, "rondo run show reads the folders of a home whose nodes have stopped",
                  "nobody answers any more");
        return command_fail(in, &err);
    }
    return EXIT_OK;
}

const struct command command_watch = {
    "watch",
    "[URL]",
    "a run on the terminal: phases, records, losses, payments, and what somebody should look at",
    "rondo watch --home /srv/rondo\nrondo watch http://syncer.example:7001\nrondo watch http://127.0.0.1:7001 --once --json",
    "Asks the nodes that run in the home, or one node and everybody whose address it tells, again and again, until the run is "
    "over "
    "or\n"
    "Ctrl-C. Losses are those that trainers claim; nothing shown is verified: `rondo audit` and `rondo sync` do that. With "
    "--json "
    "one\n"
    "object a look.",
    options,
    watch_main,
};
