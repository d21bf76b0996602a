#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "native/base/json.h"
#include "runtime/cli/benches.h"
#include "runtime/cli/network_attack.h"
#include "runtime/cli/network_bench.h"
#include "runtime/cli/transfer_bench.h"
#include "runtime/net/http_client.h"

/* Rounds of the run, by what is looked at: the undisturbed ones, those under attack. The rest is room for a slow machine. */
enum { WARM = 2, CALM = 22, ATTACKED = 20, ROUNDS = 80, PATIENCE_S = 120, CONNECTIONS = 1000, GARBAGE = 200, ASKED = 60 };

static void doze(double seconds)
{
    nanosleep(&(struct timespec){ (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) }, NULL);
}

/* Waits for a round's record; the memory is looked at once a second. */
static bool wait_round(struct network_bench *b, int64_t round, struct error *err)
{
    const double end = measure_now() + PATIENCE_S;

    for (int turn = 0; network_bench_final(b, round) < 0; turn++) {
        if (measure_now() > end)
            return error_set(err, ERROR_TIMEOUT, "is the machine busy otherwise?", "round %lld is not over after %d s",
                             (long long)round, PATIENCE_S);
        doze(0.1);
        if (turn % 10 == 0)
            network_bench_weigh(b);
        if (!network_bench_look(b, err))
            return false;
    }
    return true;
}

static void print(struct measure *m, const char *name, double value, const char *unit)
{
    struct measure_row row = { .unit = unit, .ours = value };

    snprintf(row.name, sizeof row.name, "%s", name);
    if (measure_wanted(m, name))
        measure_print(m, &row);
}

/* --- an honest question, before and under attack ---------------------------------------------------------------------------- */

static double latency(const char *endpoint)
{
    char *url = http_url_join(endpoint, "/v1/status");
    struct http_call call = { .method = "GET", .url = url, .connect_ms = 5000, .total_ms = 5000 };
    double values[ASKED];

    for (int i = 0; i < ASKED; i++) {
        struct http_answer answer;
        const double start = measure_now();
        const bool answered = http_fetch(&call, true, &answer, NULL);

        values[i] = answered ? measure_now() - start : 5;
        buffer_free(&answer.body);
        doze(0.01);
    }
    free(url);
    return measure_median(values, ASKED);
}

static bool under_attack(struct measure *m, struct network_bench *b, double calm, struct error *err)
{
    const char *endpoint = network_bench_endpoint(b, "syncer-1");
    const pid_t syncer = network_bench_process(b, "syncer-1");
    const double before = latency(endpoint);
    const uint64_t resident = network_bench_resident(syncer);
    const pid_t attacker = network_attack_start(endpoint, CONNECTIONS, GARBAGE);
    bool ok = attacker > 0 || error_set(err, ERROR_FAULT, NULL, "cannot start an attacker");
    double during = 0;
    int64_t first;

    if (!ok)
        return false;
    doze(2);
    ok = network_bench_look(b, err);
    first = network_bench_round(b) + 1;
    if (ok)
        during = latency(endpoint);
    ok = ok && wait_round(b, first + ATTACKED, err);

    const uint64_t grown = network_bench_resident(syncer);

    kill(attacker, SIGKILL);
    waitpid(attacker, NULL, 0);
    if (!ok)
        return false;
    print(m, "network.attack.round", network_bench_beyond(b, first, first + ATTACKED) / 1000, "s");
    print(m, "network.attack.rounds", network_bench_beyond(b, first, first + ATTACKED) / calm, "times");
    print(m, "network.attack.latency", during / before, "times");
    print(m, "network.attack.memory", grown > resident ? (double)(grown - resident) * 1e-6 : 0.001, "MB more");
    return true;
}

/* --- a syncer that is killed -------------------------------------------------------------------------------------------------- */

/* Milliseconds of the network's clock at which this node voted next in any round, from the `skip`th event on; -1: not yet. */
static int64_t voted(const struct network_bench *b, const char *node, size_t skip)
{
    json_t *event;
    size_t i;

    json_array_foreach(b->events, i, event)
    {
        const char *who = json_string_value(json_object_get(event, "node")),
                   *phase = json_string_value(json_object_get(event, "phase"));

        if (i >= skip && who && phase && strcmp(who, node) == 0 && strcmp(phase, "voting") == 0 &&
            json_integer_value(json_object_get(event, "view")) >= 0)
            return json_integer_value(json_object_get(event, "ms"));
    }
    return -1;
}

static bool restarted(struct measure *m, struct network_bench *b, struct error *err)
{
    const char *node = "syncer-2";
    const pid_t pid = network_bench_process(b, node);
    const double end = measure_now() + 30;
    json_t *last;
    int64_t at;
    size_t seen;

    if (!network_bench_look(b, err))
        return false;
    seen = json_array_size(b->events);
    last = json_array_get(b->events, seen - 1);

    const int64_t killed = json_integer_value(json_object_get(last, "ms"));

    if (pid <= 0 || kill(pid, SIGKILL) != 0)
        return error_set(err, ERROR_FAULT, NULL, "%s is not found", node);
    doze(0.05); /* what it told before is read first */
    if (!network_bench_look(b, err))
        return false;
    seen = json_array_size(b->events);
    while ((at = voted(b, node, seen)) < 0) {
        if (measure_now() > end)
            return error_set(err, ERROR_TIMEOUT, NULL, "%s does not vote again", node);
        doze(0.05);
        if (!network_bench_look(b, err))
            return false;
    }
    print(m, "network.restart", (double)(at - killed) / 1000, "s");
    return true;
}

static bool look_at(struct measure *m, struct network_bench *b, struct error *err)
{
    double calm;

    if (!wait_round(b, WARM + CALM, err))
        return false;
    calm = network_bench_beyond(b, WARM + 1, WARM + CALM);
    print(m, "network.round", calm / 1000, "s");
    print(m, "network.first", (double)network_bench_final(b, 1) / 1000, "s");
    print(m, "network.memory", (double)b->proportional * 1e-9, "GB");
    print(m, "network.memory.rss", (double)b->resident * 1e-9, "GB");
    print(m, "network.processes", b->processes, "processes");
    return restarted(m, b, err) && under_attack(m, b, calm, err);
}

bool bench_network(struct measure *m, struct error *err)
{
    struct network_bench b;
    bool ok;

    if (!measure_wanted(m, "network") && strncmp(m->only, "network", 7) != 0)
        return true;
    if (measure_wanted(m, "network.transfer") && !transfer_bench(m, err))
        return false;
    if (strcmp(m->only, "network.transfer") == 0)
        return true;
    ok = network_bench_start(&b, ROUNDS, err) && look_at(m, &b, err);
    network_bench_stop(&b);
    return ok;
}
