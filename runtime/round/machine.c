#include "runtime/round/machine.h"

#include <stdlib.h>

#include "runtime/round/value.h"

void actions_add(struct actions *actions, enum action_kind kind, json_t *body)
{
    if (actions->count == actions->capacity) {
        actions->capacity = actions->capacity ? actions->capacity * 2 : 16;
        actions->list = realloc(actions->list, actions->capacity * sizeof *actions->list);
        if (!actions->list)
            abort();
    }
    actions->list[actions->count++] = (struct action){ .kind = kind, .body = body };
}

void actions_clear(struct actions *actions)
{
    for (size_t i = 0; i < actions->count; i++)
        json_decref(actions->list[i].body);
    actions->count = 0;
}

void actions_free(struct actions *actions)
{
    actions_clear(actions);
    free(actions->list);
    *actions = (struct actions){ 0 };
}

const char *event_name(enum event_kind kind)
{
    static const char *const names[] = {
        [EVENT_TIME] = "time",
        [EVENT_MESSAGE] = "message",
        [EVENT_HEAD] = "head",
        [EVENT_BLOCK] = "block",
        [EVENT_FUNDED] = "funded",
        [EVENT_CHECKED] = "checked",
        [EVENT_REPLAYED] = "replayed",
        [EVENT_COMPUTED] = "computed",
        [EVENT_MOVED] = "moved",
        [EVENT_TRAINED] = "trained",
        [EVENT_ACKNOWLEDGED] = "acknowledged",
        [EVENT_RELEASED] = "released",
        [EVENT_LEAVE] = "leave",
    };
    return names[kind];
}

const char *action_name(enum action_kind kind)
{
    static const char *const names[] = {
        [ACTION_PERSIST] = "persist", [ACTION_SEND] = "send",
        [ACTION_TIMER] = "timer",     [ACTION_AWAIT_BLOCK] = "await_block",
        [ACTION_CHECK] = "check",     [ACTION_REPLAY] = "replay",
        [ACTION_JUDGE] = "judge",     [ACTION_MOVE] = "move",
        [ACTION_COMPUTE] = "compute", [ACTION_TRAIN] = "train",
        [ACTION_CANCEL] = "cancel",   [ACTION_FETCH] = "fetch",
        [ACTION_FINAL] = "final",     [ACTION_RELEASE] = "release",
        [ACTION_STATE] = "state",     [ACTION_HALT] = "halt",
        [ACTION_DEPOSIT] = "deposit", [ACTION_DONE] = "done",
    };
    return names[kind];
}

bool signing_name(const struct signing *signing, const json_t *record, size_t most, char cid[CID_TEXT])
{
    return signing->name ? signing->name(signing->context, record, cid) : value_cid_most(record, most, cid);
}
