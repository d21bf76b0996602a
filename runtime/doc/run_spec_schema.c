#include "runtime/doc/run_spec_schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/decimal.h"
#include "runtime/doc/document_fields.h"

/* ---- Tables ------------------------------------------------------------------------------------------------------------- */

#define DAY_MS 86400000

static const struct schema_field script_fields[] = {
    FIELD("script", CID),
    { "options", SCHEMA_OBJECT, .fallback = "{}" },
};
static const struct schema script = SCHEMA(script_fields);
static const struct schema_field a_script = FIELD("", OBJECT, .of = &script);

static const char *const adapters[] = { "lora", "dora", "none", NULL };
static const char *const scalings[] = { "root", NULL };
static const struct schema_field adapter_fields[] = {
    FIELD("kind", CHOICE, .choices = adapters),
    FIELD("rank", INTEGER, .least = 1, .most = 1024, .optional = true),
    FIELD("alpha", INTEGER, .least = 1, .most = 65536, .optional = true),
    FIELD("scaling", CHOICE, .choices = scalings, .optional = true),
    FIELD("targets", ANY, .optional = true),
    FIELD("start", CID, .optional = true),
    FIELD("rank_pattern", ANY, .optional = true),
    FIELD("alpha_pattern", ANY, .optional = true),
    FIELD("modules_to_save", ANY, .optional = true),
    FIELD("loraplus_lr_ratio", DECIMAL, .least = INT64_C(1), .most = INT64_C(1000) * DECIMAL_ONE, .optional = true),
};
static const struct schema adapter = SCHEMA(adapter_fields);

static const struct schema_field a_shard = FIELD("", INTEGER, .most = 1 << 20);
static const struct schema_field corpus_fields[] = {
    FIELD("name", TEXT, .least = 1, .most = 128),
    FIELD("licence", TEXT, .least = 1, .most = 128),
    FIELD("share", DECIMAL, .most = DECIMAL_ONE),
    FIELD("shards", LIST, .item = &a_shard, .least = 2, .most = 2, .optional = true),
};
static const struct schema corpus = SCHEMA(corpus_fields);
static const struct schema_field a_corpus = FIELD("", OBJECT, .of = &corpus);
static const struct schema_field a_span = FIELD("", LIST, .item = &a_shard, .least = 2, .most = 2);
static const struct schema_field region_fields[] = {
    FIELD("name", TEXT, .least = 1, .most = 32),
    FIELD("only", LIST, .item = &a_span, .least = 1, .most = 64, .optional = true),
    FIELD("prefer", LIST, .item = &a_span, .least = 1, .most = 64, .optional = true),
};
static const struct schema region = SCHEMA(region_fields);
static const struct schema_field a_region = FIELD("", OBJECT, .of = &region);
static const struct schema_field dataset_fields[] = {
    FIELD("manifest", CID),
    FIELD("shards", INTEGER, .least = 1, .most = 1 << 20),
    FIELD("sealed", CID, .nullable = true, .fallback = "null"),
    FIELD("corpora", LIST, .item = &a_corpus, .least = 1, .most = 256),
    FIELD("regions", LIST, .item = &a_region, .least = 1, .most = SPEC_REGIONS, .optional = true),
};
static const struct schema dataset = SCHEMA(dataset_fields);

static const char *const tiers[] = { "open", "known", "replicated", NULL };
static const char *const admissions[] = { "open", "stake", "allow-list", "attested", NULL };
static const char *const corrections[] = { "refold", "rollback", NULL };
static const struct schema_field a_did = FIELD("", DID);
static const struct schema_field admission_fields[] = {
    FIELD("mode", CHOICE, .choices = admissions),
    FIELD("allowed", LIST, .item = &a_did, .least = 1, .most = SPEC_TRAINERS, .optional = true),
};
static const struct schema admission = SCHEMA(admission_fields);
static const struct schema_field trust_fields[] = {
    FIELD("tier", CHOICE, .choices = tiers),
    FIELD("admission", OBJECT, .of = &admission),
    FIELD("replicas", INTEGER, .least = 1, .most = 16, .fallback = "1"),
    FIELD("spot_check", DECIMAL, .most = DECIMAL_ONE, .fallback = "\"0.1\""),
    FIELD("challenge_rounds", INTEGER, .least = 2, .most = 100, .fallback = "2"),
    FIELD("answer_rounds", INTEGER, .least = 1, .most = 100, .fallback = "1"),
    FIELD("deposit", AMOUNT, .fallback = "\"0\""),
    FIELD("stake", AMOUNT, .optional = true),
    FIELD("checkpoint_every", INTEGER, .least = 1, .most = 1 << 20, .fallback = "1"),
    FIELD("correction", CHOICE, .choices = corrections, .fallback = "\"refold\""),
};
static const struct schema trust = SCHEMA(trust_fields);

