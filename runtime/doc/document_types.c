#include "runtime/doc/document_types.h"

#include <stdint.h>
#include <string.h>

#include "runtime/doc/run_spec_schema.h"

#define ROUNDS 10000000

/* Every envelope's payload begins with these. */
#define SIGNED     FIELD("version", INTEGER, .least = 1, .most = 1), FIELD("signer", DID)
#define BARE(name) FIELD("version", INTEGER, .least = 1, .most = 1), FIELD("type", CHOICE, .choices = name)
#define OF_RUN     FIELD("run", CID)
#define OF_ROUND   OF_RUN, FIELD("round", INTEGER, .most = ROUNDS)

static const struct schema_field any = { .kind = SCHEMA_ANY };
static const struct schema_field a_cid = { .kind = SCHEMA_CID };
static const struct schema_field a_did = { .kind = SCHEMA_DID };
static const struct schema_field a_float = { .kind = SCHEMA_FLOAT };
static const struct schema_field an_envelope = { .kind = SCHEMA_OBJECT };

static const struct schema_field identity_fields[] = {
    SIGNED,
    FIELD("account", ADDRESS),
    FIELD("previous", CID, .nullable = true),
};

static const char *const roles[] = { "trainer", "syncer", "auditor", NULL };
static const struct schema_field capacity_fields[] = {
    FIELD("memory", INTEGER),
    FIELD("threads", INTEGER, .least = 1, .most = 65536),
    FIELD("devices", INTEGER, .most = 65536),
    FIELD("batches", INTEGER, .least = 1, .most = 65536, .optional = true),
};
static const struct schema capacity = SCHEMA(capacity_fields);
/* Base64 of a report of 1184 bytes and of certificates of 2049 at most: a longer one is none that is known (runtime/attest/attest.h). */
static const struct schema_field a_certificate = { .kind = SCHEMA_TEXT, .least = 4, .most = 2732 };
static const struct schema_field evidence_fields[] = {
    FIELD("kind", TEXT, .least = 1, .most = 16),
    FIELD("report", TEXT, .least = 4, .most = 1580),
    FIELD("certificates", LIST, .item = &a_certificate, .least = 1, .most = 3),
};
static const struct schema evidence = SCHEMA(evidence_fields);
static const struct schema_field enrolment_fields[] = {
    SIGNED,
    OF_RUN,
    FIELD("round", INTEGER, .most = ROUNDS, .optional = true),
    FIELD("role", CHOICE, .choices = roles),
    FIELD("account", ADDRESS),
    FIELD("identity", CID, .optional = true, .nullable = true),
    FIELD("kernel_class", HEX, .most = 32),
    FIELD("capacity", OBJECT, .of = &capacity),
    FIELD("endpoint", TEXT, .most = 256, .nullable = true),
    FIELD("serial", INTEGER, .most = 1000000000, .optional = true),
    FIELD("fingerprint", HEX, .most = 32, .optional = true, .nullable = true),
    FIELD("nonce", HEX, .most = 16, .optional = true),
    FIELD("region", TEXT, .least = 1, .most = 32, .optional = true),
    FIELD("account_signature", HEX, .most = 65, .optional = true),
    FIELD("evidence", OBJECT, .of = &evidence, .optional = true),
};

static const struct schema_field leave_fields[] = {
    SIGNED,
    OF_RUN,
    FIELD("round", INTEGER, .most = ROUNDS, .optional = true),
};

static const struct schema_field probe_fields[] = {
    FIELD("step", INTEGER),
    FIELD("loss", FLOAT),
    FIELD("values", LIST, .item = &a_float, .most = 256),
};
static const struct schema probe = SCHEMA(probe_fields);
static const struct schema_field a_probe = { .kind = SCHEMA_OBJECT, .of = &probe };
static const struct schema_field codec_fields[] = {
    FIELD("bits", INTEGER, .least = 1, .most = 32),
    FIELD("block", INTEGER, .least = 1, .most = 1 << 20),
    FIELD("keep", INTEGER, .least = 1, .most = 4096, .optional = true),
    FIELD("of", INTEGER, .least = 2, .most = 4096, .optional = true),
    FIELD("tile", INTEGER, .least = 2, .most = 256, .optional = true),
};
static const struct schema codec = SCHEMA(codec_fields);
static const struct schema_field contribution_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("fragment", INTEGER, .most = 65535, .optional = true, .nullable = true),
    FIELD("start", HEX, .most = 32),
    FIELD("end", HEX, .most = 32),
    FIELD("carry_in", HEX, .most = 32),
    FIELD("carry_out", HEX, .most = 32),
    FIELD("carry", CID, .optional = true),
    FIELD("body", HEX, .most = 32),
    FIELD("payload", CID),
    FIELD("payload_bytes", INTEGER, .least = 1),
    FIELD("codec", OBJECT, .of = &codec),
    FIELD("tokens", INTEGER),
    FIELD("steps", INTEGER, .least = 1, .most = 1 << 24),
    FIELD("loss", FLOAT),
    FIELD("probes", LIST, .item = &a_probe, .most = 4096),
    FIELD("step_log", CID),
    FIELD("salt", HEX, .most = 32, .optional = true),
};

