#include "runtime/simulation/simulation_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/buffer.h"

static const char *const fault_names[FAULT_KINDS] = {
    [FAULT_FAVOUR] = "favour",   [FAULT_POWER] = "power",   [FAULT_FLIP] = "flip",
    [FAULT_LOSS] = "loss",       [FAULT_DELAY] = "delay",   [FAULT_REORDER] = "reorder",
    [FAULT_REPEAT] = "repeat",   [FAULT_HIDE] = "hide",     [FAULT_PARTITION] = "partition",
    [FAULT_CRASH] = "crash",     [FAULT_TORN] = "torn",     [FAULT_FSYNC] = "fsync",
    [FAULT_FULL] = "full",       [FAULT_ROT] = "rot",       [FAULT_SKEW] = "skew",
    [FAULT_JUMP] = "jump",       [FAULT_OUTAGE] = "outage", [FAULT_REORG] = "reorg",
    [FAULT_LATE] = "late",       [FAULT_ABSENT] = "absent", [LIE_EQUIVOCATE] = "equivocate",
    [LIE_SILENT] = "silent",     [LIE_EARLY] = "early",     [LIE_LATE] = "late-votes",
    [LIE_ITEMS] = "items",       [LIE_PROPOSE] = "propose", [LIE_ROOTS] = "roots",
    [LIE_CENSOR] = "censor",     [LIE_FORGE] = "forge",     [LIE_REPLAY] = "replay",
    [LIE_RUBBISH] = "rubbish",   [LIE_SLOW] = "slow",       [LIE_HEADS] = "heads",
    [LIE_ACCUSE] = "accuse",     [LIE_BODY] = "body",       [LIE_MUTE] = "mute",
    [LIE_COPY] = "copy",         [LIE_TWICE] = "twice",     [LIE_BROKEN] = "broken",
    [LIE_WITHHOLD] = "withhold", [LIE_MANY] = "many",
};

const char *fault_name(enum fault fault)
{
    return fault_names[fault];
}

enum fault fault_named(const char *name, size_t size)
{
    enum fault f = 0;
    while (f < FAULT_KINDS && (strlen(fault_names[f]) != size || strncmp(fault_names[f], name, size)))
        f++;
    return f;
}

const char *invariant_name(enum invariant invariant)
{
    static const char *const names[INVARIANTS] = { "holds",     "fork",     "statement", "money", "censored",
                                                   "convicted", "assigned", "state",     "ends",  "restart" };
    return names[invariant];
}

/* From the seed's block on: the block, training, checks, then 2n + 1 views from the highest anyone is in, and what a machine needs to
 * come back and catch up. */
int64_t simulation_bound(const struct simulation *set, int64_t view)
{
    int64_t ms = (SEED_LEAD + FINALITY) * BLOCK_MS + ROUND_MS + 3 * VIEW_MS + 30000;
    for (int64_t v = view; v <= view + 2 * set->syncers; v++)
        ms += (int64_t)VIEW_MS << (v < 6 ? v : 6);
    return ms * 5 / 4; /* clocks that run slow by 20 % */
}

struct simulation simulation_calm(uint64_t seed)
{
    return (struct simulation){ .seed = seed,
                                .trainers = 4,
                                .syncers = 4,
                                .threshold = 3,
                                .rounds = 4,
                                .quorum = 2,
                                .spot_check = "1",
                                .keep_end = UINT64_MAX };
}

static uint64_t some_of(struct sim *dice, uint64_t mask, int one_in)
{
    uint64_t some = 0;
    for (int f = 0; f < FAULT_KINDS; f++)
        if (mask >> f & 1 && !sim_below(dice, one_in))
            some |= UINT64_C(1) << f;
    return some;
}

/* What a seed is about. */
enum scenario { MIXED, VIEWS, RESTARTS, CHEATS };

#define ONE(fault) (UINT64_C(1) << (fault))

