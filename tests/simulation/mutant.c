/* mutant.c - the simulator with a round machine one of whose rules was removed (mutations.sh). usage: mutant SEEDS
 *
 * Runs seeds until an invariant breaks: prints the seed and the invariant, exit status 0. With none broken: exit status 1. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/simulation/simulation.h"

int main(int argc, char **argv)
{
    unsigned long long seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    for (unsigned long long seed = 1; seed <= seeds; seed++) {
        struct simulation set = simulation_from_seed(seed);
        struct simulation_result result;
        fprintf(stderr, "\r%llu", seed);
        simulation_run(&set, &result);
        if (result.broken) {
            printf("%llu\t%s\t%s\n", seed, invariant_name(result.broken), result.failure);
            return 0;
        }
    }
    return 1;
}
