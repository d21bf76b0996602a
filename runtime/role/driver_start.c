#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/hex.h"
#include "native/base/json.h"
#include "native/base/memory_limit.h"
#include "native/kernel/class.h"
#include "runtime/attest/attest.h"
#include "runtime/net/tls.h"
#include "runtime/role/course_needs.h"
#include "runtime/role/driver_internal.h"
#include "runtime/round/claim.h"
#include "runtime/round/regions.h"
#include "runtime/round/value.h"

enum { PREPARE_MS = 600000, ENROLMENT_NONCE = 16 };

/* --- the own enrolment ------------------------------------------------------------------------------------------------ */

json_t *driver_own_enrolment(const struct driver *d)
{
    return json_object_get(json_object_get(d->course->enrolments, d->node->did), "payload");
}

static const char *nonce_name(const struct driver *d, char name[CID_TEXT + 16])
{
    char run[CID_TEXT];

    snprintf(name, CID_TEXT + 16, "own/enrolment/%s", cid_text(d->course->id, run));
    return name;
}

/* The folder saved a round of this run, or made this enrolment and stopped before that: then it is not one that may have forgotten what its
 * key signed. */
static bool is_of_folder(const struct driver *d, const json_t *enrolment)
{
    struct buffer text = { 0 }, nonce = { 0 };
    struct error none = { 0 };
    uint32_t round, view;
    char name[CID_TEXT + 16];
    const char *said = document_text(enrolment, "nonce");
    bool found = journal_load_round(d->node->journal, d->course->id, &round, &view, &text, &none) ||
                 (journal_get_note(d->node->journal, nonce_name(d, name), &nonce, &none) && said &&
                  strcmp(buffer_text(&nonce), said) == 0);

    buffer_free(&text);
    buffer_free(&nonce);
    return found;
}

/* What tells a member's enrolment from those that its key made in other folders (member.h). */
static bool add_nonce(struct driver *d, json_t *fields, struct error *err)
{
    uint8_t bytes[ENROLMENT_NONCE];
    char digits[2 * ENROLMENT_NONCE + 1], name[CID_TEXT + 16];

    if (!d->is_member)
        return true;
    randombytes_buf(bytes, sizeof bytes);
    hex_encode(bytes, sizeof bytes, digits);
    json_object_set_new(fields, "nonce", json_string(digits));
    return journal_put_note(d->node->journal, nonce_name(d, name), digits, strlen(digits), err);
}

/* What it states of the batches that it takes in a step: as many as it may, 0 for none. */
static int64_t batches_of(const struct driver *d)
{
    int64_t most = d->course->rules.batches, wanted = d->node->options.batches;

    if (strcmp(d->node->role, "trainer") != 0 || wanted < 2)
        return 0;
    return wanted < most ? wanted : most;
}

static const char *region_of(const struct driver *d)
{
    const char *region = d->node->options.region;
    const bool here = region && strcmp(d->node->role, "trainer") == 0 && d->course->rules.regions;

    if (here && !regions_bit(d->course->rules.regions, region))
        node_tell(d->node, "region", json_pack("{s:s, s:s}", "region", region, "code", "not one of the run's"));
    return here && regions_bit(d->course->rules.regions, region) ? region : "";
}

/* Its account's word that this machine works for it, where groups are made by accounts; "" elsewhere. */
static const char *claim_of(const struct driver *d, char text[CLAIM_TEXT])
{
    char run[CID_TEXT];

    *text = 0;
    if (strcmp(d->node->role, "trainer") == 0 && d->course->rules.replicas > 1)
        claim_sign(&d->node->keys.account, cid_text(d->course->id, run), d->node->did, text);
    return text;
}

/* What it shows of its hardware: what the file holds, else what its last enrolment showed; NULL: nothing. It is looked at here as everybody
 * will, so that its operator learns what is wrong with it. New reference. */
static bool read_evidence(const struct driver *d, const json_t *have, json_t **out, struct error *err)
{
    const struct node *node = d->node;
    const char *path = node->options.evidence;
    struct attest_machine machine;

    *out = path ? json_read_file(path, ATTEST_FILE, err) : json_incref(json_object_get(have, "evidence"));
    if (!*out && !path && d->course->rules.attested && strcmp(node->role, "syncer") != 0)
        return error_set(err, ERROR_MISSING, "rondo attest data prints what to ask the machine for; then --evidence FILE",
                         "the run takes only machines that show evidence of their hardware");
    if (!path || (*out && attest_verify(d->course->rules.roots, *out, &machine, err) &&
                  attest_is_for(&machine, d->course->run, node->did, err)))
        return true;
    json_decref(*out);
    *out = NULL;
    return error_at(err, "%s", path);
}

