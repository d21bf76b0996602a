#include "runtime/cli/manual.h"

#include <string.h>

#include "runtime/cli/command.h"

/* --- roff ----------------------------------------------------------------------------------------------------------------- */

/* Text as it stands: dashes stay dashes, and no line begins a request. */
static void roff(FILE *out, const char *text)
{
    bool start = true;

    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else
            fputc(*text, out);
        start = *text == '\n';
    }
}

static void roff_options(FILE *out, const struct option *list)
{
    for (; list && list->name; list++) {
        fputs(".TP\n.B \\-\\-", out);
        roff(out, list->name);
        if (list->value) {
            fputs(" \\fI", out);
            roff(out, list->value);
            fputs("\\fR", out);
        }
        fputc('\n', out);
        roff(out, list->help);
        fputc('\n', out);
    }
}

static void roff_command(FILE *out, const struct command *c)
{
    fprintf(out, ".SS \"rondo %s%s%s\"\n", c->name, c->arguments[0] ? " " : "", c->arguments);
    roff(out, c->summary);
    fputs(".\n.PP\n.nf\n", out);
    roff(out, c->examples);
    fputs("\n.fi\n", out);
    if (c->text[0]) {
        fputs(".PP\n", out);
        roff(out, c->text);
        fputc('\n', out);
    }
    roff_options(out, c->options);
}

static void manual_roff(FILE *out)
{
    fputs(
        ".TH RONDO 1 \"\" \"rondo " RONDO_VERSION "\" \"User Commands\"\n.SH NAME\nrondo \\- train models in rounds between "
        "machines that do not trust each other\n.SH SYNOPSIS\n.B rondo\n.I command\n[\\fIargument\\fR ...] [\\fIoption\\fR ...]\n"
        ".SH COMMANDS\n",
        out);
    for (size_t i = 0; commands[i]; i++)
        roff_command(out, commands[i]);
    fputs(".SH COMMON OPTIONS\n", out);
    roff_options(out, common_options);
    fputs(
        ".SH EXIT STATUS\n0 ok, 1 a negative verdict, 2 usage, 3 refused input, 4 fault.\n.SH ENVIRONMENT\n.TP\n.B RONDO_HOME\n"
        "data folder when \\-\\-home is not given\n.TP\n.B RONDO_SCRIPTS\nfolder of scripts instead of the one that ships\n.TP\n"
        ".B NO_COLOR\nplain text\n",
        out);
}

/* --- bash ----------------------------------------------------------------------------------------------------------------- */

static void bash_options(FILE *out, const struct option *list)
{
    for (; list && list->name; list++)
        fprintf(out, " --%s", list->name);
}

/* The words typed so far, without options, name the command: its options follow, or the next words of longer commands, or files. */
static void manual_bash(FILE *out)
{
    fputs("_rondo() {\n    local current=${COMP_WORDS[COMP_CWORD]} typed= word next= options=\n"
          "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do [[ $word == -* ]] || typed+=\" $word\"; done\n"
          "    case \"$typed \" in\n",
          out);
    for (size_t i = 0; commands[i]; i++) {
        fprintf(out, "    \" %s \"*) options=\"", commands[i]->name);
        bash_options(out, commands[i]->options);
        bash_options(out, common_options);
        fputs("\" ;;\n", out);
    }
    fputs("    esac\n    case \"$typed\" in\n    \"\") next=\"", out);
    for (size_t i = 0; commands[i]; i++)
        fprintf(out, " %.*s", (int)strcspn(commands[i]->name, " "), commands[i]->name);
    fputs("\" ;;\n", out);
    for (size_t i = 0; commands[i]; i++) {
        const char *space = strchr(commands[i]->name, ' ');
        int size = space ? (int)(space - commands[i]->name) : 0;

        if (!space || (i > 0 && strncmp(commands[i - 1]->name, commands[i]->name, (size_t)size + 1) == 0))
            continue;
        fprintf(out, "    \" %.*s\") next=\"", size, commands[i]->name);
        for (size_t j = 0; commands[j]; j++)
            if (strncmp(commands[j]->name, commands[i]->name, (size_t)size + 1) == 0)
                fprintf(out, " %s", commands[j]->name + size + 1);
        fputs("\" ;;\n", out);
    }
    fputs("    esac\n    if [[ $current == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
          "    elif [[ -n $next ]]; then COMPREPLY=($(compgen -W \"$next\" -- \"$current\"))\n"
          "    else COMPREPLY=($(compgen -f -- \"$current\")); fi\n}\ncomplete -o filenames -F _rondo rondo\n",
          out);
}

bool manual_print(FILE *out, const char *kind)
{
    if (strcmp(kind, "man") == 0)
        manual_roff(out);
    else if (strcmp(kind, "complete-bash") == 0)
        manual_bash(out);
    else
        return false;
    return true;
}
