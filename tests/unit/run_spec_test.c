/* A run spec is refused field by field, with the path and what is allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "runtime/crypto/keyfile.h"
#include "runtime/doc/run_spec.h"

static struct error err;
static struct key_pair sponsor, syncers[4], trainers[4];

static int make_people(void **state)
{
    (void)state;
    key_pair_derive("run_spec_test", "sponsor", &sponsor);
    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof name, "syncer-%d", i);
        key_pair_derive("run_spec_test", name, &syncers[i]);
        snprintf(name, sizeof name, "trainer-%d", i);
        key_pair_derive("run_spec_test", name, &trainers[i]);
    }
    return 0;
}

static json_t *did_of(const struct key_pair *who)
{
    struct public_key key = public_key_of(&who->identity);

    return document_json_did(&key);
}

static json_t *account_of(const struct key_pair *who)
{
    char text[ADDRESS_TEXT];

    return json_string(address_text(account_address(&who->account), text));
}

/* As a run file gives it: numbers where Lua has numbers, names of files already replaced by content ids. */
static const char draft_text[] =
    "{ 'name': 'demo', 'nonce': '000102030405060708090a0b0c0d0e0f',"
    "  'base_model': '@', 'model': { 'script': '@' }, 'adapter': { 'kind': 'lora', 'rank': 16, 'alpha': 32 },"
    "  'objective': { 'script': '@' }, 'inner': { 'script': '@', 'options': { 'weight_decay': 0 } }, 'outer': { 'script': '@' },"
    "  'aggregators': [ { 'script': '@' } ],"
    "  'schedule': { 'script': '@', 'options': { 'outer_lr': 1, 'rate.floor': 0.05, 'bits': '4' } }, 'imports': { 'rate': '@' },"
    "  'rounds': 16, 'batch_tokens': 448,"
    "  'dataset': { 'manifest': '@', 'shards': 16, 'corpora': [ { 'name': 'tools', 'licence': 'Apache-2.0', 'share': 1 } ] },"
    "  'trust': { 'tier': 'known', 'admission': { 'mode': 'allow-list' }, 'spot_check': 0.1 }, 'seed_lead': 20,"
    "  'quorum': { 'trainers': 3, 'round_ms': 120000, 'grace': { 'factor': 3, 'min_ms': 2000, 'max_ms': 60000 } },"
    "  'committee': { 'size': 4, 'threshold': 3, 'view_ms': 1000, 'settle_ms': 200, 'release_threshold': 3 },"
    "  'payment': { 'ledger': 'local', 'chain': 31337, 'block_ms': 50, 'contract': '0x5FbDB2315678afecb367f032d93F642f64180aa3',"
    "     'asset': 'TNZO', 'budget': '1600000', 'per_round': '100000', 'terms': { 'trainers': 0.8, 'syncers': 0.2 } } }";

static json_t *draft(void)
{
    struct buffer text = { 0 };
    char cid[CID_TEXT];
    json_t *out, *panel = json_array(), *allowed = json_array();

    cid_text((struct hash){ { 9 } }, cid);
    for (const char *c = draft_text; *c; c++)
        if (*c == '@')
            buffer_add_text(&text, cid);
        else
            buffer_add_u8(&text, *c == '\'' ? '"' : (uint8_t)*c);
    out = json_loadb((const char *)text.bytes, text.size, 0, NULL);
    buffer_free(&text);
    assert_non_null(out);
    json_object_set_new(out, "sponsor", did_of(&sponsor));
    json_object_set_new(out, "account", account_of(&sponsor));
    for (int i = 0; i < 4; i++) {
        json_array_append_new(panel, json_pack("{s:o, s:o}", "did", did_of(&syncers[i]), "account", account_of(&syncers[i])));
        json_array_append_new(allowed, did_of(&trainers[i]));
    }
    json_object_set_new(json_object_get(out, "committee"), "panel", panel);
    json_object_set_new(json_object_get(json_object_get(out, "trust"), "admission"), "allowed", allowed);
    run_spec_complete(out);
    return out;
}

