#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/role/local_internal.h"

void local_clear(struct local *l)
{
    if (l->bar)
        fputs("\r\033[K", stderr);
    l->bar = false;
}

void local_say(struct local *l, const char *format, ...)
{
    va_list args;

    if (l->options.quiet)
        return;
    local_clear(l);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static void say_final(struct local_process *p, const json_t *event)
{
    struct local *l = p->local;
    int64_t round = document_integer(event, "round");
    double loss = 0, speed = 0, left;
    char mean[32];
    int trainers = 0;

    if (round <= l->last_round)
        return;
    l->last_round = round;
    if (round == 0) {
        local_say(l, "open: everybody is enrolled");
        return;
    }
    if (round > l->rounds) {
        if (round == l->rounds + 1)
            local_say(l, "settling");
        return;
    }
    for (size_t i = 2; i < l->count; i++)
        if (strncmp(l->processes[i].name, "trainer", 7) == 0 && l->processes[i].steps) {
            speed += l->processes[i].speed;
            if (l->processes[i].trained == round) {
                loss += l->processes[i].mean_step_loss;
                trainers++;
            }
        }
    left = (double)(uv_now(&l->loop) - l->began) / 1000.0 / (double)round * (double)(l->rounds - round);
    snprintf(mean, sizeof mean, trainers ? "%.4f" : "-", trainers ? loss / trainers : 0.0);
    local_say(l, "round %2lld/%lld  %-5s accepted %lld refused %lld  mean step loss %s  %6.0f tokens/s  %d:%02d left",
              (long long)round, (long long)l->rounds, document_text(event, "kind"),
              (long long)document_integer(event, "accepted"), (long long)document_integer(event, "refused"), mean, speed,
              (int)left / 60, (int)left % 60);
}

void local_measure(struct local *l, const char *node, const json_t *event)
{
    json_t *line;

    if (!l->metrics)
        return;
    line = json_deep_copy(event);
    json_object_set_new(line, "node", json_string(node));
    json_object_set_new(line, "ms", json_integer((json_int_t)(uv_now(&l->loop) - l->started)));
    if (strcmp(document_text(event, "event"), "progress") == 0) { /* what is told often is told shortly: `node` says who */
        json_object_del(line, "did");
        json_object_del(line, "role");
    }
    json_dumpf(line, l->metrics, JSON_COMPACT);
    fputc('\n', l->metrics);
    fflush(l->metrics);
    json_decref(line);
}

void local_heard(struct local_process *p, const json_t *event)
{
    struct local *l = p->local;
    const char *kind = document_text(event, "event"), *endpoint = document_text(event, "endpoint");

    if (!kind)
        return;
    local_measure(l, p->name, event);
    if (strcmp(kind, "ready") == 0 && endpoint)
        snprintf(p->endpoint, sizeof p->endpoint, "%s", endpoint);
    else if (strcmp(kind, "state") == 0 && document_text(event, "phase"))
        snprintf(p->phase, sizeof p->phase, "%s", document_text(event, "phase"));
    else if (strcmp(kind, "done") == 0)
        p->done = true;
    else if (strcmp(kind, "job_failed") == 0)
        local_say(l, "%s: %s failed: %s", p->name, document_text(event, "job"), document_text(event, "error"));
    else if (strcmp(kind, "abstains") == 0)
        local_say(l, "%s: ALERT: a fault of this machine, %lld times now: its %s of round %lld says nothing: %s", p->name,
                  (long long)document_integer(event, "tries"), document_text(event, "job"),
                  (long long)document_integer(event, "round"), document_text(event, "error"));
    else if (strcmp(kind, "final") == 0 && strncmp(p->name, "syncer", 6) == 0)
        say_final(p, event);
    else if (strcmp(kind, "trained") == 0) {
        p->trained = document_integer(event, "round");
        p->mean_step_loss = json_number_value(json_object_get(event, "mean_step_loss"));
    } else if (strcmp(kind, "progress") == 0 && json_object_get(event, "steps")) {
        p->step = document_integer(event, "step");
        p->steps = document_integer(event, "steps");
        p->speed = json_number_value(json_object_get(event, "tokens_per_second"));
    }
}

/* One line on a terminal, rewritten in place. */
void local_show(struct local *l)
{
    if (l->options.quiet || !isatty(STDERR_FILENO) || l->count < 3)
        return;
    fprintf(stderr, "\r\033[Kround %lld/%lld ",
            (long long)(l->last_round < 0           ? 0
                        : l->last_round < l->rounds ? l->last_round + 1
                                                    : l->rounds),
            (long long)l->rounds);
    for (size_t i = 2; i < l->count; i++) {
        struct local_process *p = &l->processes[i];

        if (strncmp(p->name, "trainer", 7) != 0)
            continue;
        fprintf(stderr, " %s", p->phase[0] ? p->phase : "starting");
        if (strcmp(p->phase, "training") == 0 && p->steps)
            fprintf(stderr, " %lld/%lld", (long long)p->step, (long long)p->steps);
    }
    fflush(stderr);
    l->bar = true;
}
