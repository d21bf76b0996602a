#include "runtime/round/record.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/round/amendment.h"
#include "runtime/round/assignment.h"
#include "runtime/round/deposit.h"
#include "runtime/round/dispute.h"
#include "runtime/round/fold.h"
#include "runtime/round/grace.h"
#include "runtime/round/membership.h"
#include "runtime/round/payout.h"
#include "runtime/round/record_making.h"
#include "runtime/round/replica.h"
#include "runtime/round/value.h"

static bool seed_from_block(const struct rules *rules, int64_t round, const json_t *block, struct hash *seed, struct error *err)
{
    const char *text = value_text(block, "entropy");
    struct hash entropy;
    if (!hash_parse(text, &entropy) || !json_is_integer(json_object_get(block, "height")))
        return error_set(err, ERROR_TYPE, NULL,
                         "record: the seed block needs height and 32 bytes of entropy as hexadecimal text");
    *seed = seed_of(rules->run, (uint64_t)round, entropy.bytes, HASH_SIZE);
    return true;
}

static bool check_received(struct making *m, struct error *err)
{
    const json_t *all = m->in->received;
    size_t i;
    json_t *one;
    int64_t view = value_integer(json_array_get(all, 0), "view");
    json_t *seen = json_object();
    bool ok = json_array_size(all) >= (size_t)m->quorum.q;
    if (!ok)
        error_set(err, ERROR_REFUSED, NULL, "record: fewer received documents than the threshold");
    json_array_foreach((json_t *)all, i, one)
    {
        const char *did = value_text(one, "signer");
        if (!ok)
            break;
        if (json_object_get(seen, did) || !value_lists(m->committee, did) || value_integer(one, "view") != view ||
            value_integer(one, "round") != m->round || !value_is(one, "run", m->rules->run) ||
            !(m->in->sound || received_check(one, NULL)))
            ok = error_set(err, ERROR_REFUSED, NULL, "record: a received document of %s does not belong", did);
        json_object_set_new(seen, did, json_true());
    }
    json_decref(seen);
    return ok;
}

/* Items whose documents are not held are asked for all at once. */
static bool have_documents(struct making *m)
{
    json_t *missing = json_array();
    size_t i;
    json_t *item;
    json_array_foreach(m->tally.items, i, item)
    {
        if (!json_object_get(m->in->documents, value_text(item, "cid")))
            json_array_append(missing, json_object_get(item, "cid"));
    }
    if (!json_array_size(missing)) {
        json_decref(missing);
        return true;
    }
    m->needs = json_pack("{so}", "documents", missing);
    return false;
}

static const json_t *payload_of(const struct making *m, const json_t *item, const char **type)
{
    const json_t *document = json_object_get(m->in->documents, value_text(item, "cid"));
    if (type)
        *type = value_text(document, "type");
    return json_object_get(document, "payload");
}

static void list_received(struct making *m)
{
    json_t *list = m->in->names ? json_copy((json_t *)m->in->names) : json_array();
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)m->in->received, i, one)
    {
        char cid[CID_TEXT];
        if (!m->in->names && value_cid(one, cid))
            json_array_append_new(list, json_string(cid));
    }
    value_sort(list, NULL);
    json_object_set_new(m->record, "received", list);
}

static void convict(struct making *m, const char *did, int64_t round)
{
    json_t *entry = value_find(m->convicted, "did", did);
    if (entry && value_integer(entry, "round") <= round)
        return;
    if (entry)
        json_object_set_new(entry, "round", json_integer(round));
    else
        json_array_append_new(m->convicted,
                              json_pack("{sssIsI}", "did", did, "round", (json_int_t)round, "record", (json_int_t)m->round));
    /* Fold again only where something of it was used. */
    size_t i;
    json_array_foreach(m->entries, i, entry)
    {
        int64_t at = value_integer(entry, "round");
        const json_t *line = value_find(json_object_get(entry, "contributions"), "did", did);
        if (at >= round && at < m->round && line && !json_object_get(line, "code") && (!m->correct || at < m->correct))
            m->correct = at;
    }
}

/* The code of a contribution beside the one its checks gave. */
static const char *contribution_code(const struct making *m, const json_t *item, const json_t *payload, int64_t weight,
                                     const json_t *right)
{
    const char *did = value_text(payload, "signer");
    int64_t ok = value_integer(right, did);
    if (strcmp(value_text(item, "code"), "ok"))
        return value_text(item, "code");
    if (value_integer(payload, "round") != m->round || !weight)
        return "unassigned";
    if (ok > 1)
        return "equivocated";
    return fold_is_removed(m->convicted, did, m->round) ? "convicted" : "ok";
}