/* A few see the votes, power fails, a liar proposes what its lock forbids. */
static void views_change(struct sim *dice, struct simulation *set)
{
    uint64_t chance = (ONE(LIE_FIRST) - 1) & ~ONE(FAULT_FAVOUR), lies = ~(ONE(LIE_FIRST) - 1);
    set->faults =
        (set->faults & lies) | ONE(FAULT_FAVOUR) | some_of(dice, chance, 8) | (sim_below(dice, 2) ? ONE(FAULT_POWER) : 0);
    int who = (int)sim_below(dice, 4);
    if (who < 3)
        set->faults = (set->faults & ~lies) | (who < 2 ? ONE(LIE_PROPOSE) : ONE(LIE_SILENT));
    set->rate[FAULT_FAVOUR] = 1000;
    set->lying_syncers = sim_below(dice, 4) ? (set->syncers - 1) / 3 : 0;
    set->lying_trainers = 0;
    set->trainers = 3;
    set->rounds = 2 + (int)sim_below(dice, 2);
    set->faults_until = 5000 + sim_below(dice, 15000);
}

/* Machines stop at every point and come back with what they had written; leaders show different things. */
static void machines_restart(struct sim *dice, struct simulation *set)
{
    uint64_t lies = ~(ONE(LIE_FIRST) - 1);
    set->faults |= ONE(FAULT_CRASH) | ONE(FAULT_TORN) | ONE(FAULT_FSYNC) | ONE(FAULT_POWER);
    set->faults &= (sim_below(dice, 2) ? ~UINT64_C(0) : ~lies | ONE(LIE_PROPOSE));
    set->rate[FAULT_CRASH] = 1 + (int)sim_below(dice, 30);
    set->rate[FAULT_TORN] = 1 + (int)sim_below(dice, 200);
    set->rate[FAULT_FSYNC] = 1 + (int)sim_below(dice, 200);
    set->faults_until = 5000 + sim_below(dice, 15000);
    set->trainers = 3;
    set->lying_trainers = 0;
    set->rounds = 2 + (int)sim_below(dice, 2);
}

/* As many liars as may be, of all kinds, and hardly a fault beside. */
static void many_cheat(struct sim *dice, struct simulation *set)
{
    set->lying_syncers = (set->syncers - 1) / 3;
    set->lying_trainers = set->trainers - set->quorum;
    set->faults &= ~(ONE(LIE_FIRST) - 1) | some_of(dice, ONE(LIE_FIRST) - 1, 6);
}

/* Five of twelve lie: one in its work, the others in accusing all the honest, so that nobody finds that out. Whoever is wrong in such a run is not
 * paid (check_payout); so nothing else goes wrong in it. */
static void besiege(struct simulation *set)
{
    set->besieged = true;
    set->syncers = 4;
    set->threshold = 3;
    set->lying_syncers = 0;
    set->trainers = 12;
    set->lying_trainers = 5;
    set->quorum = 4;
    set->rounds = 5;
    set->faults = ONE(LIE_BODY) | ONE(LIE_ACCUSE);
    set->faults_until = 0;
    set->late_trainers = false;
    set->spot_check = "1";
}

static void draw_scenario(struct sim *dice, struct simulation *set)
{
    static const enum scenario drawn[] = { MIXED, MIXED, MIXED, VIEWS, VIEWS, RESTARTS, CHEATS, CHEATS };
    enum scenario scenario = drawn[sim_below(dice, sizeof drawn / sizeof *drawn)];
    if (scenario == VIEWS)
        views_change(dice, set);
    else if (scenario == RESTARTS)
        machines_restart(dice, set);
    else if (scenario == CHEATS)
        many_cheat(dice, set);
}

/* Pairs, some with a third; one pair is enough for a round. Half of these seeds are about their own attack: partners that copy, and members that
 * help those that come late, while clocks and messages let members close long after each other. */