static void completed_draft_is_signed_and_read_as_typed_fields(void **state)
{
    json_t *spec = draft();
    struct document run;
    struct run_spec out;
    char text[AMOUNT_TEXT];

    (void)state;
    if (!run_spec_check(spec, &err))
        fail_msg("%s: %s", err.place, err.message);
    assert_true(document_make(DOCUMENT_RUN, spec, &sponsor.identity, &sponsor.account, &run, &err));
    assert_true(hash_equal(run.id, run.run));
    assert_true(run_spec_read(&run, &out, &err));
    assert_true(hash_equal(out.id, run.id));
    assert_string_equal(out.name, "demo");
    assert_int_equal(out.nonce[15], 15);
    assert_int_equal(out.adapter.rank, 16);
    assert_string_equal(json_string_value(out.adapter.targets), "all-linear");
    assert_int_equal(out.aggregator_count, 1);
    assert_string_equal(out.imports[0].name, "rate");
    assert_string_equal(json_string_value(json_object_get(out.schedule.options, "rate.floor")), "0.05");
    assert_int_equal(out.trust.spot_check, 100000000);
    assert_int_equal(out.trust.allowed_count, 4);
    assert_int_equal(out.committee.panel_count, 4);
    assert_true(address_equal(out.committee.panel[2].account, account_address(&syncers[2].account)));
    assert_string_equal(amount_text(out.payment.budget, text), "1600000");
    assert_int_equal(out.payment.trainers, 800000000);
    assert_int_equal(out.quorum.grace_factor, 3000000000);
    assert_int_equal(run_spec_settles_after(&out), 6);
    assert_int_equal(out.limits.trainers, 60);
    assert_false(out.trust.rollback);
    run_spec_free(&out);
    document_free(&run);
    json_decref(spec);
}

