#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/role/collect.h"
#include "runtime/role/course_join.h"
#include "runtime/role/driver_internal.h"
#include "runtime/role/expected.h"
#include "runtime/role/fetch.h"
#include "runtime/role/metrics.h"
#include "runtime/role/subscribers.h"
#include "runtime/round/hardware.h"

enum { WAITING_MOST = 8 << 20 };

/* --- actions ---------------------------------------------------------------------------------------------------------- */

static void timer_due(uv_timer_t *timer)
{
    driver_feed(timer->data, EVENT_TIME, json_object());
}

static void set_timer(struct driver *d, const json_t *body)
{
    int64_t at = json_integer_value(json_object_get(body, "at")), now = (int64_t)uv_now(&d->node->loop);

    uv_timer_start(&d->timer, timer_due, at > now ? (uint64_t)(at - now) : 0, 0);
}

static void tell_final(struct driver *d, const json_t *body)
{
    const json_t *record = json_object_get(body, "record");
    int64_t round = json_integer_value(json_object_get(record, "round"));
    json_t *list = json_object_get(record, "contributions"), *each;
    char root[HASH_TEXT];
    int64_t accepted = 0, refused = 0;
    size_t index;

    json_array_foreach(list, index, each)
    {
        if (strcmp(document_text(each, "code"), "ok") == 0)
            accepted++;
        else
            refused++;
    }
    json_t *told = json_pack("{s:I, s:O, s:I, s:I, s:O?}", "round", round, "kind", json_object_get(record, "kind"), "accepted",
                             accepted, "refused", refused, "state", json_object_get(record, "state"));
    if (json_array_size(json_object_get(record, "undealt")))
        json_object_set(told, "undealt", json_object_get(record, "undealt"));

    if (!d->is_member)
        driver_dues_add(d, record);
    d->collect_due = true;
    metrics_record(d->node, record);
    subscribers_event(d->node, "final", told);
    node_tell(d->node, "final", told);
    if (!d->is_member &&
        hardware_held(json_object_get(record, "members"), hardware_root(driver_own_enrolment(d), root), d->node->did))
        node_tell(d->node, "enrolment_refused",
                  json_pack("{s:s, s:s}", "code", "root", "reason", "its hardware takes part under another DID"));
    expected_expire(d->node->expected, round);
    subscribers_final(d->node, round, driver_final(d, round));
}

static bool perform(struct driver *d, const struct action *action, struct error *err)
{
    const json_t *body = action->body;

    switch (action->kind) {
    case ACTION_PERSIST:
        return driver_persist(d, body, err);
    case ACTION_SEND:
        driver_send(d, body);
        break;
    case ACTION_TIMER:
        set_timer(d, body);
        break;
    case ACTION_AWAIT_BLOCK:
        d->await_height = json_integer_value(json_object_get(body, "height"));
        driver_await_block(d);
        break;
    case ACTION_DEPOSIT:
        driver_deposit(d, body);
        break;
    case ACTION_CHECK:
    case ACTION_REPLAY:
    case ACTION_JUDGE:
    case ACTION_MOVE:
    case ACTION_COMPUTE:
    case ACTION_TRAIN:
        driver_job_start(d, action->kind, body);
        break;
    case ACTION_CANCEL:
        driver_jobs_cancel(d, json_integer_value(json_object_get(body, "round")));
        break;
    case ACTION_FETCH:
        driver_fetch(d, body);
        break;
    case ACTION_FINAL:
        tell_final(d, body);
        break;
    case ACTION_RELEASE:
        driver_release(d, body);
        break;
    case ACTION_STATE:
        subscribers_event(d->node, "state", body);
        node_tell(d->node, "state", json_incref(action->body));
        if (d->is_member && document_text(body, "phase") && strcmp(document_text(body, "phase"), "collecting") == 0)
            driver_closing(d);
        if (document_text(body, "verdict")) { /* it was all that this node is here for */
            snprintf(d->node->verdict, sizeof d->node->verdict, "%s", document_text(body, "verdict"));
            node_stop(d->node, NULL);
        }
        break;
    case ACTION_HALT:
        return error_set(err, ERROR_CONFLICT, "keep this folder: it holds the evidence", "halted (%s): %s",
                         document_text(body, "code"), document_text(body, "message"));
    case ACTION_DONE:
        json_decref(d->over);
        d->over = json_incref(action->body);
        break;
    }
    return true;
}

static void drain(struct driver *d)
{
    struct actions actions = { 0 };

    d->draining = true;
    while (d->first && !d->node->stopping) {
        struct pending_event *p = d->first;
        struct event event = { .kind = p->kind, .now = (int64_t)uv_now(&d->node->loop), .body = p->body };
        struct error err = { 0 };

        d->first = p->next;
        if (!d->first)
            d->last = &d->first;
        if (d->is_member)
            member_step(d->member, &event, &actions);
        else
            trainer_step(d->trainer, &event, &actions);
        for (size_t i = 0; i < actions.count; i++)
            if (!perform(d, &actions.list[i], &err)) {
                driver_fail(d, &err);
                break;
            }
        actions_clear(&actions);
        json_decref(p->body);
        free(p);
    }
    actions_free(&actions);
    d->draining = false;
}