static void replicate(struct simulation *set)
{
    set->replicas = 2;
    set->trainers += 2;
    set->quorum = 1;
    set->lying_trainers = set->lying_trainers < set->trainers - 3 ? set->lying_trainers : set->trainers - 3;
    if (set->seed % 64 < 41)
        return;
    set->faults = (set->faults & (ONE(LIE_FIRST) - 1)) | ONE(LIE_COPY) | ONE(LIE_ITEMS);
    set->lying_trainers = set->lying_trainers ? set->lying_trainers : 1;
    set->lying_syncers = (set->syncers - 1) / 3;
    if (set->seed % 64 < 57)
        return;
    set->faults |= ONE(FAULT_SKEW) | ONE(FAULT_DELAY);
    set->rate[FAULT_SKEW] = 1000;
    set->rate[FAULT_DELAY] = 300;
    set->faults_until = 30000;
}

struct simulation simulation_from_seed(uint64_t seed)
{
    struct sim dice = { .random = seed * 977 + 5 };
    static const int committees[][2] = { { 4, 3 }, { 4, 3 }, { 3, 2 }, { 1, 1 }, { 7, 5 } };
    static const int rates[LIE_FIRST] = {
        [FAULT_LOSS] = 400,    [FAULT_DELAY] = 500, [FAULT_REORDER] = 500, [FAULT_REPEAT] = 100,   [FAULT_HIDE] = 950,
        [FAULT_FAVOUR] = 1000, [FAULT_POWER] = 40,  [FAULT_FLIP] = 100,    [FAULT_PARTITION] = 60, [FAULT_CRASH] = 6,
        [FAULT_TORN] = 60,     [FAULT_FSYNC] = 60,  [FAULT_FULL] = 30,     [FAULT_ROT] = 60,       [FAULT_SKEW] = 700,
        [FAULT_JUMP] = 60,     [FAULT_OUTAGE] = 60, [FAULT_REORG] = 200,   [FAULT_LATE] = 200,     [FAULT_ABSENT] = 300
    };
    int size = (int)sim_below(&dice, 16);
    size = size < 12 ? 0 : size - 11;
    struct simulation set = {
        .seed = seed, .keeps = seed % 8 == 7, .syncers = committees[size][0], .threshold = committees[size][1]
    };
    set.keep_end = UINT64_MAX;
    set.trainers = 3 + (int)sim_below(&dice, 3);
    set.quorum = 2;
    set.rounds = 2 + (int)sim_below(&dice, 4);
    set.lying_syncers = (int)sim_below(&dice, (set.syncers - 1) / 3 + 1);
    set.lying_trainers = (int)sim_below(&dice, set.trainers - set.quorum + 1);
    set.faults = ((UINT64_C(1) << FAULT_KINDS) - 1) >> LIE_FIRST << LIE_FIRST;
    set.spot_check = sim_below(&dice, 2) ? "1" : "0.3";
    if (sim_below(&dice, 5)) {
        set.faults_until = 5000 + sim_below(&dice, 25000);
        set.faults |= some_of(&dice, (UINT64_C(1) << LIE_FIRST) - 1, 2);
        for (int f = 0; f < LIE_FIRST; f++)
            set.rate[f] = 1 + (int)sim_below(&dice, rates[f]);
    }
    set.late_trainers = sim_below(&dice, 6) == 0;
    set.rollback = sim_below(&dice, 6) == 0;
    draw_scenario(&dice, &set);
    if (seed % 8 == 3 && set.syncers == 4 && !set.lying_syncers) {
        set.seats = 4;
        set.syncers = 5;
        set.threshold = 4;
    }
    if (seed % 16 == 9)
        replicate(&set);
    if (seed % 32 == 13)
        besiege(&set);
    set.amends = sim_below(&dice, 8) == 0 && !set.besieged;
    set.deposits = sim_below(&dice, 8) == 0;
    set.capacities = seed % 16 == 4 || seed % 16 == 14;
    set.regions = seed % 16 == 10 || seed % 16 == 14;
    return set;
}