static void set(json_t *spec, const char *path, const char *value)
{
    char part[64];

    for (;;) {
        size_t size = strcspn(path, ".");

        snprintf(part, sizeof part, "%.*s", (int)size, path);
        if (path[size] == '\0')
            break;
        spec = json_object_get(spec, part);
        path += size + 1;
    }
    if (value)
        json_object_set_new(spec, part, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(spec, part);
}

static const struct {
    const char *path, *value, *place, *says, *hint;
    enum error_code code;
} bad[] = {
    { "quorum.round_sm", "1", "quorum", "unknown field \"round_sm\"", "did you mean \"round_ms\"?", ERROR_UNKNOWN },
    { "trust.tier", "\"opne\"", "trust.tier", "unknown tier \"opne\"; known: open known replicated", "", ERROR_UNKNOWN },
    { "rounds", "0", "rounds", "0 is not between 1 and 1000000", "", ERROR_RANGE },
    { "rounds", "\"ten\"", "rounds", "an integer is expected", "", ERROR_TYPE },
    { "rounds", NULL, "rounds", "missing", "", ERROR_MISSING },
    { "base_model", "\"bafkrei\"", "base_model", "is not a content id", "", ERROR_SYNTAX },
    { "reference", "\"bafkrei\"", "reference", "is not a content id", "", ERROR_SYNTAX },
    { "trust.spot_check", "\"1.5\"", "trust.spot_check", "1.5 is not between 0 and 1", "", ERROR_RANGE },
    { "trust.spot_check", "\"ten\"", "trust.spot_check", "is not a decimal number", "", ERROR_SYNTAX },
    { "account", "\"0x5fbdb2315678afecb367f032d93f642f64180aa3\"", "account", "is not an address", "", ERROR_SYNTAX },
    { "sponsor", "\"did:web:me\"", "signer", "is not the DID", "", ERROR_SYNTAX },
    { "nonce", "\"00\"", "nonce", "16 bytes", "", ERROR_SYNTAX },
    { "adapter.rank", NULL, "adapter.rank", "missing", "", ERROR_MISSING },
    { "adapter.kind", "\"none\"", "adapter.rank", "no such field", "", ERROR_UNKNOWN },
    { "adapter.kind", "\"ia3\"", "adapter.kind", "known: lora dora none", "", ERROR_UNKNOWN },
    { "adapter.scaling", "\"rank\"", "adapter.scaling", "known: root", "", ERROR_UNKNOWN },
    { "adapter.start", "\"folder\"", "adapter.start", "is not a content id", "", ERROR_SYNTAX },
    { "adapter.targets", "\"q_proj\"", "adapter.targets", "a list of names", "names ends of modules", ERROR_UNKNOWN },
    { "adapter.targets", "[]", "adapter.targets", "0 entries", "", ERROR_RANGE },
    { "adapter.targets", "[\"q_proj\", 3]", "adapter.targets[1]", "text is expected", "", ERROR_TYPE },
    { "adapter.modules_to_save", "\"lm_head\"", "adapter.modules_to_save", "a list is expected", "", ERROR_TYPE },
    { "adapter.modules_to_save", "[]", "adapter.modules_to_save", "0 entries", "", ERROR_RANGE },
    { "chat_template", "\"mine\"", "chat_template", "is not a content id", "", ERROR_SYNTAX },
    { "template_date", "\"2026-02-29\"", "template_date", "is no date", "as 2026-01-31", ERROR_SYNTAX },
    { "packing", "\"rows\"", "packing", "unknown packing \"rows\"", "", ERROR_UNKNOWN },
    { "surround", "1", "surround", "true or false is expected", "", ERROR_TYPE },
    { "coalesce", "1", "coalesce", "true or false is expected", "", ERROR_TYPE },
    { "imports.rate", "3", "imports.rate", "text is expected", "", ERROR_TYPE },
    { "committee.threshold", "2", "committee.threshold", "2 of 4", "two halves", ERROR_RANGE },
    { "committee.threshold", "5", "committee.threshold", "5 of 4", "", ERROR_RANGE },
    { "committee.release_threshold", "2", "committee.release_threshold", "2 of a panel of 4", "", ERROR_RANGE },
    { "committee.size", "5", "committee.size", "the size is 5, the panel has 4", "", ERROR_RANGE },
    { "payment.budget", "\"1599999\"", "payment.budget", "1599999 does not cover 16 rounds of 100000", "", ERROR_RANGE },
    { "payment.per_round", "\"0\"", "payment.per_round", "pays nothing", "", ERROR_RANGE },
    { "payment.budget", "\"1e6\"", "payment.budget", "is not a whole amount", "", ERROR_SYNTAX },
    { "payment.terms.syncers", "\"0.21\"", "payment.terms", "more than 1", "", ERROR_RANGE },
    { "payment.expiry_rounds", "7", "payment.expiry_rounds", "at least 8", "", ERROR_RANGE },
    { "quorum.trainers", "5", "quorum.trainers", "4 are allowed", "", ERROR_RANGE },
    { "limits.trainers", "3", "trust.admission.allowed", "limits.trainers is 3", "", ERROR_RANGE },
    { "quorum.grace.max_ms", "1000", "quorum.grace", "do not ascend", "", ERROR_RANGE },
    { "seed_lead", "19", "seed_lead", "one view takes 1000 ms", "raise seed_lead", ERROR_RANGE },
    { "limits.script_seconds", "1.5", "limits.script_seconds", "an integer is expected", "", ERROR_TYPE },
    /* what comes later */
    { "trust.tier", "\"replicated\"", "trust.replicas", "1 replicas: the replicated tier has two at least", "two machines",
      ERROR_RANGE },
    { "trust.tier", "\"attested\"", "trust.tier", "not offered by this version", "", ERROR_UNSUPPORTED },
    { "trust.tier", "\"confidential\"", "trust.tier", "not offered by this version", "", ERROR_UNSUPPORTED },
    { "trust.admission.mode", "\"open\"", "trust.admission.allowed", "only an allow-list", "", ERROR_UNKNOWN },
    { "trust.admission", "{\"mode\":\"open\"}", "trust.deposit", "identities would cost nothing", "trust.stake", ERROR_MISSING },
    { "trust.admission", "{\"mode\":\"stake\"}", "trust.stake", "without a stake", "", ERROR_MISSING },
    { "trust.admission", "{\"mode\":\"allow-list\"}", "trust.admission.allowed", "missing", "", ERROR_MISSING },
    { "trust.replicas", "2", "trust.replicas", "2 replicas: the replicated tier has two at least, the others one",
      "trust.tier = \"replicated\"", ERROR_RANGE },
    { "trust.replicas", "17", "trust.replicas", "17", "", ERROR_RANGE },
    { "trust.stake", "\"-1\"", "trust.stake", "", "", ERROR_SYNTAX },
    { "trust.checkpoint_every", "0", "trust.checkpoint_every", "", "", ERROR_RANGE },
    { "committee.weights", "[]", "committee.weights", "not offered by this version", "", ERROR_UNSUPPORTED },
    { "regions", "[]", "", "unknown field", "", ERROR_UNKNOWN },
    { "dataset.regions", "[]", "dataset.regions", "at least 1", "", ERROR_RANGE },
    { "dataset.regions", "[{\"name\":\"eu\",\"only\":[[0,16]]}]", "dataset.regions[0].only[0]", "16 shards count from 0", "",
      ERROR_RANGE },
    { "dataset.regions", "[{\"name\":\"eu\",\"prefer\":[[3,2]]}]", "dataset.regions[0].prefer[0]", "from 3 to 2", "",
      ERROR_RANGE },
    { "dataset.regions", "[{\"name\":\"eu\",\"only\":[[0,3],[3,4]]}]", "dataset.regions[0].only[1]", "spans ascend", "",
      ERROR_RANGE },
    { "dataset.regions", "[{\"name\":\"eu\"},{\"name\":\"eu\"}]", "dataset.regions[1].name", "the same name", "",
      ERROR_DUPLICATE },
    { "dataset.corpora", "[{\"name\":\"a\",\"licence\":\"b\",\"share\":\"1\",\"shards\":[4,16]}]", "dataset.corpora[0].shards",
      "", "", ERROR_RANGE },
    { "limits.batches", "0", "limits.batches", "between 1 and 4096", "", ERROR_RANGE },
    { "fragments", "2", "", "unknown field", "", ERROR_UNKNOWN },
    { "delay", "1", "delay", "not offered by this version", "", ERROR_UNSUPPORTED },
    { "amendable", "[]", "amendable", "", "", ERROR_RANGE },
    { "amendable", "[\"payment.per_round\"]", "amendable[0]", "", "", ERROR_UNKNOWN },
    { "payment.ledger", "\"evm\"", "payment.ledger", "not offered by this version", "", ERROR_UNSUPPORTED },
};

static void every_fault_is_told_with_its_path_and_what_is_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *spec = draft();

        set(spec, bad[i].path, bad[i].value);
        if (run_spec_check(spec, &err))
            fail_msg("%s = %s passed", bad[i].path, bad[i].value);
        if (strcmp(err.place, bad[i].place) != 0 || !strstr(err.message, bad[i].says) || !strstr(err.hint, bad[i].hint) ||
            err.code != bad[i].code)
            fail_msg("%s = %s: %s: %s (%s)", bad[i].path, bad[i].value, err.place, err.message, err.hint);
        json_decref(spec);
    }
}

