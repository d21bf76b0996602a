#include "runtime/role/run_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "runtime/script/host.h"

const char *run_file_scripts(char path[4096])
{
    const char *given = getenv("RONDO_SCRIPTS");
    char program[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);

    if (given && given[0]) {
        snprintf(path, 4096, "%s", given);
        return path;
    }
    if (file_exists("scripts/objectives")) {
        snprintf(path, 4096, "scripts");
        return path;
    }
    program[size > 0 ? size : 0] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(program, '/');

        if (slash)
            *slash = '\0';
    }
    snprintf(path, 4096, "%.4000s/share/rondo/scripts", program);
    if (!file_exists(path))
        snprintf(path, 4096, "%.4000s/scripts", program); /* build/rondo of a checkout */
    return path;
}

const char *run_file_find(const char *path, char found[4096])
{
    char scripts[4096];

    if (path[0] == '/' || file_exists(path))
        return path;
    snprintf(found, 4096, "%.3000s/../%.1000s", run_file_scripts(scripts), path);
    return file_exists(found) ? found : path;
}

static bool check_names(const json_t *object, const char *const *known, size_t count, const char *hint, struct error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        bool is_known = false;

        for (size_t i = 0; i < count; i++)
            is_known |= strcmp(name, known[i]) == 0;
        if (!is_known)
            return error_set(err, ERROR_UNKNOWN, hint, "unknown field \"%s\"", name);
    }
    return true;
}

json_t *run_file_read(const char *path, const char *scripts, struct error *err)
{
    struct script_set set;
    static const char *const known[] = { "spec", "network" };
    json_t *run;
    char found[4096];

    path = run_file_find(path, found);
    if (!file_exists(path)) {
        error_set(err, ERROR_MISSING, "run files lie in scripts/runs", "there is no run file %s", path);
        return NULL;
    }
    if (!script_set_read(scripts, path, NULL, &set, err))
        return NULL;
    run = script_run_file(&set.bundle, NULL, err);
    script_set_free(&set);
    if (run && !check_names(run, known, 2, "a run file returns { spec = {...}, network = {...} }", err)) {
        json_decref(run);
        return NULL;
    }
    return run;
}

/* A list of one value a trainer, in their order; those beyond its end have none. */
static bool check_each(const json_t *network, const char *name, json_type type, const char *hint, struct error *err)
{
    json_t *list = json_object_get(network, name), *each;
    size_t i;

    if (list && !json_is_array(list))
        return error_set(err, ERROR_TYPE, hint, "a list is expected") || error_at(err, "network.%s", name);
    json_array_foreach(list, i, each)
    {
        if (json_typeof(each) != type)
            return error_set(err, ERROR_TYPE, hint, "another kind of value") || error_at(err, "network.%s[%zu]", name, i);
        if (type == JSON_INTEGER && json_integer_value(each) < 1)
            return error_set(err, ERROR_LIMIT, hint, "%lld is below 1", (long long)json_integer_value(each)) ||
                   error_at(err, "network.%s[%zu]", name, i);
    }
    return true;
}

/* May be absent: a sponsor's run file describes no network of its own. */
static bool check_number(const json_t *network, const char *name, int64_t most, struct error *err)
{
    const json_t *value = json_object_get(network, name);

    if (!value || (json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= most))
        return true;
    error_set(err, ERROR_RANGE, NULL, "a whole number from 1 to %lld is needed", (long long)most);
    return error_at(err, "network.%s", name);
}

bool run_file_check_network(const json_t *network, struct error *err)
{
    static const char *const known[] = { "trainers", "syncers", "eval", "capacity", "regions" };

    if (!check_names(network, known, sizeof known / sizeof *known, "it has trainers, syncers, eval, capacity and regions", err))
        return error_at(err, "network");
    return check_number(network, "trainers", RUN_FILE_TRAINERS, err) && check_number(network, "syncers", RUN_FILE_SYNCERS, err) &&
           check_each(network, "capacity", JSON_INTEGER, "capacity = { 4, 1 }: a whole number from 1 a trainer", err) &&
           check_each(network, "regions", JSON_STRING, "regions = { \"eu\", \"us\" }: a name a trainer", err);
}
