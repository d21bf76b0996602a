#include "runtime/round/rules.h"

#include <stdio.h>
#include <string.h>

#include "runtime/attest/snp.h"
#include "runtime/doc/verified.h"
#include "runtime/round/value.h"

enum { EVIDENCE_KNOWN = 1024 }; /* more than a node keeps enrolments (32 KiB) */

/* The value at a path such as "quorum.grace.factor"; NULL. */
static json_t *at(json_t *spec, const char *path)
{
    char name[64];
    json_t *value = spec;
    while (value && *path) {
        size_t size = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)size, path);
        value = json_object_get(value, name);
        path += size + (path[size] == '.');
    }
    return value;
}

struct reading {
    json_t *spec;
    struct error *err;
    bool ok;
};

static void refuse(struct reading *in, enum error_code code, const char *path, const char *message)
{
    if (in->ok)
        error_set(in->err, code, "see the run spec in docs/protocol.md, section 3", "%s: %s", path, message);
    in->ok = false;
}

static int64_t integer(struct reading *in, const char *path, int64_t least, int64_t most)
{
    json_t *value = at(in->spec, path);
    if (!json_is_integer(value)) {
        refuse(in, ERROR_MISSING, path, "an integer is needed");
        return least;
    }
    int64_t number = json_integer_value(value);
    if (number < least || number > most)
        refuse(in, ERROR_RANGE, path, "the number is outside what is allowed");
    return number;
}

/* "0.25" -> 250000000; at most 9 digits on either side. */
static bool parse_decimal(const char *text, int64_t *out)
{
    int64_t whole = 0, part = 0, unit = RULES_UNIT;
    size_t digits = 0;
    for (; *text >= '0' && *text <= '9'; text++, digits++)
        whole = whole * 10 + (*text - '0');
    if (!digits || digits > 6)
        return false;
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9' && unit > 1; text++)
            part += (*text - '0') * (unit /= 10);
    *out = whole * RULES_UNIT + part;
    return !*text;
}

static int64_t decimal(struct reading *in, const char *path, int64_t most)
{
    const char *text = json_string_value(at(in->spec, path));
    int64_t value = 0;
    if (!text || !parse_decimal(text, &value))
        refuse(in, ERROR_TYPE, path, "a decimal number as text is needed, such as \"0.5\"");
    else if (value > most * RULES_UNIT)
        refuse(in, ERROR_RANGE, path, "the number is too large");
    return value;
}

static void copy_amount(struct reading *in, const char *path, char out[40])
{
    const char *text = json_string_value(at(in->spec, path));
    size_t size = text ? strspn(text, "0123456789") : 0;
    if (!text || !size || text[size] || size > 28 || (size > 1 && text[0] == '0'))
        refuse(in, ERROR_TYPE, path, "a whole amount as text of at most 28 digits is needed, such as \"100000\"");
    else
        snprintf(out, 40, "%s", text);
}

/* What the spec lets lock; NULL: nothing. */
static const char *locked(struct reading *in, const char *path)
{
    const char *text = json_string_value(at(in->spec, path));
    char amount[40];
    if (!text || !strcmp(text, "0"))
        return NULL;
    copy_amount(in, path, amount);
    return text;
}

static json_t *panel(struct reading *in)
{
    json_t *list = at(in->spec, "committee.panel");
    size_t i;
    json_t *item;
    if (!json_array_size(list))
        refuse(in, ERROR_MISSING, "committee.panel", "at least one member is needed");
    json_array_foreach(list, i, item)
    {
        if (!json_is_string(json_object_get(item, "did")) || !json_is_string(json_object_get(item, "account")))
            refuse(in, ERROR_MISSING, "committee.panel", "each member needs did and account");
    }
    return list;
}

static size_t record_most(const struct rules *rules)
{
    const int64_t machines = rules->trainers_limit + (int64_t)json_array_size(rules->panel);
    const int64_t most = RULES_RECORD + 1024 * machines * (rules->challenge_rounds + 4 * (rules->answer_rounds + 1) + 1);
    return (size_t)(most < VALUE_MOST ? most : VALUE_MOST);
}