static const struct schema_field grace_fields[] = {
    FIELD("factor", DECIMAL, .most = 1000ll * DECIMAL_ONE, .fallback = "\"3\""),
    FIELD("min_ms", INTEGER, .least = 1, .most = DAY_MS),
    FIELD("max_ms", INTEGER, .least = 1, .most = DAY_MS),
};
static const struct schema grace = SCHEMA(grace_fields);
static const struct schema_field quorum_fields[] = {
    FIELD("trainers", INTEGER, .least = 1, .most = SPEC_TRAINERS),
    FIELD("round_ms", INTEGER, .least = 1, .most = 30ll * DAY_MS),
    FIELD("close_ms", INTEGER, .least = 1, .most = DAY_MS, .fallback = "2000"),
    FIELD("drop_after", INTEGER, .least = 1, .most = 1000000, .fallback = "3"),
    FIELD("grace", OBJECT, .of = &grace),
};
static const struct schema quorum = SCHEMA(quorum_fields);

static const struct schema_field member_fields[] = {
    FIELD("did", DID),
    FIELD("account", ADDRESS),
    FIELD("weight", INTEGER, .least = 1, .most = 1000000, .optional = true),
};
static const struct schema member = SCHEMA(member_fields);
static const struct schema_field a_member = FIELD("", OBJECT, .of = &member);
static const struct schema_field committee_fields[] = {
    FIELD("size", INTEGER, .least = 1, .most = SPEC_PANEL),
    FIELD("threshold", INTEGER, .least = 1, .most = SPEC_PANEL),
    FIELD("view_ms", INTEGER, .least = 1, .most = DAY_MS, .fallback = "5000"),
    FIELD("settle_ms", INTEGER, .least = 0, .most = DAY_MS, .fallback = "1000"),
    FIELD("panel", LIST, .item = &a_member, .least = 1, .most = SPEC_PANEL),
    FIELD("release_threshold", INTEGER, .least = 1, .most = SPEC_PANEL),
};
static const struct schema committee = SCHEMA(committee_fields);

static const char *const bases[] = { "accepted", NULL };
static const char *const ledgers[] = { "local", NULL };
static const struct schema_field terms_fields[] = {
    FIELD("trainers", DECIMAL, .most = DECIMAL_ONE),
    FIELD("syncers", DECIMAL, .most = DECIMAL_ONE),
    FIELD("basis", CHOICE, .choices = bases, .fallback = "\"accepted\""),
};
static const struct schema terms = SCHEMA(terms_fields);
static const struct schema_field payment_fields[] = {
    FIELD("ledger", CHOICE, .choices = ledgers),
    FIELD("chain", INTEGER, .least = 1),
    FIELD("block_ms", INTEGER, .least = 1, .most = DAY_MS),
    FIELD("contract", ADDRESS),
    FIELD("asset", TEXT, .least = 1, .most = 64),
    FIELD("budget", AMOUNT),
    FIELD("per_round", AMOUNT),
    FIELD("terms", OBJECT, .of = &terms),
    FIELD("expiry_rounds", INTEGER, .least = 1, .most = 1000000, .fallback = "20"),
};
static const struct schema payment = SCHEMA(payment_fields);

static const struct schema_field limits_fields[] = {
    FIELD("script_memory", INTEGER, .least = 1 << 20, .most = 4ll << 30, .fallback = "268435456"),
    FIELD("script_seconds", INTEGER, .least = 1, .most = 86400, .fallback = "600"),
    FIELD("payload_bytes", INTEGER, .least = 1024, .most = 16ll << 30, .fallback = "67108864"),
    FIELD("trainers", INTEGER, .least = 1, .most = SPEC_TRAINERS, .fallback = "60"),
    FIELD("batches", INTEGER, .least = 1, .most = 4096, .optional = true),
};
static const struct schema limits = SCHEMA(limits_fields);