/* DID -> how many of its contributions were found right. New reference. */
static json_t *count_right(const struct making *m)
{
    json_t *counts = json_object(), *item;
    size_t i;
    json_array_foreach(m->tally.items, i, item)
    {
        const char *type, *did = value_text(payload_of(m, item, &type), "signer");
        if (!strcmp(type, "contribution") && value_is(item, "code", "ok"))
            json_object_set_new(counts, did, json_integer((json_int_t)value_integer(counts, did) + 1));
    }
    return counts;
}

static json_t *list_contributions(struct making *m)
{
    json_t *list = json_array(), *right = count_right(m), *item;
    size_t i;
    json_array_foreach(m->tally.items, i, item)
    {
        const char *type;
        const json_t *payload = payload_of(m, item, &type);
        if (strcmp(type, "contribution"))
            continue;
        const char *did = value_text(payload, "signer");
        json_t *part = value_find(m->parts, "did", did);
        int64_t weight = value_integer(part, "weight");
        json_array_append_new(list, json_pack("{sssOsssIsOsssO*}", "did", did, "cid", json_object_get(item, "cid"), "code",
                                              contribution_code(m, item, payload, weight, right), "weight", (json_int_t)weight,
                                              "arrival", json_object_get(item, "ms"), "body", value_text(payload, "body"),
                                              "group", json_object_get(part, "group")));
    }
    json_decref(right);
    value_sort(list, "cid");
    value_sort(list, "did");
    replica_judge(list, m->in->documents, json_object_get(m->in->previous, "members"));
    json_object_set_new(m->record, "contributions", list);
    return list;
}

/* A skip in which nothing counts down: it is forced, or fewer trainers were heard than a round needs. Whoever is silent in it may be cut off. */
static bool is_outage(struct making *m)
{
    const json_t *previous = m->in->previous;
    if (m->in->forced || amendment_pauses(m->rules, previous, m->round) || !amendment_trains(m->rules, previous, m->round))
        return m->in->forced;
    return disputes_due(previous) &&
           replica_accepted(list_contributions(m)) < (size_t)amendment_quorum(m->rules, previous, m->round);
}

/* Challenges with their moves, and equivocations: all only ever add convictions, so their order does not matter. */
static void take_disputes(struct making *m)
{
    const struct disputes_input in = { .rules = m->rules,
                                       .previous = m->in->previous,
                                       .items = m->tally.items,
                                       .checked = m->tally.checked,
                                       .t = m->quorum.t,
                                       .outage = is_outage(m),
                                       .documents = m->in->documents,
                                       .time = m->tally.time };
    struct verdicts verdicts = disputes_judge(&in);
    size_t i;
    json_t *one;
    json_array_foreach(verdicts.upheld, i, one) convict(m, value_text(one, "did"), value_integer(one, "round"));
    json_array_foreach(verdicts.rejected, i, one)
    {
        if (!value_lists(m->barred, value_text(one, "did")))
            json_array_append(m->barred, json_object_get(one, "did"));
    }
    json_array_foreach(m->tally.items, i, one)
    {
        const char *type;
        const json_t *payload = payload_of(m, one, &type);
        if (!strcmp(type, "equivocation") && value_is(one, "code", "ok"))
            convict(m, value_text(payload, "did"), value_integer(payload, "round"));
    }
    value_sort(m->convicted, "did");
    value_sort(m->barred, NULL);
    m->disputes = json_incref(verdicts.open);
    m->openings = json_incref(verdicts.openings);
    m->upheld = json_incref(verdicts.upheld);
    m->rejected = json_incref(verdicts.rejected);
    verdicts_free(&verdicts);
}

static void list_items(struct making *m)
{
    json_t *list = json_array(), *item;
    size_t i;
    json_array_foreach(m->tally.items, i, item)
    {
        const char *type;
        const json_t *payload = payload_of(m, item, &type);
        if (strcmp(type, "contribution"))
            json_array_append_new(list, json_pack("{sOsssssO}", "cid", json_object_get(item, "cid"), "type", type, "did",
                                                  value_text(payload, "signer"), "code", json_object_get(item, "code")));
    }
    json_object_set_new(m->record, "items", list);
}

static void settle(struct making *m)
{
    json_t *settled = json_array(), *left = json_array(), *entry;
    bool waits = false; /* a dispute about this round or one before it is open */
    size_t i;
    json_array_foreach(m->entries, i, entry)
    {
        int64_t round = value_integer(entry, "round");
        waits = waits || disputes_on(m->disputes, round);
        bool due = !json_is_true(json_object_get(entry, "settled")) && round + m->rules->challenge_rounds <= m->round && !waits;
        if (due) {
            json_array_append_new(settled, payout_of(m->rules, entry, m->convicted));
            json_object_set_new(entry, "settled", json_true());
        }
        if (!json_is_true(json_object_get(entry, "settled")) || (m->correct && round >= m->correct))
            json_array_append(left, entry);
    }
    json_object_set_new(m->record, "settled", settled);
    json_object_set_new(m->record, "unsettled", left);
}