void driver_feed(struct driver *d, enum event_kind kind, json_t *body)
{
    struct pending_event *p = calloc(1, sizeof *p);

    *p = (struct pending_event){ .kind = kind, .body = body };
    *d->last = p;
    d->last = &p->next;
    if ((d->member || d->trainer) && !d->draining)
        drain(d);
}

void driver_fail(struct driver *d, const struct error *err)
{
    node_stop(d->node, err);
}

/* --- life ------------------------------------------------------------------------------------------------------------- */

/* The panel and, of an allow-list, every trainer have told where they are. */
static bool everybody_known(const struct driver *d)
{
    const struct run_spec *spec = &d->course->spec;

    return d->course->announced &&
           json_object_size(d->course->enrolments) >= spec->committee.panel_count + spec->trust.allowed_count;
}

/* Over for this node: every round is recomputed and every escrow that it can release is released. */
static void tell_done(struct driver *d)
{
    if (!d->over || (d->is_member && (d->verified < json_array_size(d->finals) || !driver_releases_done(d))))
        return;
    node_tell(d->node, "done", d->over);
    d->over = NULL;
    if (d->node->options.leave || d->leaving) {
        struct error err = { 0 };

        d->node->finished = true;
        node_stop(d->node, !d->leaving || driver_put_number(d, "leaving", 0, &err) ? NULL : &err);
    }
}

/* Once a decided round, at a moment when nothing writes blocks. A folder that stays above its quota is told: what is left is needed. */
static void collect(struct driver *d)
{
    struct collection c;
    struct error err = { 0 };
    char text[1024];
    uint64_t quota = d->node->options.quota;
    const json_t *last = json_object_get(json_array_get(d->finals, json_array_size(d->finals) - 1), "record");

    if (!quota || !d->collect_due || !last || d->jobs || d->fetch)
        return;
    d->collect_due = false;
    if (!collect_run(d->node, collect_below(last, d->is_member ? (int64_t)d->verified : -1), quota, false, &c, &err))
        node_tell(d->node, "collect_failed", json_pack("{s:s}", "error", error_text(&err, text, sizeof text)));
    else if (c.dropped_blocks || c.bytes > quota)
        node_tell(d->node, "collected",
                  json_pack("{s:I, s:I, s:I, s:b}", "bytes", (json_int_t)(c.bytes - c.dropped_bytes), "dropped_bytes",
                            (json_int_t)c.dropped_bytes, "round", (json_int_t)c.round, "over_quota",
                            c.bytes - c.dropped_bytes > quota));
}

static void ticked(uv_timer_t *timer)
{
    struct driver *d = timer->data;
    uint64_t now = uv_now(&d->node->loop);

    if (d->member || d->trainer)
        driver_ledger_tick(d);
    tell_done(d);
    collect(d);
    if (now - d->last_refresh >= (everybody_known(d) ? 10000 : 250)) {
        d->last_refresh = now;
        course_refresh(d->course);
    }
}

bool driver_take_up(struct driver *d, struct error *err)
{
    static const enum document_type types[] = { DOCUMENT_CONTRIBUTION, DOCUMENT_CHALLENGE, DOCUMENT_OPENING,
                                                DOCUMENT_PICK,         DOCUMENT_LEAVE,     DOCUMENT_EQUIVOCATION,
                                                DOCUMENT_AMENDMENT,    DOCUMENT_COMMITMENT };
    json_t *documents = json_array(), *body = json_pack("{s:o}", "documents", documents);
    bool ok = true;

    for (size_t t = 0; ok && t < sizeof types / sizeof *types; t++) {
        int64_t round = types[t] == DOCUMENT_CONTRIBUTION || types[t] == DOCUMENT_COMMITMENT ? driver_round(d) : -1;
        struct hash *ids = NULL;
        size_t count = 0;
        char cid[CID_TEXT];

        ok = journal_list_documents(d->node->journal, d->course->id, types[t], round, &ids, &count, err);
        for (size_t i = 0; ok && i < count; i++)
            json_array_append_new(documents, json_string(cid_text(ids[i], cid)));
        free(ids);
    }
    driver_fetch(d, body);
    json_decref(body);
    return ok;
}

