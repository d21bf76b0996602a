#include "runtime/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/memory_limit.h"
#include "native/base/nearest.h"
#include "native/kernel/class.h"
#include "native/text/utf8.h"
#include "runtime/cli/manual.h"

enum { HOME_LONGEST = 2048 };

static const struct option *find_option(const struct option *list, const char *name, size_t size)
{
    for (; list && list->name; list++)
        if (strlen(list->name) == size && memcmp(list->name, name, size) == 0)
            return list;
    return NULL;
}

static void print_options(FILE *out, const struct option *list)
{
    for (; list && list->name; list++) {
        char left[64];

        snprintf(left, sizeof left, "--%s%s%s", list->name, list->value ? " " : "", list->value ? list->value : "");
        fprintf(out, "  %-22s %s\n", left, list->help);
    }
}

static void print_indented(FILE *out, const char *lines)
{
    for (const char *at = lines; *at;) {
        size_t size = strcspn(at, "\n");

        fprintf(out, "  %.*s\n", (int)size, at);
        at += size + (at[size] == '\n');
    }
}

static void command_help(FILE *out, const struct command *c)
{
    fprintf(out, "rondo %s: %s\n\nExamples:\n", c->name, c->summary);
    print_indented(out, c->examples);
    fprintf(out, "\nUsage: rondo %s%s%s [options]\n", c->name, c->arguments[0] ? " " : "", c->arguments);
    if (c->text[0])
        fprintf(out, "\n%s\n", c->text);
    if (c->options) {
        fputs("\nOptions:\n", out);
        print_options(out, c->options);
    }
    fputs("\nCommon options:\n", out);
    print_options(out, common_options);
    fputs("\nExit status: 0 ok, 1 a negative verdict, 2 usage, 3 refused input, 4 fault.\n", out);
}

static void general_help(FILE *out)
{
    fputs("rondo: train models in rounds between machines that do not trust each other\n\nExamples:\n"
          "  rondo local scripts/runs/quickstart.lua     a whole network on this machine\n"
          "  rondo replay RUN 1                          recompute round 1, bit for bit\n"
          "  rondo audit RUN                             check every signature, record and payment of a run\n\nCommands:\n",
          out);
    for (size_t i = 0; commands[i]; i++)
        fprintf(out, "  %-18s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n`rondo COMMAND --help` tells more. `rondo --version` prints the version and the kernel class,\n"
          "`rondo --generate man` a manual page, `rondo --generate complete-bash` completion for bash.\n",
          out);
}

static int usage(const struct command *c, const char *format, const char *word, const char *near)
{
    fputs("rondo: ", stderr);
    fprintf(stderr, format, word);
    if (near)
        fprintf(stderr, " (did you mean %s?)", near);
    fprintf(stderr, "\nTry: rondo %s%s--help\n", c ? c->name : "", c ? " " : "");
    return EXIT_USAGE;
}

/* The command whose words open argv; the longest wins. */
static const struct command *find_command(int argc, char **argv, int *words)
{
    const struct command *best = NULL;

    for (size_t i = 0; commands[i]; i++) {
        const char *at = commands[i]->name;
        int used = 0;

        while (*at && used < argc) {
            size_t size = strcspn(at, " ");

            if (strlen(argv[used]) != size || memcmp(argv[used], at, size) != 0)
                break;
            used++;
            at += size + (at[size] == ' ');
        }
        if (*at == '\0' && (!best || used > *words)) {
            best = commands[i];
            *words = used;
        }
    }
    return best;
}

static void default_home(struct invocation *in)
{
    const char *home = getenv("RONDO_HOME"), *data = getenv("XDG_DATA_HOME"), *user = getenv("HOME");

    if (home && home[0])
        snprintf(in->home, sizeof in->home, "%s", home);
    else if (data && data[0])
        snprintf(in->home, sizeof in->home, "%s/rondo", data);
    else
        snprintf(in->home, sizeof in->home, "%s/.local/share/rondo", user ? user : ".");
}

static int unknown_option(const struct command *c, const char *word)
{
    const char *names[128];
    size_t count = 0;
    char near[80];

    for (const struct option *o = c->options; o && o->name; o++)
        names[count++] = o->name;
    for (const struct option *o = common_options; o->name; o++)
        names[count++] = o->name;

    const char *name = nearest_name(word + 2, names, count);

    snprintf(near, sizeof near, "--%s", name ? name : "");
    return usage(c, "unknown option %s", word, name ? near : NULL);
}

static size_t count_words(const char *arguments, bool required)
{
    size_t count = 0;

    for (const char *at = arguments; *at;) {
        size_t size = strcspn(at, " ");

        if (memcmp(at, "...", size < 3 ? size : 3) != 0)
            count += !required || *at != '[';
        at += size + (at[size] == ' ');
    }
    return count;
}