/* Each machine is one chip: identities cost something without stake or list. */
static void admission_by_evidence_needs_neither_stake_nor_list(void **state)
{
    json_t *spec = draft(), *trust = json_object_get(spec, "trust"), *listed = json_incref(json_object_get(trust, "admission"));

    (void)state;
    json_object_set_new(trust, "admission", json_pack("{s:s}", "mode", "attested"));
    assert_true(run_spec_check(spec, &err));
    json_object_set_new(listed, "mode", json_string("attested"));
    json_object_set_new(trust, "admission", listed);
    assert_false(run_spec_check(spec, &err));
    assert_string_equal(err.message, "only an allow-list has such a field");
    json_decref(spec);
}

static void one_machine_in_two_seats_is_refused(void **state)
{
    json_t *spec = draft(), *panel = json_object_get(json_object_get(spec, "committee"), "panel");
    json_t *allowed = json_object_get(json_object_get(json_object_get(spec, "trust"), "admission"), "allowed");

    (void)state;
    json_array_set(allowed, 1, json_array_get(allowed, 0));
    assert_false(run_spec_check(spec, &err));
    assert_string_equal(err.place, "trust.admission.allowed[1]");
    json_array_set_new(allowed, 1, did_of(&syncers[0]));
    assert_false(run_spec_check(spec, &err));
    assert_string_equal(err.message, "a member of the panel cannot train");
    json_array_set_new(allowed, 1, did_of(&trainers[1]));
    json_object_set_new(json_array_get(panel, 3), "account", account_of(&syncers[1]));
    assert_false(run_spec_check(spec, &err));
    assert_string_equal(err.place, "committee.panel[3].account");
    json_decref(spec);
}

static void spec_signed_by_another_than_its_sponsor_is_refused(void **state)
{
    json_t *spec = draft();
    struct document run;
    struct run_spec out;

    (void)state;
    assert_false(document_make(DOCUMENT_RUN, spec, &sponsor.identity, &syncers[0].account, &run, &err));
    assert_int_equal(err.code, ERROR_SIGNATURE);
    json_object_set_new(spec, "account", account_of(&syncers[0]));
    assert_true(document_make(DOCUMENT_RUN, spec, &syncers[0].identity, &syncers[0].account, &run, &err));
    assert_false(run_spec_read(&run, &out, &err));
    assert_int_equal(err.code, ERROR_SIGNATURE);
    document_free(&run);
    json_decref(spec);
}

/* Section 11 of docs/protocol.md. */
static void committee_numbers_are_those_of_the_table(void **state)
{
    static const uint32_t table[][3] = { { 1, 1, 0 }, { 2, 2, 0 }, { 3, 2, 0 },   { 3, 3, 0 },
                                         { 4, 3, 1 }, { 7, 5, 2 }, { 32, 22, 10 } };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_int_equal(committee_faults(table[i][0], table[i][1]), table[i][2]);
    assert_int_equal(committee_default_threshold(1), 1);
    assert_int_equal(committee_default_threshold(3), 3);
    assert_int_equal(committee_default_threshold(4), 3);
    assert_int_equal(committee_default_threshold(7), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(completed_draft_is_signed_and_read_as_typed_fields),
        cmocka_unit_test(every_fault_is_told_with_its_path_and_what_is_allowed),
        cmocka_unit_test(admission_by_evidence_needs_neither_stake_nor_list),
        cmocka_unit_test(one_machine_in_two_seats_is_refused),
        cmocka_unit_test(spec_signed_by_another_than_its_sponsor_is_refused),
        cmocka_unit_test(committee_numbers_are_those_of_the_table),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, make_people, NULL);
}