bool driver_enrol(struct driver *d, struct error *err)
{
    const struct node *node = d->node;
    char run[CID_TEXT], digest[HASH_TEXT], account[ADDRESS_TEXT];
    json_t *have = driver_own_enrolment(d);
    struct document document = { 0 };
    struct hash class_digest;

    kernel_class_digest(class_digest.bytes);
    hash_hex(class_digest, digest);
    const char *told = course_endpoint(d->course, node->did), *endpoint = node_endpoint(node);
    uint8_t fingerprint[TLS_FINGERPRINT];
    char digits[2 * TLS_FINGERPRINT + 1];
    size_t length;
    bool pinned;

    json_t *evidence;

    if (!tls_pin_split(endpoint, &length, &pinned, fingerprint, err) || !read_evidence(d, have, &evidence, err))
        return false;
    int64_t batches = batches_of(d);
    char signature[CLAIM_TEXT];
    const char *region = region_of(d), *claim = claim_of(d, signature);

    if (have && strcmp(told ? told : "", endpoint) == 0 && strcmp(document_text(have, "kernel_class"), digest) == 0 &&
        document_integer(json_object_get(have, "capacity"), "batches") == batches && value_is(have, "region", region) &&
        value_is(have, "account_signature", claim) && (!d->is_member || is_of_folder(d, have)) &&
        (!evidence || json_equal(json_object_get(have, "evidence"), evidence))) {
        json_decref(evidence);
        d->enrolment = json_incref(json_object_get(json_object_get(d->course->enrolments, node->did), "envelope"));
        return true;
    }
    json_t *fields =
        json_pack("{s:s, s:s, s:s, s:s, s:s%, s:I, s:{s:I, s:I, s:I}}", "run", cid_text(d->course->id, run), "role", node->role,
                  "account", address_text(node->account, account), "kernel_class", digest, "endpoint", endpoint, length, "serial",
                  have ? document_integer(have, "serial") + 1 : (json_int_t)0, "capacity", "memory", (json_int_t)memory_limit(),
                  "threads", (json_int_t)(node->options.threads ? node->options.threads : 1), "devices", (json_int_t)0);
    if (!length)
        json_object_set_new(fields, "endpoint", json_null());
    if (batches)
        json_object_set_new(json_object_get(fields, "capacity"), "batches", json_integer(batches));
    if (*region)
        json_object_set_new(fields, "region", json_string(region));
    if (*claim)
        json_object_set_new(fields, "account_signature", json_string(claim));
    if (evidence)
        json_object_set_new(fields, "evidence", evidence);
    if (pinned)
        json_object_set_new(fields, "fingerprint", json_string(hex_encode(fingerprint, sizeof fingerprint, digits)));

    bool ok = add_nonce(d, fields, err) &&
              document_make(DOCUMENT_ENROLMENT, fields, &node->keys.identity, NULL, &document, err) &&
              journal_put_document(node->journal, &document, err) && course_enrol(d->course, &document, err);

    json_decref(fields);
    document_free(&document);
    if (ok)
        d->enrolment = json_incref(json_object_get(json_object_get(d->course->enrolments, node->did), "envelope"));
    return ok;
}

/* --- from nothing to a running machine --------------------------------------------------------------------------------- */

static void genesis_made(void *context, const struct worker_answer *answer)
{
    struct driver *d = context;
    struct error err = { 0 };

    if (answer->error) {
        driver_fail(d, answer->error);
        return;
    }
    rules_set_genesis(&d->course->rules, document_text(answer->result, "outer"), document_text(answer->result, "state"));
    if (!driver_machine_new(d, &err)) {
        driver_fail(d, &err);
        return;
    }
    node_settle();
    node_tell(d->node, "ready", json_pack("{s:s, s:s}", "run", d->course->run, "endpoint", node_endpoint(d->node)));
}

static void opened(void *context, const struct worker_answer *answer)
{
    struct driver *d = context;

    if (answer->error) {
        driver_fail(d, answer->error);
        return;
    }
    worker_submit(d->main, json_pack("{s:s}", "job", "genesis"), NULL, 0, NULL, genesis_made, d);
}

static struct worker *start_worker(struct driver *d, int nice, worker_done *done, struct error *err)
{
    struct worker_options options = { .blocks = d->node->blocks.folder, .threads = d->node->options.threads, .nice = nice };
    struct worker *w = worker_new(&d->node->loop, &options, err);

    if (w)
        worker_open(w, json_incref(d->course->open), done, d);
    return w;
}

static void replay_opened(void *context, const struct worker_answer *answer)
{
    if (answer->error)
        driver_fail(context, answer->error);
}

struct worker *driver_replay_worker(struct driver *d)
{
    struct error err = { 0 };

    if (d->is_member && !d->replay) {
        d->replay = start_worker(d, 10, replay_opened, &err);
        if (!d->replay)
            driver_fail(d, &err);
    }
    return d->replay ? d->replay : d->main;
}

static void everything_here(struct driver *d)
{
    struct error err = { 0 };

    if (!course_prepare(d->course, &err)) {
        driver_fail(d, &err);
        return;
    }
    d->main = start_worker(d, 0, opened, &err);
    if (!d->main)
        driver_fail(d, &err);
}

static void arrived(void *context, const struct error *fault)
{
    struct driver *d = context;

    d->fetch = NULL;
    if (fault)
        driver_fail(d, fault);
    else
        driver_prepare(d);
}

void driver_prepare(struct driver *d)
{
    struct fetch_want *wants = NULL;
    size_t count;
    bool complete;
    struct error err = { 0 };

    if (!course_wants(d->course, &wants, &count, &complete, &err))
        driver_fail(d, &err);
    else if (complete && fetch_complete(d->node, wants, count, COURSE_OBJECT_LIMIT))
        everything_here(d);
    else
        d->fetch = fetch_start(d->node, wants, count, COURSE_OBJECT_LIMIT, PREPARE_MS, arrived, d);
    free(wants);
}
