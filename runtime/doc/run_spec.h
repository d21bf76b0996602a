/* run_spec.h - the run spec: what a sponsor signs, and what every node enforces.
 *
 *     run file (Lua) -> JSON draft -> run_spec_complete (fallbacks) -> run_spec_check -> document `run`, its id is the run id
 *     document `run` -> run_spec_read -> struct run_spec
 *
 * The signed bytes hold every field, fallbacks included: no node has to know what a later version takes for granted.
 * Fractions are kept in billionths (decimal.h). What later versions will offer is refused here by name.
 */
#ifndef RONDO_DOC_RUN_SPEC_H
#define RONDO_DOC_RUN_SPEC_H

#include "native/base/decimal.h"
#include "runtime/crypto/release.h"
#include "runtime/doc/documents.h"
#include "runtime/doc/run_spec_schema.h"

struct spec_script {
    struct hash cid;
    json_t *options; /* borrowed: an object */
};

struct spec_import {
    const char *name; /* borrowed */
    struct hash cid;
};

struct spec_member {
    struct public_key did;
    struct address account;
};

struct run_spec {
    json_t *json; /* owned: the whole payload; what is borrowed below points into it */
    struct hash id;

    const char *name;
    uint8_t nonce[16];
    struct public_key sponsor;
    struct address account;
    const char *modality; /* "language" */
    struct hash base_model;
    struct spec_script model, objective, inner, outer, schedule;
    struct spec_script reward; /* of runs on rollouts: `rewarded` */
    bool rewarded;
    struct hash reference; /* manifest of the model or adapter that it, or a run on pairs, measures from: `referenced` */
    bool referenced;
    const char *chat_template; /* "model": the one in base_model; else the text of a CID */
    struct {
        const char *kind; /* "lora", "dora"; "none": every weight is trained, the rest is 0 and NULL */
        uint32_t rank, alpha;
        const json_t *targets; /* "all-linear", or a list of ends of modules' names; borrowed */
        bool continued;        /* from `start`: a manifest like that of base_model, of a PEFT folder */
        struct hash start;
    } adapter;
    struct spec_script aggregators[SPEC_AGGREGATORS]; /* applied in this order */
    size_t aggregator_count;
    struct spec_import imports[SPEC_IMPORTS];
    size_t import_count;
    uint32_t rounds, batch_tokens;
    struct {
        struct hash manifest;
        uint32_t shards;
        json_t *corpora; /* borrowed: a list */
    } dataset;
    struct {
        const char *tier;      /* "open", "known", "replicated" */
        uint32_t replicas;     /* machines that get the same shards */
        const char *admission; /* "allow-list" */
        struct public_key allowed[SPEC_TRAINERS];
        size_t allowed_count;
        int64_t spot_check; /* billionths of the accepted contributions */
        uint32_t challenge_rounds, answer_rounds;
        bool rollback; /* correction: "rollback", else "refold" */
    } trust;
    const char *kernel_class;
    uint32_t seed_lead;
    struct {
        uint32_t trainers;
        int64_t round_ms, close_ms;
        uint32_t drop_after;
        int64_t grace_factor; /* billionths */
        int64_t grace_min_ms, grace_max_ms;
    } quorum;
    struct {
        uint32_t size, threshold;
        int64_t view_ms, settle_ms;
        struct spec_member panel[SPEC_PANEL];
        size_t panel_count;
        uint32_t release_threshold;
    } committee;
    struct {
        const char *ledger; /* "local" */
        uint64_t chain;
        int64_t block_ms;
        struct address contract;
        const char *asset;
        unsigned __int128 budget, per_round;
        int64_t trainers, syncers; /* billionths of per_round; together at most DECIMAL_ONE */
        uint32_t expiry_rounds;
    } payment;
    struct {
        int64_t script_memory, script_seconds, payload_bytes;
        uint32_t trainers, batches; /* batches: most that a trainer may state for a step; 0: all do one */
    } limits;
};

/* Whether a completed spec (version and signer may be absent) is one this version runs. Errors name the field's path. */
bool run_spec_check(const json_t *spec, struct error *err);

/* Fills `out` from a `run` document. Checks again: documents come from outside. */
bool run_spec_read(const struct document *run, struct run_spec *out, struct error *err);
void run_spec_free(struct run_spec *spec);

/* W + D: records after which a round is settled at the latest (protocol.md, section 9). */
uint32_t run_spec_settles_after(const struct run_spec *spec);

/* Faults a committee of n with quorum q tolerates in every respect: f = min(2q - n - 1, n - q); t = f + 1. */
uint32_t committee_faults(uint32_t n, uint32_t q);
/* The quorum when fewer than `size` members are left, and of the round `open`: n - floor((n - 1) / 3). */
uint32_t committee_default_threshold(uint32_t n);

#endif
