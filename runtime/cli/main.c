#include <stdio.h>
#include <string.h>

#include "runtime/cli/command.h"
#include "runtime/script/host.h"

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--script-child") == 0)
        return script_child_main();
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("rondo " RONDO_VERSION);
        return EXIT_OK;
    }
    return command_main(argc, argv);
}