/* ---- shrinking ------------------------------------------------------------------------------------------------------------ */

struct shrinking {
    struct simulation best;
    enum invariant broken;
    int left, used;
};

static bool still_breaks(struct shrinking *k, const struct simulation *candidate)
{
    struct simulation quiet = *candidate;
    struct simulation_result result;
    if (k->left <= 0)
        return false;
    k->left--;
    k->used++;
    quiet.trace = 0;
    simulation_run(&quiet, &result);
    if (result.broken != k->broken)
        return false;
    k->best = *candidate;
    return true;
}

static bool fewer(struct shrinking *k, int *field, int least)
{
    bool any = false;
    size_t at = (size_t)((char *)field - (char *)&k->best);
    while (*field > least) {
        struct simulation candidate = k->best;
        --*(int *)((char *)&candidate + at);
        if (!still_breaks(k, &candidate))
            break;
        any = true;
    }
    return any;
}

static void fewer_kinds(struct shrinking *k)
{
    for (int f = 0; f < FAULT_KINDS; f++) {
        struct simulation candidate = k->best;
        candidate.faults &= ~(UINT64_C(1) << f);
        if (candidate.faults != k->best.faults)
            still_breaks(k, &candidate);
    }
}

/* Halves what is left of the numbered faults, from either end. */
static void fewer_faults(struct shrinking *k)
{
    struct simulation_result result;
    struct simulation quiet = k->best;
    quiet.trace = 0;
    simulation_run(&quiet, &result);
    if (k->best.keep_end > result.injected)
        k->best.keep_end = result.injected;
    for (uint64_t step = (k->best.keep_end - k->best.keep_first + 1) / 2; step > 0; step /= 2) {
        struct simulation candidate = k->best;
        candidate.keep_end -= step;
        if (candidate.keep_end >= candidate.keep_first && candidate.keep_end < k->best.keep_end)
            still_breaks(k, &candidate);
        candidate = k->best;
        candidate.keep_first += step;
        if (candidate.keep_first <= candidate.keep_end)
            still_breaks(k, &candidate);
    }
}

int simulation_shrink(struct simulation *set, int runs)
{
    struct simulation_result result;
    struct shrinking k = { .best = *set, .left = runs };
    struct simulation quiet = *set;
    quiet.trace = 0;
    simulation_run(&quiet, &result);
    k.broken = result.broken;
    if (!k.broken)
        return 0;
    fewer_kinds(&k);
    fewer(&k, &k.best.lying_trainers, 0);
    fewer(&k, &k.best.lying_syncers, 0);
    fewer(&k, &k.best.rounds, 1);
    fewer(&k, &k.best.trainers, k.best.quorum + k.best.lying_trainers);
    fewer_faults(&k);
    k.best.trace = set->trace;
    *set = k.best;
    return k.used;
}

char *simulation_command(const struct simulation *set)
{
    struct buffer text = { 0 };
    buffer_printf(
        &text,
        "rondo simulate --seed %llu --trainers %d --syncers %d --rounds %d --lying-trainers %d --lying-syncers %d --faults ",
        (unsigned long long)set->seed, set->trainers, set->syncers, set->rounds, set->lying_trainers, set->lying_syncers);
    bool any = false;
    for (int f = 0; f < FAULT_KINDS; f++) {
        if (set->faults >> f & 1) {
            buffer_printf(&text, "%s%s", any ? "," : "", fault_names[f]);
            any = true;
        }
    }
    if (!any)
        buffer_add_text(&text, "none");
    if (set->keep_first || set->keep_end != UINT64_MAX)
        buffer_printf(&text, " --keep %llu-%llu", (unsigned long long)set->keep_first, (unsigned long long)set->keep_end);
    char *command = strdup(buffer_text(&text));
    buffer_free(&text);
    return command;
}
