#include "runtime/simulation/simulation_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/value.h"

/* ---- links ---------------------------------------------------------------------------------------------------------- */

/* A message that would let its reader decide. */
static bool decides(const json_t *message)
{
    size_t i;
    json_t *envelope;
    if (json_array_size(json_object_get(message, "finals")))
        return true;
    json_array_foreach(json_object_get(message, "documents"), i, envelope)
    {
        if (value_is(json_object_get(envelope, "payload"), "phase", "commit"))
            return true;
    }
    return false;
}

/* Whether the round's few alone may see this: what was decided, and votes of its early views, of both phases in some rounds. */
static bool is_for_few(const struct sim *s, const json_t *message, int to)
{
    static const char *const parts[] = { "documents", "certificates" };
    const json_t *final = json_array_get(json_object_get(message, "finals"), 0);
    int64_t round = final ? value_integer(json_object_get(final, "record"), "round") : -1;
    size_t i;
    json_t *one;
    for (int p = 0; p < 2 && !final; p++) {
        json_array_foreach(json_object_get(message, parts[p]), i, one)
        {
            const json_t *said = p ? one : json_object_get(one, "payload");
            uint64_t drawn = sim_drawn(s, (uint64_t)value_integer(said, "round"));
            bool phase = value_is(said, "phase", "commit") || (value_is(said, "phase", "prepare") && drawn >> 8 & 1);
            if (phase && value_integer(said, "view") <= (int64_t)(drawn >> 16 & 3))
                round = value_integer(said, "round");
        }
    }
    if (round < 0)
        return false;
    uint64_t drawn = sim_drawn(s, (uint64_t)round);
    int first = (int)((drawn >> 32) % (uint64_t)s->set->syncers);
    bool second = drawn >> 8 & 1 && drawn >> 9 & 1 && to == (first + 1) % s->set->syncers;
    return to != first && !second;
}

static bool is_cut(const struct sim *s, int from, int to)
{
    bool a = s->sides >> (from & 63) & 1, b = s->sides >> (to & 63) & 1;
    return s->now < s->partition_until && a != b && (b || s->both_ways);
}

static void weigh(struct sim *s, struct node *n, json_t *message)
{
    if (s->weighed != message) {
        json_decref(s->weighed);
        s->weighed = json_incref(message);
        s->weight = json_dumpb(message, NULL, 0, JSON_COMPACT);
    }
    n->bytes += s->weight;
    s->result->bytes += s->weight;
}

void network_deliver(struct sim *s, int from, int to, json_t *message)
{
    struct node *n = &s->nodes[from];
    n->messages++;
    s->result->messages++;
    if (s->set->weigh)
        weigh(s, n, message);
    if (is_cut(s, from, to) || sim_fault(s, FAULT_LOSS, to) ||
        (sim_may(s, FAULT_HIDE) && decides(message) && sim_fault(s, FAULT_HIDE, to)) ||
        (sim_may(s, FAULT_FAVOUR) && is_for_few(s, message, to) && sim_fault(s, FAULT_FAVOUR, to)))
        return;
    int times = 1 + sim_fault(s, FAULT_REPEAT, to);
    for (int i = 0; i < times; i++) {
        int64_t delay = 2 + sim_below(s, 40);
        if (sim_fault(s, FAULT_REORDER, to))
            delay += 40 + sim_below(s, 200);
        if (sim_fault(s, FAULT_DELAY, to))
            delay += sim_below(s, 4000);
        sim_push(s, (struct queued){ .at = s->now + delay,
                                     .what = WHAT_EVENT,
                                     .node = to,
                                     .life = -1,
                                     .kind = EVENT_MESSAGE,
                                     .body = json_incref(message),
                                     .heard = s->adding });
    }
}

/* ---- stores --------------------------------------------------------------------------------------------------------- */

static bool is_kept(const json_t *envelope)
{
    return !value_is(envelope, "type", "vote") && !value_is(envelope, "type", "proposal");
}

/* A node takes contributions only from those whose enrolment it has, to the round that is open there and the next: whoever is told no says
 * it again. */
static bool is_admitted(struct node *n, const json_t *envelope)
{
    const json_t *said = json_object_get(envelope, "payload");
    const char *did = value_text(said, "signer");
    int64_t ahead = value_integer(said, "round") - sim_round(n);
    if (value_is(envelope, "type", "enrolment") && !json_object_get(n->enrolled, did))
        json_object_set_new(n->enrolled, did, json_true());
    if (!value_is(envelope, "type", "contribution") && !value_is(envelope, "type", "commitment"))
        return true;
    return ahead >= 0 && ahead <= 1 &&
           (json_object_get(n->enrolled, did) ||
            (n->member && value_find(json_object_get(member_last(n->member), "members"), "did", did)));
}

void network_store(struct node *n, const json_t *message)
{
    size_t i;
    json_t *envelope;
    if (!n->syncer)
        return;
    json_array_foreach(json_object_get(message, "documents"), i, envelope)
    {
        const char *cid = value_text(envelope, "cid");
        if (!is_kept(envelope) || !is_admitted(n, envelope))
            continue;
        if (!json_object_get(n->documents, cid))
            json_object_set(n->documents, cid, envelope);
        if (n->heard && value_is(envelope, "type", "contribution"))
            json_object_set(n->heard, cid, envelope);
    }
}

/* ---- sending -------------------------------------------------------------------------------------------------------- */