bool rules_read(struct rules *rules, json_t *spec, const char *run, struct error *err)
{
    struct reading in = { .spec = spec, .err = err, .ok = true };
    const int64_t ms = INT64_C(1) << 40;
    *rules = (struct rules){
        .spec = json_incref(spec), .panel = panel(&in), .roots = &snp_vendor_roots, .evidence = verified_new(EVIDENCE_KNOWN)
    };
    snprintf(rules->run, sizeof rules->run, "%s", run);
    rules->allowed = at(spec, "trust.admission.allowed");
    rules->attested = !strcmp(json_string_value(at(spec, "trust.admission.mode")) ?: "", "attested");
    rules->amendable = at(spec, "amendable");
    rules->regions = at(spec, "dataset.regions");
    rules->stake = locked(&in, "trust.stake");
    rules->deposit = locked(&in, "trust.deposit");
    rules->rounds = integer(&in, "rounds", 1, 1000000);
    rules->shards = integer(&in, "dataset.shards", 1, 1 << 20);
    rules->trainers_quorum = integer(&in, "quorum.trainers", 1, 10000);
    rules->trainers_limit = integer(&in, "limits.trainers", 1, 10000);
    rules->round_ms = integer(&in, "quorum.round_ms", 1, ms);
    rules->close_ms = integer(&in, "quorum.close_ms", 0, ms);
    rules->drop_after = integer(&in, "quorum.drop_after", 1, 1000000);
    rules->grace_factor = decimal(&in, "quorum.grace.factor", 1000);
    rules->grace_min_ms = integer(&in, "quorum.grace.min_ms", 0, ms);
    rules->grace_max_ms = integer(&in, "quorum.grace.max_ms", rules->grace_min_ms, ms);
    rules->size = integer(&in, "committee.size", 1, 1000);
    rules->threshold = integer(&in, "committee.threshold", rules->size / 2 + 1, rules->size);
    rules->view_ms = integer(&in, "committee.view_ms", 1, ms);
    rules->settle_ms = integer(&in, "committee.settle_ms", 0, ms);
    rules->release_threshold = integer(&in, "committee.release_threshold", 1, 1000);
    rules->spot_check = decimal(&in, "trust.spot_check", 1);
    rules->checkpoint_every = at(spec, "trust.checkpoint_every") ? integer(&in, "trust.checkpoint_every", 1, 1 << 20) : 1;
    rules->batches = at(spec, "limits.batches") ? integer(&in, "limits.batches", 1, 65536) : 0;
    rules->replicas = at(spec, "trust.replicas") ? integer(&in, "trust.replicas", 1, 1000) : 1;
    rules->challenge_rounds = integer(&in, "trust.challenge_rounds", 2, 1000);
    rules->answer_rounds = integer(&in, "trust.answer_rounds", 1, 1000);
    rules->rollback = at(spec, "trust.correction") && !strcmp(json_string_value(at(spec, "trust.correction")) ?: "", "rollback");
    rules->seed_lead = integer(&in, "seed_lead", 1, 1000000);
    rules->expiry_rounds = integer(&in, "payment.expiry_rounds", 1, 1000000);
    rules->share_trainers = decimal(&in, "payment.terms.trainers", 1);
    rules->share_syncers = decimal(&in, "payment.terms.syncers", 1);
    if (rules->share_trainers + rules->share_syncers > RULES_UNIT)
        refuse(&in, ERROR_RANGE, "payment.terms", "the shares add up to more than 1");
    copy_amount(&in, "payment.per_round", rules->per_round);
    if (in.ok && (size_t)rules->size > json_array_size(rules->panel))
        refuse(&in, ERROR_RANGE, "committee.size", "a committee larger than the panel");
    rules->record_most = record_most(rules);
    return in.ok;
}

void rules_set_genesis(struct rules *rules, const char *outer, const char *state)
{
    snprintf(rules->genesis_outer, sizeof rules->genesis_outer, "%s", outer);
    snprintf(rules->genesis_state, sizeof rules->genesis_state, "%s", state);
}

void rules_free(struct rules *rules)
{
    json_decref(rules->spec);
    verified_free(rules->evidence);
    *rules = (struct rules){ 0 };
}