static const struct schema_field commitment_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("digest", HEX, .most = 32),
};

static const struct schema_field closed_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("commitments", LIST, .item = &a_cid, .most = 4096),
};

static const struct schema_field head_fields[] = {
    FIELD("height", INTEGER),
    FIELD("time", INTEGER),
};
static const struct schema head = SCHEMA(head_fields);
static const struct schema_field item_fields[] = {
    FIELD("cid", CID),
    FIELD("code", TEXT, .least = 1, .most = 32),
    FIELD("ms", INTEGER),
};
static const struct schema item = SCHEMA(item_fields);
static const struct schema_field an_item = { .kind = SCHEMA_OBJECT, .of = &item };

static const char *const phases[] = { "prepare", "commit", NULL };
static const struct schema_field vote_fields[] = {
    SIGNED, OF_ROUND, FIELD("view", INTEGER, .most = UINT32_MAX), FIELD("phase", CHOICE, .choices = phases), FIELD("record", CID),
};

static const char *const certificate_type[] = { "certificate", NULL };
static const struct schema_field certificate_fields[] = {
    BARE(certificate_type),
    OF_ROUND,
    FIELD("view", INTEGER, .most = UINT32_MAX),
    FIELD("phase", CHOICE, .choices = phases),
    FIELD("record", CID),
    FIELD("votes", LIST, .item = &an_envelope, .least = 1, .most = 1000),
};
static const struct schema certificate = SCHEMA(certificate_fields);

static const struct schema_field received_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("view", INTEGER, .most = UINT32_MAX),
    FIELD("head", OBJECT, .of = &head),
    FIELD("funded", INTEGER),
    FIELD("items", LIST, .item = &an_item, .most = 4096),
    FIELD("checked", LIST, .item = &a_cid, .most = 4096),
    FIELD("lock", OBJECT, .of = &certificate, .nullable = true),
};

static const struct schema_field proposal_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("view", INTEGER, .most = UINT32_MAX),
    FIELD("record", CID),
    FIELD("justification", OBJECT, .of = &certificate, .nullable = true),
};

/* The parts of a record are checked by recomputing it (record_of); here only what a reader relies on before that. */
static const char *const kinds[] = { "open", "train", "skip", "close", NULL };
static const struct schema_field block_fields[] = {
    FIELD("height", INTEGER),
    FIELD("hash", HEX, .most = 32),
    FIELD("entropy", HEX, .most = 32),
};
static const struct schema block = SCHEMA(block_fields);
static const char *const record_type[] = { "record", NULL };
static const struct schema_field record_fields[] = {
    BARE(record_type),
    OF_ROUND,
    FIELD("kind", CHOICE, .choices = kinds),
    FIELD("reason", TEXT, .most = 64, .optional = true, .nullable = true),
    FIELD("previous", CID, .nullable = true),
    FIELD("seed", HEX, .most = 32, .nullable = true),
    FIELD("block", OBJECT, .of = &block, .nullable = true),
    FIELD("committee", LIST, .item = &a_did, .least = 1, .most = 1000),
    FIELD("received", LIST, .item = &a_cid, .least = 1, .most = 1000),
    FIELD("height", INTEGER),
    FIELD("time", INTEGER),
    FIELD("funded", INTEGER),
    FIELD("next_height", INTEGER),
    FIELD("start", ANY),
    FIELD("contributions", LIST, .item = &any),
    FIELD("items", LIST, .item = &any),
    FIELD("plan", ANY),
    FIELD("aggregate", ANY),
    FIELD("outer", ANY),
    FIELD("state", ANY),
    FIELD("telemetry", ANY),
    FIELD("members", LIST, .item = &any),
    FIELD("unreturned", LIST, .item = &any),
    FIELD("undealt", LIST, .item = &any, .optional = true),
    FIELD("arrivals", LIST, .item = &any),
    FIELD("grace_ms", INTEGER),
    FIELD("unsettled", LIST, .item = &any),
    FIELD("correct", INTEGER),
    FIELD("convicted", LIST, .item = &any),
    FIELD("barred", LIST, .item = &a_did),
    FIELD("disputes", LIST, .item = &any),
    FIELD("openings", LIST, .item = &any, .optional = true),
    FIELD("settled", LIST, .item = &any),
    FIELD("amendments", LIST, .item = &any, .optional = true),
    FIELD("deposits", LIST, .item = &any, .optional = true),
    FIELD("returned", LIST, .item = &any, .optional = true),
};

