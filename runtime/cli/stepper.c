#include "runtime/cli/stepper.h"

#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 1 << 16 };

static json_t *answer_of(struct stepper *s)
{
    char *line = malloc(LINE);
    json_t *value = line && fgets(line, LINE, s->answer) ? json_loads(line, 0, NULL) : NULL;

    free(line);
    return value;
}

bool stepper_start(struct stepper *s, const char *const *argv, struct error *err)
{
    int down[2], up[2];

    *s = (struct stepper){ .request = "step" };
    if (pipe(down) != 0 || pipe(up) != 0)
        return error_set(err, ERROR_IO, NULL, "no pipe to %s", argv[0]);
    s->pid = fork();
    if (s->pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        for (int i = 0; i < 2; i++) {
            close(down[i]);
            close(up[i]);
        }
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    signal(SIGPIPE, SIG_IGN);
    s->ask = fdopen(down[1], "w");
    s->answer = fdopen(up[0], "r");

    json_t *hello = s->pid > 0 ? answer_of(s) : NULL;
    const char *name = json_string_value(json_object_get(hello, "name"));

    snprintf(s->name, sizeof s->name, "%s", name ? name : "");
    json_decref(hello);
    if (name)
        return true;
    stepper_stop(s);
    return error_set(err, ERROR_MISSING, "sh bench/run.sh installs the peers", "%s does not start", argv[0]);
}

const char *stepper_python(void)
{
    const char *python = getenv("RONDO_BENCH_PYTHON");

    return python ? python : "build/bench-venv/bin/python";
}

void stepper_stop(struct stepper *s)
{
    if (s->ask)
        fclose(s->ask);
    if (s->answer)
        fclose(s->answer);
    if (s->pid > 0)
        waitpid(s->pid, NULL, 0);
    *s = (struct stepper){ 0 };
}

void stepper_step(void *stepper)
{
    struct stepper *s = stepper;
    json_t *answer = NULL;

    if (!s->failed && fprintf(s->ask, "%s\n", s->request) > 0 && fflush(s->ask) == 0)
        answer = answer_of(s);
    s->failed = s->failed || !answer;
    s->seconds = json_number_value(json_object_get(answer, "seconds"));
    s->cpu += json_number_value(json_object_get(answer, "cpu"));
    s->peak = json_number_value(json_object_get(answer, "peak"));
    json_decref(answer);
}

static double clock_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool stepper_serve(const char *name, bool (*step)(void *context, const char *line, struct error *err), void *context,
                   struct error *err)
{
    char line[sizeof((struct stepper *)0)->request + 2];
    struct rusage used;

    printf("{\"name\": \"%s\"}\n", name);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        double wall = clock_of(CLOCK_MONOTONIC), cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);

        if (!step(context, line, err))
            return false;
        getrusage(RUSAGE_SELF, &used);
        printf("{\"seconds\": %.9g, \"cpu\": %.9g, \"peak\": %.0f}\n", clock_of(CLOCK_MONOTONIC) - wall,
               clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu, (double)used.ru_maxrss * 1024);
        fflush(stdout);
    }
    return true;
}
