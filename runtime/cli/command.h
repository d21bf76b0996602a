/* command.h - the command line: one table of commands, one of options.
 *
 * Each command is one `struct command` in its own file; commands.c lists them. Help, usage errors and the manual page come from the
 * same rows. Results go to standard output, messages to standard error. Exit status: 0 ok, 1 a negative verdict, 2 usage,
 * 3 refused input, 4 fault (native/base/error_codes.h).
 */
#ifndef RONDO_CLI_COMMAND_H
#define RONDO_CLI_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"

enum { EXIT_OK = 0, EXIT_VERDICT = 1, EXIT_USAGE = 2, EXIT_REFUSED = 3, EXIT_FAULT = 4 };

struct option {
    const char *name;  /* "peer": given as --peer URL or --peer=URL */
    const char *value; /* "URL"; NULL for a flag                     */
    const char *help;
};

struct invocation;

struct command {
    const char *name;             /* "run check": words parted by one space        */
    const char *arguments;        /* "RUNFILE [NAME]"; "" for none; "..." at the end takes any number */
    const char *summary;          /* one line                                      */
    const char *examples;         /* lines, each a command                         */
    const char *text;             /* further paragraphs; may be ""                 */
    const struct option *options; /* ends with a NULL name; NULL for none          */
    int (*run)(struct invocation *in);
};

/* What was typed, checked against the command's row. */
struct invocation {
    const struct command *command;
    const char *argument[32];
    size_t arguments;
    struct {
        const struct option *option;
        const char *value;
    } given[64];
    size_t count;
    char home[4096]; /* --home, else $RONDO_HOME, else $XDG_DATA_HOME/rondo, else ~/.local/share/rondo */
    bool json, quiet, color;
    unsigned threads; /* --threads, else the machine's cores */
};

/* All commands in the order of the help; ends with a NULL name. */
extern const struct command *const commands[];

/* Options that every command takes: help json home quiet threads memory no-color. */
extern const struct option common_options[];

/* Runs the command line; the exit status. */
int command_main(int argc, char **argv);

/* The value of an option, or `otherwise`. Given twice, the last holds. */
const char *option_text(const struct invocation *in, const char *name, const char *otherwise);
bool option_flag(const struct invocation *in, const char *name);
/* A whole number in [least, most]; false with `err` (usage). */
bool option_integer(const struct invocation *in, const char *name, int64_t least, int64_t most, int64_t *value,
                    struct error *err);

/* Whether a server that listens on `address` (NULL: loopback) may do so: on another than loopback only with TLS, behind a proxy with TLS
 * (`endpoint` begins with https://), or when --plain asks for it by name. False with `err` (usage). */
bool option_may_listen(const char *address, const char *endpoint, bool tls, bool plain, struct error *err);

/* The name of a node's folder, an option: letters, digits, "-", "_" and "." inside; false with `err` (usage) for anything else. */
bool option_node_name(const struct invocation *in, const char *otherwise, const char **name, struct error *err);

/* Takes the line of progress off the terminal, where there is one. */
void command_clear_progress(const struct invocation *in);

/* Prints the error on standard error (with --json also as an object on standard output) and returns its exit status. */
int command_fail(const struct invocation *in, const struct error *err);

/* Prints `value` as one line of JSON with "version" 1 put first. Takes the reference. */
void command_print_json(json_t *value);

#endif