/* Fills `in` from the words after the command's name; the status to end with, or -1 to go on. */
static int read_words(struct invocation *in, int argc, char **argv)
{
    const struct command *c = in->command;
    bool open = true;

    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];

        if (open && strcmp(word, "--") == 0) {
            open = false;
        } else if (open && strcmp(word, "-h") == 0) {
            command_help(stdout, c);
            return EXIT_OK;
        } else if (open && word[0] == '-' && word[1] == '-') {
            size_t size = strcspn(word + 2, "=");
            const struct option *o = find_option(c->options, word + 2, size);
            const char *value = word[2 + size] == '=' ? word + 3 + size : NULL;

            if (!o)
                o = find_option(common_options, word + 2, size);
            if (!o)
                return unknown_option(c, word);
            if (o->value && !value && ++i == argc)
                return usage(c, "option %s needs a value", word, NULL);
            if (!o->value && value)
                return usage(c, "option %s takes no value", word, NULL);
            if (in->count == sizeof in->given / sizeof *in->given)
                return usage(c, "too many options at %s", word, NULL);
            in->given[in->count].option = o;
            in->given[in->count++].value = !o->value ? "" : value ? value : argv[i];
        } else if (open && word[0] == '-' && word[1]) {
            return usage(c, "unknown option %s", word, NULL);
        } else if (in->arguments == sizeof in->argument / sizeof *in->argument) {
            return usage(c, "too many arguments at %s", word, NULL);
        } else {
            in->argument[in->arguments++] = word;
        }
    }
    if (option_flag(in, "help")) {
        command_help(stdout, c);
        return EXIT_OK;
    }
    if (in->arguments < count_words(c->arguments, true))
        return usage(c, "it takes: %s", c->arguments, NULL);
    if (in->arguments > count_words(c->arguments, false) && !strstr(c->arguments, "..."))
        return usage(c, "unexpected argument %s", in->argument[count_words(c->arguments, false)], NULL);
    return -1;
}

/* Names of files are told in JSON, and a path that was cut would lead elsewhere. */
static bool home_sound(const char *home, struct error *err)
{
    if (strlen(home) > HOME_LONGEST)
        return error_set(err, ERROR_USAGE, "--home names another", "the data folder's path has more than %d bytes", HOME_LONGEST);
    return utf8_valid(home, strlen(home), NULL) ||
           error_set(err, ERROR_USAGE, "--home names another", "the data folder's path %s is not UTF-8", home);
}

static bool words_sound(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!utf8_valid(argv[i], strlen(argv[i]), NULL)) {
            fprintf(stderr, "rondo: argument %d is not UTF-8; rename the file or folder\n", i);
            return false;
        }
    return true;
}

/* --memory, else RONDO_MEMORY, is left in the environment: workers and what starts them read it there. */
static bool memory_chosen(const struct invocation *in, struct error *err)
{
    const char *text = option_text(in, "memory", getenv("RONDO_MEMORY"));
    uint64_t bytes;

    if (!text)
        return true;
    if (!memory_size_read(text, &bytes))
        return error_set(err, ERROR_USAGE, "a size such as 500M or 8G", "%s is no amount of memory: %s",
                         option_flag(in, "memory") ? "--memory" : "RONDO_MEMORY", text);
    return setenv("RONDO_MEMORY", text, 1) == 0 || error_set(err, ERROR_MEMORY, NULL, "no memory for the environment");
}

static int read_common(struct invocation *in)
{
    struct error err = { 0 };
    int64_t threads = sysconf(_SC_NPROCESSORS_ONLN);
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

    if (option_flag(in, "home"))
        snprintf(in->home, sizeof in->home, "%s", option_text(in, "home", NULL));
    else
        default_home(in);
    in->json = option_flag(in, "json");
    in->quiet = option_flag(in, "quiet");
    in->color =
        isatty(STDOUT_FILENO) && !(none && none[0]) && !(term && strcmp(term, "dumb") == 0) && !option_flag(in, "no-color");
    if (!home_sound(in->home, &err) || !option_integer(in, "threads", 1, 1024, &threads, &err))
        return command_fail(in, &err);
    in->threads = (unsigned)threads;
    if (!memory_chosen(in, &err) || !kernel_choose(&err))
        return command_fail(in, &err);
    return -1;
}

/* A group such as `script` by itself, or a misspelt word: the nearest command by its two words, or by the first. */
static int unknown_command(int argc, char **argv)
{
    const char *names[128];
    char typed[128], group[400] = "";
    size_t count = 0, size = strlen(argv[1]);

    for (size_t i = 0; commands[i]; i++) {
        const char *name = commands[i]->name;

        names[count++] = name;
        if (strncmp(name, argv[1], size) == 0 && name[size] == ' ')
            snprintf(group + strlen(group), sizeof group - strlen(group), "%s%s", group[0] ? ", " : "", name + size + 1);
    }
    snprintf(typed, sizeof typed, "%.60s%s%.60s", argv[1], argc > 2 ? " " : "", argc > 2 ? argv[2] : "");

    const char *near = nearest_name(typed, names, count);

    if (!near)
        near = nearest_name(argv[1], names, count);
    if (group[0] && (argc < 3 || !near || !strchr(near, ' '))) {
        fprintf(stderr, "rondo: %s takes one of: %s\nTry: rondo --help\n", argv[1], group);
        return EXIT_USAGE;
    }
    return usage(NULL, "unknown command %s", near && strchr(near, ' ') ? typed : argv[1], near);
}