bool driver_machine_new(struct driver *d, struct error *err)
{
    struct buffer text = { 0 };
    struct error none = { 0 };
    uint32_t round, view;
    json_t *durable = NULL, *entry, *final;
    const char *did;
    size_t index;
    bool found = journal_load_round(d->node->journal, d->course->id, &round, &view, &text, &none);

    if (found)
        durable = json_read((const char *)text.bytes, text.size, SIZE_MAX, err);
    buffer_free(&text);
    if ((found && !durable) || !driver_load_finals(d, err))
        return false;
    json_array_foreach(d->finals, index, final) if (!d->is_member) driver_dues_add(d, json_object_get(final, "record"));
    if (d->is_member) {
        struct member_start start = { .rules = &d->course->rules,
                                      .did = d->node->did,
                                      .signing = d->signing,
                                      .enrolment = d->enrolment,
                                      .durable = durable,
                                      .finals = d->finals,
                                      .fresh = !found };

        d->member = member_new(&start, err);
    } else {
        struct trainer_start start = { .rules = &d->course->rules,
                                       .did = d->node->did,
                                       .signing = d->signing,
                                       .enrolment = d->enrolment,
                                       .durable = durable,
                                       .finals = d->finals,
                                       .audit = d->node->options.audit };

        d->trainer = trainer_new(&start, err);
    }
    json_decref(durable);
    if (!d->member && !d->trainer)
        return false;
    if (strcmp(d->member ? member_phase(d->member) : trainer_phase(d->trainer), "done") == 0) /* decided before this start */
        d->over = json_pack("{s:I}", "round", (json_int_t)json_array_size(d->finals) - 1);
    json_object_foreach(d->course->enrolments, did, entry)
    {
        driver_feed(d, EVENT_MESSAGE, json_pack("{s:[O]}", "documents", json_object_get(entry, "envelope")));
    }
    if (d->member && !driver_take_up(d, err))
        return false;
    if (d->trainer && driver_get_number(d, "leaving")) {
        d->leaving = true;
        driver_feed(d, EVENT_LEAVE, json_object());
    }
    driver_feed(d, EVENT_TIME, json_object());
    return true;
}

struct driver *driver_new(struct node *node, bool member, struct error *err)
{
    struct driver *d = calloc(1, sizeof *d);

    *d = (struct driver){ .node = node,
                          .course = node->course,
                          .is_member = member,
                          .statements = json_array(),
                          .finals = json_array(),
                          .dues = json_array(),
                          .asked_rounds = json_object(),
                          .told = json_object(),
                          .await_height = -1 };
    d->last = &d->first;
    d->signing = driver_signing(d);
    uv_timer_init(&node->loop, &d->timer);
    uv_timer_init(&node->loop, &d->tick);
    d->timer.data = d->tick.data = d;
    d->timers = true;
    if (!driver_enrol(d, err)) {
        node->driver = d; /* node_close frees it */
        return NULL;
    }
    uv_timer_start(&d->tick, ticked, 0,
                   (uint64_t)(d->course->spec.payment.block_ms < 50 ? 50 : d->course->spec.payment.block_ms));
    driver_prepare(d);
    return d;
}

static void driver_closed(uv_handle_t *handle)
{
    struct driver *d = handle->data;

    free(d);
}

void driver_free(struct driver *d)
{
    if (!d)
        return;
    driver_jobs_free(d);
    driver_deliveries_free(d);
    driver_ledger_free(d);
    fetch_cancel(d->fetch);
    worker_free(d->main);
    worker_free(d->replay);
    member_free(d->member);
    trainer_free(d->trainer);
    for (struct pending_event *p = d->first, *next; p; p = next) {
        next = p->next;
        json_decref(p->body);
        free(p);
    }
    json_decref(d->statements);
    json_decref(d->finals);
    json_decref(d->dues);
    json_decref(d->enrolment);
    json_decref(d->asked_rounds);
    json_decref(d->told);
    json_decref(d->over);
    uv_close((uv_handle_t *)&d->timer, NULL);
    uv_close((uv_handle_t *)&d->tick, driver_closed);
}

bool driver_takes(struct driver *d, size_t size)
{
    if (d->member || d->trainer)
        return true;
    if (size > WAITING_MOST - d->waiting)
        return false;
    d->waiting += size;
    return true;
}

void driver_message(struct driver *d, const json_t *message)
{
    driver_feed(d, EVENT_MESSAGE, json_incref((json_t *)(uintptr_t)message));
}

bool driver_leave(struct driver *d)
{
    struct error err = { 0 };

    if (d->is_member)
        return false;
    if (d->leaving)
        return true;
    d->leaving = true;
    if (!driver_put_number(d, "leaving", 1, &err)) {
        driver_fail(d, &err);
        return true;
    }
    node_tell(d->node, "leaving", json_pack("{s:I}", "round", (json_int_t)driver_round(d)));
    if (d->trainer)
        driver_feed(d, EVENT_LEAVE, json_object());
    return true;
}

int64_t driver_round(const struct driver *d)
{
    return (int64_t)json_array_size(d->finals);
}

json_t *driver_commitments_closed(const struct driver *d, int64_t round)
{
    return d->member && member_round(d->member) == round ? member_closed(d->member) : json_array();
}

const json_t *driver_final(const struct driver *d, int64_t round)
{
    return round < 0 ? NULL : json_array_get(d->finals, (size_t)round);
}

bool driver_runs(const struct driver *d)
{
    return d->member || d->trainer;
}

bool driver_holds(const struct driver *d, const char *cid)
{
    return d->member && member_document(d->member, cid);
}

json_t *driver_status(const struct driver *d)
{
    if (d->member)
        return json_pack("{s:s, s:I, s:I}", "phase", member_phase(d->member), "round", member_round(d->member), "view",
                         member_view(d->member));
    if (d->trainer)
        return json_pack("{s:s, s:I}", "phase", trainer_phase(d->trainer), "round", trainer_round(d->trainer));
    return json_pack("{s:s}", "phase", "preparing");
}