static void set_members(struct making *m, const json_t *contributions)
{
    const struct membership_change change = { .rules = m->rules,
                                              .previous = m->in->previous,
                                              .round = m->round,
                                              .items = json_object_get(m->record, "items"),
                                              .documents = m->in->documents,
                                              .parts = m->parts,
                                              .contributions = contributions,
                                              .planned = json_is_object(json_object_get(m->record, "plan")),
                                              .train = value_is(m->record, "kind", "train"),
                                              .convicted = m->convicted,
                                              .barred = m->barred };
    json_object_set_new(m->record, "members", membership_after(&change));
}

static void set_deposits(struct making *m)
{
    const struct deposits_input in = { .rules = m->rules,
                                       .previous = m->in->previous,
                                       .members = json_object_get(m->record, "members"),
                                       .convicted = m->convicted,
                                       .upheld = m->upheld,
                                       .rejected = m->rejected,
                                       .over = record_is_last(m->rules, m->record) };
    if (!m->rules->stake && !m->rules->deposit)
        return;
    struct deposits deposits = deposits_after(&in);
    json_object_set_new(m->record, "deposits", deposits.held);
    json_object_set_new(m->record, "returned", deposits.returned);
}

static json_t *copy_list(const json_t *record, const char *name)
{
    const json_t *list = json_object_get(record, name);
    return list ? json_deep_copy(list) : json_array();
}

static void set_unreturned(struct making *m, const json_t *contributions)
{
    bool paused = amendment_pauses(m->rules, m->in->previous, m->round); /* what was not returned waits */
    json_t *list = paused ? copy_list(m->in->previous, "unreturned") : json_array();
    assignment_unreturned(m->parts, contributions, list);
    if (m->rules->regions && amendment_trains(m->rules, m->in->previous, m->round)) {
        json_t *undealt = assignment_undealt(m->rules, m->parts);
        json_array_extend(list, undealt);
        json_object_set_new(m->record, "undealt", undealt);
    }
    json_object_set_new(m->record, "unreturned", list);
}

/* Blocks between the heads that the members saw and the block of the next seed. A view lasts twice as long as the one before, up to the
 * seventh, and so does the lead: a committee that is slower than one view of blocks would else find the block made each time it votes. */
static int64_t lead_of(const struct making *m)
{
    int64_t view = value_integer(json_array_get(m->in->received, 0), "view");
    return m->rules->seed_lead << (view < 0 ? 0 : view < 6 ? view : 6);
}

/* Where more lie than a committee tolerates, but fewer than half, the block of the next seed still comes. */
static int64_t height_of(const struct making *m)
{
    int64_t most = m->tally.middle + lead_of(m);
    return m->tally.height < most ? m->tally.height : most;
}

/* What does not depend on the items. */
static void start_record(struct making *m)
{
    const struct rules *rules = m->rules;
    const json_t *previous = m->in->previous;
    char found[CID_TEXT], hex[HASH_TEXT];
    int64_t *funded = calloc(json_array_size(m->in->received) + 1, sizeof *funded);
    size_t i;
    json_t *one;
    if (!funded)
        abort();
    json_array_foreach((json_t *)m->in->received, i, one) funded[i] = value_integer(one, "funded");
    int64_t funded_at = previous ? value_integer(previous, "funded") : value_largest(funded, i, (size_t)m->quorum.t);
    free(funded);
    json_t *outer = previous ? json_incref(json_object_get(previous, "outer")) : json_string(rules->genesis_outer);
    json_t *state = previous ? json_incref(json_object_get(previous, "state")) : json_string(rules->genesis_state);
    m->record = json_pack("{sssisssIsOsIsIsIsIsOsnsosOsO}", "type", "record", "version", 1, "run", rules->run, "round",
                          (json_int_t)m->round, "committee", m->committee, "height", (json_int_t)m->tally.height, "time",
                          (json_int_t)m->tally.time, "funded", (json_int_t)funded_at, "next_height",
                          (json_int_t)(height_of(m) + lead_of(m)), "start", state, "aggregate", "outer", outer, "state", state,
                          "telemetry", previous ? json_object_get(previous, "telemetry") : json_null());
    json_decref(state);
    const char *before = m->in->before ? m->in->before : previous && value_cid(previous, found) ? found : NULL;
    json_object_set_new(m->record, "previous", before ? json_string(before) : json_null());
    json_object_set_new(m->record, "seed", previous ? json_string(hash_hex(m->seed, hex)) : json_null());
    json_object_set(m->record, "block", previous ? (json_t *)m->in->block : json_null());
}