/* The trainer learns that this peer holds its contribution. */
static void acknowledge(struct sim *s, int from, int to, const json_t *told)
{
    const json_t *first = json_array_get(json_object_get(told, "documents"), 0);
    bool kept = value_is(first, "type", "contribution") || value_is(first, "type", "commitment");
    if (s->nodes[from].syncer || !kept || !s->nodes[to].alive)
        return;
    if (json_object_get(s->nodes[to].documents, value_text(first, "cid")))
        sim_later(s, from, 60, EVENT_ACKNOWLEDGED, json_pack("{ssss}", "cid", value_text(first, "cid"), "did", s->nodes[to].did));
}

void network_send(struct sim *s, int from, const json_t *body)
{
    json_t *message = json_object_get(body, "message"), *each;
    struct node *n = &s->nodes[from];
    size_t i;
    network_store(n, message);
    json_array_foreach(json_object_get(message, "documents"), i, each)
    {
        check_statement(s, n, each);
        liar_overhears(s, each);
    }
    json_array_foreach(json_object_get(body, "to"), i, each)
    {
        int to = sim_find(s, json_string_value(each));
        if (to < 0)
            continue;
        json_t *told = n->lie == FAULT_KINDS ? json_incref(message) : liar_message(s, n, to, message);
        if (told) {
            network_deliver(s, from, to, told);
            acknowledge(s, from, to, told);
        }
        json_decref(told);
    }
}

/* ---- fetching ------------------------------------------------------------------------------------------------------- */

static void answer(struct sim *s, int from, int to, json_t *documents, json_t *finals)
{
    struct node *n = &s->nodes[from];
    json_t *message = json_pack("{sOsO}", "documents", documents, "finals", finals);
    if (n->lie == LIE_RUBBISH) {
        json_t *other = liar_answer(s, message);
        json_decref(message);
        message = other;
    }
    if (n->lie == LIE_SLOW) {
        sim_lie(s, LIE_SLOW);
        sim_push(s, (struct queued){ .at = s->now + 3000 + sim_below(s, 6000),
                                     .what = WHAT_EVENT,
                                     .node = to,
                                     .life = -1,
                                     .kind = EVENT_MESSAGE,
                                     .body = json_incref(message) });
    } else if (n->lie != LIE_SILENT) {
        network_deliver(s, from, to, message);
    }
    json_decref(message);
}

/* Moves what the node holds from `left` to the list that is given back. */
static json_t *take_held(const struct node *n, json_t *left)
{
    json_t *found = json_array();
    for (size_t i = json_array_size(left); i-- > 0;) {
        const char *cid = json_string_value(json_array_get(left, i));
        json_t *held = json_object_get(n->documents, cid);
        if (!held && n->member)
            held = (json_t *)member_document(n->member, cid);
        if (held) {
            json_array_append(found, held);
            json_array_remove(left, i);
        }
    }
    return found;
}

/* The own store first; then one peer after another, from any, until all is found. */
static void fetch_documents(struct sim *s, int who, const json_t *names)
{
    json_t *left = json_deep_copy(names), *none = json_array(), *found = take_held(&s->nodes[who], left);
    int first = (int)sim_below(s, s->set->syncers);
    if (json_array_size(found))
        sim_later(s, who, 1, EVENT_MESSAGE, json_pack("{sO}", "documents", found));
    json_decref(found);
    for (int k = 0; k < s->set->syncers && json_array_size(left); k++) {
        int from = (first + k) % s->set->syncers;
        if (from == who || !s->nodes[from].alive || is_cut(s, who, from))
            continue;
        found = take_held(&s->nodes[from], left);
        if (json_array_size(found))
            answer(s, from, who, found, none);
        json_decref(found);
    }
    json_decref(left);
    json_decref(none);
}

static void fetch_finals(struct sim *s, int who, int64_t round)
{
    int first = (int)sim_below(s, s->set->syncers);
    for (int k = 0; k < s->set->syncers; k++) {
        int from = (first + k) % s->set->syncers;
        const struct node *n = &s->nodes[from];
        const json_t *all = n->member ? member_finals(n->member) : NULL;
        if (from == who || !n->alive || json_array_size(all) <= (size_t)round || is_cut(s, who, from))
            continue;
        json_t *finals = json_array(), *none = json_array();
        for (size_t r = (size_t)round; r < json_array_size(all) && r < (size_t)round + 8; r++)
            json_array_append(finals, json_array_get(all, r));
        answer(s, from, who, none, finals);
        json_decref(finals);
        json_decref(none);
        return;
    }
}

/* What one member has heard of those that closed the round. */
static void fetch_closed(struct sim *s, int who, int64_t round)
{
    int from = (int)sim_below(s, s->set->syncers);
    const struct node *n = &s->nodes[from];
    if (!n->alive || !n->member || member_round(n->member) != round || is_cut(s, who, from))
        return;
    json_t *closed = member_closed(n->member), *none = json_array();
    if (json_array_size(closed))
        answer(s, from, who, closed, none);
    json_decref(closed);
    json_decref(none);
}

void network_fetch(struct sim *s, int from, const json_t *body)
{
    json_t *names = json_object_get(body, "documents");
    s->nodes[from].messages++;
    s->result->messages++;
    if (json_object_get(body, "closed"))
        fetch_closed(s, from, value_integer(body, "closed"));
    else if (names)
        fetch_documents(s, from, names);
    else
        fetch_finals(s, from, value_integer(body, "round"));
}
