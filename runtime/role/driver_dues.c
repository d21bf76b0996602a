/* What a trainer is owed: rounds that a record settled with pay for it, until the ledger shows their escrow released. */
#include <stdlib.h>
#include <string.h>

#include "runtime/role/driver_internal.h"
#include "runtime/round/value.h"

enum { ASK_EVERY_MS = 5000, WAIT_LEAST_MS = 60000 };

void driver_dues_add(struct driver *d, const json_t *record)
{
    json_t *each;
    size_t index;

    json_array_foreach(json_object_get(record, "settled"), index, each)
    {
        if (value_find(json_object_get(each, "paid"), "did", d->node->did))
            json_array_append_new(d->dues, json_pack("{s:I, s:I, s:I}", "round", (json_int_t)value_integer(each, "round"),
                                                     "record", (json_int_t)value_integer(record, "round"), "since",
                                                     (json_int_t)uv_now(&d->node->loop)));
    }
}

/* The panel had its time, in records and by the clock: records of a run that trains nothing come fast. */
static bool is_overdue(const struct driver *d, const json_t *due)
{
    int64_t most = d->node->options.most_unpaid, later = driver_round(d) - 1 - value_integer(due, "record");

    if (most < 0)
        most = run_spec_settles_after(&d->course->spec) + 2;
    return most > 0 && later > most && (int64_t)uv_now(&d->node->loop) - value_integer(due, "since") > WAIT_LEAST_MS;
}

static void due_told(void *context, const struct ledger_answer *answer)
{
    struct driver *d = context;
    const json_t *due = json_array_get(d->dues, 0);
    struct error err = { 0 };

    d->due_busy = false;
    if (answer->error || !answer->escrow)
        return;
    if (answer->escrow->status != LEDGER_FUNDED) {
        json_array_remove(d->dues, 0); /* released; or refunded, and then nothing is to be waited for */
        d->due_next = 0;
    } else if (is_overdue(d, due)) {
        error_set(&err, ERROR_REFUSED, "this panel does not pay; --most-unpaid 0 works on all the same",
                  "round %lld was settled in record %lld, and %lld records later its escrow is not released",
                  (long long)value_integer(due, "round"), (long long)value_integer(due, "record"),
                  (long long)(driver_round(d) - 1 - value_integer(due, "record")));
        driver_fail(d, &err);
    }
}

void driver_dues_tick(struct driver *d, uint64_t now)
{
    int64_t round = value_integer(json_array_get(d->dues, 0), "round");

    if (json_array_size(d->dues) == 0 || d->due_busy || now < d->due_next)
        return;
    d->due_busy = true;
    d->due_next = now + ASK_EVERY_MS;
    ledger_escrow(d->node->ledger, d->course->spec.account, release_round_ref(d->course->id, (uint64_t)round),
                  (struct ledger_then){ due_told, d });
}