static const struct schema_field challenge_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("contribution", CID),
    FIELD("index", INTEGER, .most = 1 << 24),
};

static const struct schema_field opening_fields[] = {
    SIGNED, OF_ROUND, FIELD("contribution", CID), FIELD("index", INTEGER, .most = 1 << 24), FIELD("trace", CID),
};

static const struct schema_field pick_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("contribution", CID),
    FIELD("index", INTEGER, .most = 1 << 24),
    FIELD("trace", CID),
    FIELD("evidence", CID),
};

/* What may be changed, and to what, the round machines know (runtime/round/amendment.h). */
static const struct schema_field amendment_fields[] = {
    SIGNED,
    OF_RUN,
    FIELD("number", INTEGER, .least = 1, .most = 1000000),
    FIELD("from", INTEGER, .least = 1, .most = ROUNDS),
    FIELD("changes", OBJECT),
};

static const struct schema_field equivocation_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("did", DID),
    FIELD("statements", LIST, .item = &an_envelope, .least = 2, .most = 2),
};

static const struct {
    const char *name;
    struct schema schema;
    bool bare, with_account; /* signed by nobody; also signed by the account in its field `account` */
} types[DOCUMENT_TYPES] = {
    [DOCUMENT_IDENTITY] = { .name = "identity", .schema = SCHEMA(identity_fields), .with_account = true },
    [DOCUMENT_RUN] = { .name = "run", .with_account = true },
    [DOCUMENT_ENROLMENT] = { .name = "enrolment", .schema = SCHEMA(enrolment_fields) },
    [DOCUMENT_LEAVE] = { .name = "leave", .schema = SCHEMA(leave_fields) },
    [DOCUMENT_CONTRIBUTION] = { .name = "contribution", .schema = SCHEMA(contribution_fields) },
    [DOCUMENT_COMMITMENT] = { .name = "commitment", .schema = SCHEMA(commitment_fields) },
    [DOCUMENT_CLOSED] = { .name = "closed", .schema = SCHEMA(closed_fields) },
    [DOCUMENT_RECEIVED] = { .name = "received", .schema = SCHEMA(received_fields) },
    [DOCUMENT_PROPOSAL] = { .name = "proposal", .schema = SCHEMA(proposal_fields) },
    [DOCUMENT_VOTE] = { .name = "vote", .schema = SCHEMA(vote_fields) },
    [DOCUMENT_CERTIFICATE] = { .name = "certificate", .schema = SCHEMA(certificate_fields), .bare = true },
    [DOCUMENT_RECORD] = { .name = "record", .schema = SCHEMA(record_fields), .bare = true },
    [DOCUMENT_CHALLENGE] = { .name = "challenge", .schema = SCHEMA(challenge_fields) },
    [DOCUMENT_OPENING] = { .name = "opening", .schema = SCHEMA(opening_fields) },
    [DOCUMENT_AMENDMENT] = { .name = "amendment", .schema = SCHEMA(amendment_fields) },
    [DOCUMENT_PICK] = { .name = "pick", .schema = SCHEMA(pick_fields) },
    [DOCUMENT_EQUIVOCATION] = { .name = "equivocation", .schema = SCHEMA(equivocation_fields) },
};

const char *document_type_name(enum document_type type)
{
    return types[type].name;
}

bool document_type_parse(const char *name, enum document_type *out)
{
    for (size_t i = 0; i < DOCUMENT_TYPES; i++)
        if (strcmp(name, types[i].name) == 0) {
            *out = (enum document_type)i;
            return true;
        }
    return false;
}

const struct schema *document_schema(enum document_type type)
{
    return type == DOCUMENT_RUN ? run_spec_schema() : &types[type].schema;
}

bool document_type_is_bare(enum document_type type)
{
    return types[type].bare;
}

bool document_type_has_account(enum document_type type)
{
    return types[type].with_account;
}
