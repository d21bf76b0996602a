/* child.c - the script child as a program of its own, for the engine that the build links it with. */
#include "runtime/script/host.h"

int main(void)
{
    return script_child_main();
}
