#include "runtime/round/dispute.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/fold.h"
#include "runtime/round/value.h"

/* ---- lists of disputes ------------------------------------------------------------------------------------------------- */

static bool is_about(const json_t *dispute, const char *contribution, int64_t index)
{
    return value_is(dispute, "contribution", contribution) && value_integer(dispute, "index") == index;
}

json_t *disputes_find(const json_t *open, const char *contribution, int64_t index, const char *challenger)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)open, i, one)
    {
        if (is_about(one, contribution, index) && value_is(one, "challenger", challenger))
            return one;
    }
    return NULL;
}

void disputes_key(const json_t *dispute, char key[DISPUTE_KEY])
{
    snprintf(key, DISPUTE_KEY, "%s/%lld", value_text(dispute, "contribution"), (long long)value_integer(dispute, "index"));
}

bool disputes_on(const json_t *open, int64_t round)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)open, i, one)
    {
        if (value_integer(one, "round") == round)
            return true;
    }
    return false;
}

bool disputes_ask(const json_t *before, const json_t *last, const char *type, const json_t *payload)
{
    const bool opens = !strcmp(type, "opening");
    const char *signer = value_text(payload, "signer");
    const json_t *member = value_find(json_object_get(before, "members"), "did", signer);
    size_t i;
    json_t *one;
    if (opens && !value_integer(payload, "index"))
        return *value_text(payload, "trace") &&
               value_is(json_object_get(member, "carry"), "object", value_text(payload, "trace"));
    json_array_foreach(json_object_get(last, "disputes"), i, one)
    {
        if (is_about(one, value_text(payload, "contribution"), value_integer(payload, "index")) &&
            value_is(one, opens ? "did" : "challenger", signer))
            return true;
    }
    return false;
}

const json_t *disputes_entry_of(const json_t *record, const char *cid, const char **did)
{
    json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(record, "unsettled"), i, entry)
    {
        const json_t *found = value_find(json_object_get(entry, "contributions"), "cid", cid);
        if (found) {
            *did = value_text(found, "did");
            return entry;
        }
    }
    return NULL;
}

json_t *disputes_entries(const json_t *record)
{
    json_t *entries = json_object(), *entry, *line;
    size_t i, k;
    json_array_foreach(json_object_get(record, "unsettled"), i, entry)
    {
        json_array_foreach(json_object_get(entry, "contributions"), k, line)
        {
            const char *cid = value_text(line, "cid");
            if (!json_object_get(entries, cid))
                json_object_set_new(entries, cid, json_pack("[OO]", entry, json_object_get(line, "did")));
        }
    }
    return entries;
}

void disputes_count(json_t *open, const json_t *before)
{
    size_t i;
    json_t *one;
    json_array_foreach(open, i, one)
    {
        const json_t *was =
            disputes_find(before, value_text(one, "contribution"), value_integer(one, "index"), value_text(one, "challenger"));
        bool moved = was && json_is_null(json_object_get(was, "trace")) != json_is_null(json_object_get(one, "trace"));
        if (was && !moved && value_integer(one, "left") > 0)
            json_object_set_new(one, "left", json_integer((json_int_t)value_integer(one, "left") - 1));
    }
}

bool disputes_due(const json_t *record)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(record, "disputes"), i, one)
    {
        if (!value_integer(one, "left"))
            return true;
    }
    return false;
}

void disputes_keep_openings(json_t *openings, const json_t *record)
{
    const char *did;
    for (size_t i = json_array_size(openings); i-- > 0;)
        if (!disputes_entry_of(record, value_text(json_array_get(openings, i), "contribution"), &did))
            json_array_remove(openings, i);
}

/* ---- verdicts ------------------------------------------------------------------------------------------------------------ */

struct judging {
    const struct disputes_input *in;
    struct verdicts out;
};

/* Of a challenger: as a member, or of the panel. "" when it is neither any more. */
static const char *account_of(const struct judging *j, const char *did)
{
    const json_t *member = value_find(json_object_get(j->in->previous, "members"), "did", did);
    return value_text(member ? member : value_find(j->in->rules->panel, "did", did), "account");
}

static void uphold(struct judging *j, const char *did, int64_t round, const char *by)
{
    json_array_append_new(
        j->out.upheld, json_pack("{sssIssss}", "did", did, "round", (json_int_t)round, "by", by, "account", account_of(j, by)));
}

