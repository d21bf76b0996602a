#include "tests/liar/liar.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct node *liar;
static bool dying;

bool liar_tells(const char *lie)
{
    const char *today = getenv("RONDO_LIE");

    return today && strcmp(today, lie) == 0;
}

struct node *liar_node(void)
{
    return liar;
}

struct driver *__real_driver_new(struct node *node, bool member, struct error *err);
struct driver *__wrap_driver_new(struct node *node, bool member, struct error *err);

struct driver *__wrap_driver_new(struct node *node, bool member, struct error *err)
{
    liar = node;
    return __real_driver_new(node, member, err);
}

static void die(void)
{
    kill(getpid(), SIGKILL);
}

/* "die/voting/2" and "die/voting/2/leads" name a moment. */
static bool is_moment(const char *moment, const json_t *state)
{
    char name[96];
    const char *phase = json_string_value(json_object_get(state, "phase"));
    size_t size;

    snprintf(name, sizeof name, "%s/%lld", phase ? phase : "", (long long)json_integer_value(json_object_get(state, "round")));
    size = strlen(name);
    if (strncmp(moment, name, size) != 0)
        return false;
    return moment[size] == '\0' || (strcmp(moment + size, "/leads") == 0 && json_is_true(json_object_get(state, "leads")) &&
                                    json_integer_value(json_object_get(state, "view")) == 0);
}

/* The step that tells the phase is carried out in whole, and the next one not begun; or not even that one. */
void liar_die_at(const struct actions *out)
{
    const char *today = getenv("RONDO_LIE");
    bool before = today && strncmp(today, "die_before/", 11) == 0;

    if (dying)
        die();
    if (!today || (!before && strncmp(today, "die/", 4) != 0))
        return;
    for (size_t i = 0; i < out->count; i++)
        if (out->list[i].kind == ACTION_STATE && is_moment(strchr(today, '/') + 1, out->list[i].body))
            dying = true;
    if (dying && before)
        die();
}