static const char *const amendments[] = { "end", "pause", "quorum.trainers", "trust.spot_check", NULL };
static const struct schema_field an_amendable = FIELD("", CHOICE, .choices = amendments);
static const char *const packings[] = { "segments", NULL };
static const char *const modalities[] = { "language", "vision", "time-series", NULL };
static const char *const kernel_classes[] = { "portable-f32-1", NULL };
static const struct schema_field spec_fields[] = {
    FIELD("version", INTEGER, .least = 1, .most = 1),
    FIELD("signer", DID),
    FIELD("name", TEXT, .least = 1, .most = 64),
    FIELD("nonce", HEX, .most = 16),
    FIELD("sponsor", DID),
    FIELD("account", ADDRESS),
    FIELD("modality", CHOICE, .choices = modalities, .fallback = "\"language\""),
    FIELD("base_model", CID),
    FIELD("model", OBJECT, .of = &script),
    FIELD("chat_template", TEXT, .least = 1, .most = 64, .fallback = "\"model\""),
    FIELD("template_date", TEXT, .least = 10, .most = 10, .optional = true),
    FIELD("parse_special", FLAG, .optional = true),
    FIELD("adapter", OBJECT, .of = &adapter),
    FIELD("objective", OBJECT, .of = &script),
    FIELD("reward", OBJECT, .of = &script, .optional = true),
    FIELD("reference", CID, .optional = true),
    FIELD("inner", OBJECT, .of = &script),
    FIELD("outer", OBJECT, .of = &script),
    FIELD("aggregators", LIST, .item = &a_script, .least = 1, .most = SPEC_AGGREGATORS),
    FIELD("schedule", OBJECT, .of = &script),
    { "imports", SCHEMA_OBJECT, .fallback = "{}" },
    FIELD("rounds", INTEGER, .least = 1, .most = 1000000),
    FIELD("batch_tokens", INTEGER, .least = 1, .most = 1 << 24),
    FIELD("context", INTEGER, .least = 8, .most = 1 << 20, .fallback = "1024"),
    FIELD("packing", CHOICE, .choices = packings, .optional = true),
    FIELD("coalesce", FLAG, .optional = true),
    FIELD("surround", FLAG, .optional = true),
    FIELD("amendable", LIST, .item = &an_amendable, .least = 1, .most = 4, .optional = true),
    FIELD("dataset", OBJECT, .of = &dataset),
    FIELD("trust", OBJECT, .of = &trust),
    FIELD("kernel_class", CHOICE, .choices = kernel_classes, .fallback = "\"portable-f32-1\""),
    FIELD("seed_lead", INTEGER, .least = 1, .most = 1000000),
    FIELD("quorum", OBJECT, .of = &quorum),
    FIELD("committee", OBJECT, .of = &committee),
    FIELD("payment", OBJECT, .of = &payment),
    { "limits", SCHEMA_OBJECT, .of = &limits, .fallback = "{}" },
};
static const struct schema spec_schema = SCHEMA(spec_fields);

const struct schema *run_spec_schema(void)
{
    return &spec_schema;
}

/* ---- Completing a draft ---------------------------------------------------------------------------------------------------- */

/* The shortest text with at most nine places that is this number; NULL when there is none. */
static json_t *decimal_of(double value)
{
    char text[64];

    if (!isfinite(value) || fabs(value) >= 1e9)
        return NULL;
    for (int places = 0; places <= 9; places++) {
        snprintf(text, sizeof text, "%.*f", places, value);
        if (strtod(text, NULL) == value)
            return json_string(strcmp(text, "-0") == 0 ? "0" : text);
    }
    return NULL;
}

/* Real numbers everywhere: Lua has no others. What has no decimal text stays, and is refused with its path. */
static void reals_to_text(json_t *value)
{
    const char *name;
    json_t *inner, *text;
    size_t i;

    json_object_foreach(value, name, inner)
    {
        if (json_is_real(inner) && (text = decimal_of(json_real_value(inner))))
            json_object_set_new(value, name, text);
        else
            reals_to_text(inner);
    }
    json_array_foreach(value, i, inner)
    {
        if (json_is_real(inner) && (text = decimal_of(json_real_value(inner))))
            json_array_set_new(value, i, text);
        else
            reals_to_text(inner);
    }
}

/* `"factor": 3` where the table says a decimal or an amount. */
static void integers_to_text(const struct schema *schema, json_t *object)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct schema_field *field = &schema->fields[i];
        json_t *value = json_object_get(object, field->name);
        const struct schema *of = field->kind == SCHEMA_LIST ? field->item->of : field->of;
        char text[32];

        if ((field->kind == SCHEMA_DECIMAL || field->kind == SCHEMA_AMOUNT) && json_is_integer(value)) {
            snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
            json_object_set_new(object, field->name, json_string(text));
        } else if (of && json_is_object(value)) {
            integers_to_text(of, value);
        } else if (of) {
            for (size_t j = 0; j < json_array_size(value); j++)
                integers_to_text(of, json_array_get(value, j));
        }
    }
}

void run_spec_complete(json_t *draft)
{
    json_t *kind = json_object_get(draft, "adapter");

    reals_to_text(draft);
    integers_to_text(&spec_schema, draft);
    schema_complete(&spec_schema, draft);
    if (json_is_string(json_object_get(kind, "kind")) && strcmp(document_text(kind, "kind"), "none") != 0 &&
        !json_object_get(kind, "targets"))
        json_object_set_new(kind, "targets", json_string("all-linear"));
}