/* The accused's account is the one that its contribution is paid to. */
static void reject(struct judging *j, const char *did, const char *contribution)
{
    const char *accused = "";
    const json_t *entry = disputes_entry_of(j->in->previous, contribution, &accused);
    const json_t *of = value_find(json_object_get(entry, "contributions"), "cid", contribution);
    if (!value_find(j->out.rejected, "did", did))
        json_array_append_new(j->out.rejected,
                              json_pack("{ssssss}", "did", did, "accused", accused, "account", value_text(of, "account")));
}

/* The trace that the accused showed of this step, in whichever dispute; NULL. */
static json_t *trace_shown(const struct judging *j, const char *contribution, int64_t index)
{
    size_t i;
    json_t *one;
    json_array_foreach(j->out.openings, i, one)
    {
        if (is_about(one, contribution, index))
            return json_object_get(one, "trace");
    }
    return NULL;
}

/* Each item of that type: its code and its payload. */
typedef void take_move(struct judging *j, const char *code, const json_t *payload);

static void each_move(struct judging *j, const char *type, take_move *take)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)j->in->items, i, item)
    {
        const json_t *document = json_object_get(j->in->documents, value_text(item, "cid"));
        if (value_is(document, "type", type))
            take(j, value_text(item, "code"), json_object_get(document, "payload"));
    }
}

bool disputes_late(const struct rules *rules, const json_t *open, int64_t round, const json_t *entry, const json_t *challenge)
{
    return round > value_integer(entry, "round") + rules->challenge_rounds &&
           (!value_integer(challenge, "index") ||
            !disputes_find(open, value_text(challenge, "contribution"), 0, value_text(challenge, "signer")));
}

/* The first wrong leaf is one. Whoever could name many would have the accused trace more steps than it has time for, and silence convicts. */
static bool accuses_already(const struct judging *j, const char *contribution, const char *challenger)
{
    size_t i;
    json_t *one;
    json_array_foreach(j->out.open, i, one)
    {
        if (value_is(one, "contribution", contribution) && value_is(one, "challenger", challenger) && value_integer(one, "index"))
            return true;
    }
    return false;
}

static void take_challenge(struct judging *j, const char *code, const json_t *payload)
{
    const char *accused = NULL, *challenger = value_text(payload, "signer"), *cid = value_text(payload, "contribution");
    const json_t *entry = disputes_entry_of(j->in->previous, cid, &accused);
    int64_t index = value_integer(payload, "index");
    if (!entry || disputes_late(j->in->rules, j->out.open, value_integer(j->in->previous, "round") + 1, entry, payload))
        return;
    if (!strcmp(code, "rejected"))
        reject(j, challenger, cid);
    if (!strcmp(code, "upheld"))
        uphold(j, accused, value_integer(entry, "round"), challenger);
    if (!strcmp(code, "ok") && !disputes_find(j->out.open, cid, index, challenger) &&
        !(index && accuses_already(j, cid, challenger)))
        json_array_append_new(j->out.open, json_pack("{sssssIsIsssO?sI}", "contribution", cid, "did", accused, "round",
                                                     (json_int_t)value_integer(entry, "round"), "index", (json_int_t)index,
                                                     "challenger", challenger, "trace", trace_shown(j, cid, index), "left",
                                                     (json_int_t)j->in->rules->answer_rounds));
}

/* Keeps what the accused showed: it serves also those who ask for it later, and no record lists an opening twice. */
static void show_trace(struct judging *j, const char *code, const json_t *payload)
{
    const char *accused = "", *cid = value_text(payload, "contribution");
    const json_t *entry = disputes_entry_of(j->in->previous, cid, &accused);
    const json_t *shown = trace_shown(j, cid, value_integer(payload, "index"));
    if (strcmp(code, "ok") || !entry || !value_is(payload, "signer", accused))
        return;
    if (!shown)
        json_array_append_new(j->out.openings,
                              json_pack("{sssOsO}", "contribution", cid, "index", json_object_get(payload, "index"), "trace",
                                        json_object_get(payload, "trace")));
    else if (!json_equal(shown, json_object_get(payload, "trace")))
        uphold(j, accused, value_integer(entry, "round"), ""); /* two traces are two statements: nobody need have asked */
}

static void take_opening(struct judging *j, const char *code, const json_t *payload)
{
    size_t i;
    json_t *one;
    show_trace(j, code, payload);
    json_array_foreach(j->out.open, i, one)
    {
        const json_t *trace = json_object_get(one, "trace");
        if (!is_about(one, value_text(payload, "contribution"), value_integer(payload, "index")) ||
            !value_is(one, "did", value_text(payload, "signer")))
            continue;
        if (!strcmp(code, "upheld")) {
            uphold(j, value_text(one, "did"), value_integer(one, "round"), value_text(one, "challenger"));
        } else if (!strcmp(code, "ok") && json_is_null(trace)) {
            json_object_set(one, "trace", json_object_get(payload, "trace"));
            json_object_set_new(one, "left", json_integer((json_int_t)j->in->rules->answer_rounds));
        }
    }
}