/* The commands that begin with this word and have more; false when there are none. */
static bool group_help(const char *word)
{
    size_t size = strlen(word);
    bool any = false;

    for (size_t i = 0; commands[i]; i++)
        if (strncmp(commands[i]->name, word, size) == 0 && commands[i]->name[size] == ' ') {
            printf("  rondo %-18s %s\n", commands[i]->name, commands[i]->summary);
            any = true;
        }
    return any;
}

static bool asks_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* `rondo --generate KIND`, `rondo help COMMAND`, `rondo GROUP --help`, or none of them: -1. */
static int about_itself(int argc, char **argv)
{
    static const char *const kinds[] = { "man", "complete-bash" };
    const struct command *c;
    int words = 0;

    if (strcmp(argv[1], "--generate") == 0)
        return argc == 3 && manual_print(stdout, argv[2])
                   ? EXIT_OK
                   : usage(NULL, "--generate takes man or complete-bash, not %s", argc > 2 ? argv[2] : "nothing",
                           argc > 2 ? nearest_name(argv[2], kinds, 2) : NULL);
    if (argc > 2 && strcmp(argv[1], "help") == 0 && (c = find_command(argc - 2, argv + 2, &words))) {
        command_help(stdout, c);
        return EXIT_OK;
    }
    if (argc == 3 && ((asks_help(argv[2]) && group_help(argv[1])) || (strcmp(argv[1], "help") == 0 && group_help(argv[2]))))
        return EXIT_OK;
    return -1;
}

int command_main(int argc, char **argv)
{
    struct invocation in = { 0 };
    int words = 0, told = argc < 2 ? -1 : about_itself(argc, argv);

    if (told >= 0)
        return told;
    if (!words_sound(argc, argv))
        return EXIT_USAGE;
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        general_help(argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_OK;
    }
    in.command = find_command(argc - 1, argv + 1, &words);
    if (!in.command)
        return unknown_command(argc, argv);

    int status = read_words(&in, argc - 1 - words, argv + 1 + words);

    if (status < 0)
        status = read_common(&in);
    return status < 0 ? in.command->run(&in) : status;
}

const char *option_text(const struct invocation *in, const char *name, const char *otherwise)
{
    for (size_t i = in->count; i-- > 0;)
        if (strcmp(in->given[i].option->name, name) == 0)
            return in->given[i].value;
    return otherwise;
}

bool option_flag(const struct invocation *in, const char *name)
{
    return option_text(in, name, NULL) != NULL;
}

bool option_integer(const struct invocation *in, const char *name, int64_t least, int64_t most, int64_t *value, struct error *err)
{
    const char *text = option_text(in, name, NULL);
    char *end;

    if (!text)
        return true;
    long long number = strtoll(text, &end, 10);

    if (end == text || *end || number < least || number > most)
        return error_set(err, ERROR_USAGE, NULL, "--%s %s: a whole number from %lld to %lld is needed", name, text,
                         (long long)least, (long long)most);
    *value = number;
    return true;
}

bool option_may_listen(const char *address, const char *endpoint, bool tls, bool plain, struct error *err)
{
    if (!address || strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 || tls || plain ||
        (endpoint && strncmp(endpoint, "https://", 8) == 0))
        return true;
    return error_set(err, ERROR_USAGE, "add --tls; or --plain, on a network that you trust",
                     "--listen %.80s is plain HTTP to other machines", address);
}

void command_clear_progress(const struct invocation *in)
{
    if (!in->quiet && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

bool option_node_name(const struct invocation *in, const char *otherwise, const char **name, struct error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    *name = option_text(in, "name", otherwise);
    if ((*name)[0] && (*name)[0] != '.' && strlen(*name) < 60 && (*name)[strspn(*name, letters)] == '\0')
        return true;
    return error_set(err, ERROR_USAGE, NULL, "--name %.80s: letters, digits, - _ and . are allowed, no path", *name);
}

int command_fail(const struct invocation *in, const struct error *err)
{
    char text[1024];

    fprintf(stderr, "rondo %s: %s\n", in->command->name, error_text(err, text, sizeof text));
    if (in->json)
        command_print_json(json_pack("{s:{s:s, s:s, s:s, s:s}}", "error", "code", error_name(err->code), "place", err->place,
                                     "message", err->message, "hint", err->hint));
    return error_status(err->code);
}

void command_print_json(json_t *value)
{
    json_t *whole = json_pack("{s:i}", "version", 1);

    json_object_update(whole, value);
    json_dumpf(whole, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    fputc('\n', stdout);
    fflush(stdout);
    json_decref(whole);
    json_decref(value);
}
