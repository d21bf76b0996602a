/* mutant.c - the program with `rondo simulate` alone, linked with a round machine one of whose rules was removed (mutations.sh). */
#include "runtime/cli/commands.h"

const struct command *const commands[] = { &command_simulate, NULL };
const struct option common_options[] = {
    { "help", NULL, "this page" },
    { "json", NULL, "one JSON object" },
    { "quiet", NULL, "no progress" },
    { NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
    return command_main(argc, argv);
}