static void take_pick(struct judging *j, const char *code, const json_t *payload)
{
    json_t *one = disputes_find(j->out.open, value_text(payload, "contribution"), value_integer(payload, "index"),
                                value_text(payload, "signer"));
    if (!one || !value_is(one, "trace", value_text(payload, "trace")))
        return;
    if (!strcmp(code, "upheld")) {
        uphold(j, value_text(one, "did"), value_integer(one, "round"), value_text(one, "challenger"));
    } else if (!strcmp(code, "rejected")) {
        reject(j, value_text(one, "challenger"), value_text(one, "contribution"));
        json_object_set_new(one, "left", json_integer(-1)); /* over: see drop_over */
    }
}

/* t members replayed the contribution: an honest one among them found it right. A machine that is out of order, or cut off by those who accuse
 * it, need not say so itself. What it ought to have shown for others to begin a replay with, its carry, nobody can show for it. */
static bool is_vouched_for(const struct judging *j, const json_t *dispute)
{
    return value_integer(dispute, "index") && j->in->t > 0 &&
           value_integer(j->in->checked, value_text(dispute, "contribution")) >= j->in->t;
}

/* Silence loses: the accused's, unless others speak for it, then the challenger's. */
static void end_silent(struct judging *j)
{
    size_t i;
    json_t *one;
    json_array_foreach(j->out.open, i, one)
    {
        if (value_integer(one, "left") != 0)
            continue;
        bool silent = json_is_null(json_object_get(one, "trace"));
        if (silent && !is_vouched_for(j, one))
            uphold(j, value_text(one, "did"), value_integer(one, "round"), value_text(one, "challenger"));
        else if (value_integer(one, "index") > 0)
            reject(j, value_text(one, "challenger"), value_text(one, "contribution"));
        json_object_set_new(one, "left", json_integer(-1));
    }
}

int64_t disputes_most(const struct rules *rules, bool carries)
{
    return 2 * (rules->answer_rounds + 1) * (carries ? 2 : 1);
}

/* Two rounds before the escrow of round r goes back to the sponsor. */
static bool escrow_ends(const struct disputes_input *in, int64_t round)
{
    int64_t seconds = (in->rules->round_ms + 999) / 1000, left = round + in->rules->expiry_rounds - 2;
    int64_t funded = value_integer(in->previous, "funded");
    return funded > 0 && in->time >= funded && (in->time - funded) / seconds >= left;
}

/* By this record or one before: whoever is convicted is heard no more, and what it did is out. */
static bool is_convicted(const struct judging *j, const json_t *dispute)
{
    const char *did = value_text(dispute, "did");
    int64_t round = value_integer(dispute, "round");
    size_t i;
    json_t *one;
    json_array_foreach(j->out.upheld, i, one)
    {
        if (value_is(one, "did", did) && value_integer(one, "round") <= round)
            return true;
    }
    return fold_is_removed(json_object_get(j->in->previous, "convicted"), did, round);
}

/* Decided ones, those whose accused is convicted anyway, and those that the escrow does not wait for. */
static void drop_over(struct judging *j)
{
    json_t *left = json_array(), *one;
    size_t i;
    json_array_foreach(j->out.open, i, one)
    {
        if (value_integer(one, "left") >= 0 && !is_convicted(j, one) && !escrow_ends(j->in, value_integer(one, "round")))
            json_array_append(left, one);
    }
    json_decref(j->out.open);
    j->out.open = left;
}

struct verdicts disputes_judge(const struct disputes_input *in)
{
    const json_t *before = json_object_get(in->previous, "disputes");
    const json_t *shown = json_object_get(in->previous, "openings");
    struct judging j = { .in = in,
                         .out = { .open = before ? json_deep_copy(before) : json_array(),
                                  .openings = shown ? json_copy((json_t *)shown) : json_array(),
                                  .upheld = json_array(),
                                  .rejected = json_array() } };
    each_move(&j, "challenge", take_challenge);
    each_move(&j, "opening", take_opening);
    each_move(&j, "pick", take_pick);
    if (!in->outage)
        end_silent(&j);
    drop_over(&j);
    value_sort(j.out.open, "challenger"); /* stable, the last key first */
    value_sort(j.out.open, "contribution");
    return j.out;
}

void verdicts_free(struct verdicts *v)
{
    json_decref(v->open);
    json_decref(v->openings);
    json_decref(v->upheld);
    json_decref(v->rejected);
}
