/* manual.h - what the program writes about itself from its table of commands: a man page and completion for bash. */
#ifndef RONDO_CLI_MANUAL_H
#define RONDO_CLI_MANUAL_H

#include <stdbool.h>
#include <stdio.h>

/* `kind`: "man" (roff, for man -l) or "complete-bash". False when it is neither. */
bool manual_print(FILE *out, const char *kind);

#endif