/* What the received documents say together, and the assignment. */
static bool begin(struct making *m, struct error *err)
{
    const struct record_input *in = m->in;
    const json_t *previous = in->previous;
    m->rules = in->rules;
    m->round = previous ? value_integer(previous, "round") + 1 : 0;
    m->reason = "";
    if (previous && !seed_from_block(m->rules, m->round, in->block, &m->seed, err))
        return false;
    m->committee = committee_draw(m->rules, previous, m->round, previous ? &m->seed : NULL);
    m->quorum = committee_quorum(m->rules, m->committee);
    m->known = record_memory_find(in->memory, in->names, in->before, m->seed);
    if (m->known) {
        m->tally = m->known->tally;
        json_incref(m->tally.items);
        json_incref(m->tally.checked);
        m->parts = json_incref(m->known->parts);
        return true;
    }
    if (!check_received(m, err))
        return false;
    m->tally = received_tally(in->received, m->quorum.t);
    m->parts = amendment_trains(m->rules, previous, m->round)
                   ? record_memory_parts(in->memory, m->rules, in->before, previous, m->seed)
                   : json_array();
    m->known = record_memory_keep(in->memory, in->names, in->before, m->seed, &m->tally, m->parts);
    return true;
}

/* The record, or what it needs, where the memory has it. */
static bool recall(struct making *m)
{
    json_t *found = NULL;
    enum record_set_known known = record_set_recall(m->known, m->in->block, m->in->forced, m->in->results, &found);
    *(known == RECORD_SET_MADE ? &m->record : &m->needs) = found;
    return known != RECORD_SET_NOTHING;
}

static void end(struct making *m)
{
    json_decref(m->committee);
    json_decref(m->record);
    json_decref(m->tally.items);
    json_decref(m->tally.checked);
    json_decref(m->convicted);
    json_decref(m->barred);
    json_decref(m->disputes);
    json_decref(m->openings);
    json_decref(m->upheld);
    json_decref(m->rejected);
    json_decref(m->entries);
    json_decref(m->parts);
}

/* The record; where something is needed for it, that. */
static void make(struct making *m)
{
    const json_t *plan;
    m->convicted = copy_list(m->in->previous, "convicted");
    m->barred = copy_list(m->in->previous, "barred");
    m->entries = copy_list(m->in->previous, "unsettled");
    m->correct = value_integer(m->in->previous, "correct");
    record_set_begin(m->known, m->in->block, m->in->forced);
    json_t *all = m->tally.items;
    m->tally.items = received_agreed(all, m->in->documents, m->quorum.t);
    json_decref(all);
    start_record(m);
    list_received(m);
    take_disputes(m);
    const json_t *contributions = list_contributions(m);
    list_items(m);
    if (!record_find_plan(m, &plan) || !record_decide(m, contributions, plan))
        return;
    json_object_set(m->record, "plan", (json_t *)plan);
    settle(m);
    set_members(m, contributions);
    set_unreturned(m, contributions);
    json_t *arrivals = grace_arrivals(m->in->previous, value_is(m->record, "kind", "train") ? contributions : NULL);
    json_object_set_new(m->record, "grace_ms", json_integer(grace_of(m->rules, arrivals)));
    json_object_set_new(m->record, "arrivals", arrivals);
    json_object_set_new(m->record, "correct", json_integer(m->correct));
    json_object_set(m->record, "convicted", m->convicted);
    json_object_set(m->record, "barred", m->barred);
    if (value_is(m->record, "kind", "train") || value_is(m->record, "kind", "close"))
        disputes_count(m->disputes, json_object_get(m->in->previous, "disputes"));
    json_object_set(m->record, "disputes", m->disputes);
    disputes_keep_openings(m->openings, m->record);
    if (json_array_size(m->openings))
        json_object_set(m->record, "openings", m->openings);
    json_t *amendments = amendments_after(m->rules, m->in->previous, json_object_get(m->record, "items"), m->in->documents);
    if (amendments)
        json_object_set_new(m->record, "amendments", amendments);
    set_deposits(m);
    record_set_make(m->known, m->record);
}

enum record_outcome record_of(const struct record_input *input, json_t **out, struct error *err)
{
    struct making m = { .in = input };
    enum record_outcome outcome = RECORD_WRONG;
    *out = NULL;
    if (begin(&m, err)) {
        if (have_documents(&m) && !recall(&m))
            make(&m);
        outcome = m.needs ? RECORD_NEEDS : RECORD_MADE;
        *out = m.needs ? m.needs : json_incref(m.record);
    }
    end(&m);
    return outcome;
}

bool record_is_last(const struct rules *rules, const json_t *record)
{
    return value_integer(record, "round") > amendment_rounds(rules, record) &&
           !json_array_size(json_object_get(record, "unsettled")) && !value_integer(record, "correct");
}
