/* course.h - the run a node takes part in: its document, its spec, who is enrolled.
 *
 *     peer ── run document ── enrolments ── scripts, model, dataset manifest ──> store ── worker opens ──> roots of the start
 *             course_join.h ─────────────── course_needs.h ───────────────────────────── driver.h
 */
#ifndef RONDO_ROLE_COURSE_H
#define RONDO_ROLE_COURSE_H

#include "runtime/doc/run_spec.h"
#include "runtime/role/node.h"
#include "runtime/round/rules.h"
#include "runtime/worker/client.h"

#define SHARD_MEDIA   "application/vnd.rondo.shard+jsonl"
#define PAYLOAD_MEDIA "application/vnd.rondo.payload"
#define LOG_MEDIA     "application/vnd.rondo.step-log"

#define COURSE_OBJECT_LIMIT  (UINT64_C(16) << 30)
#define COURSE_DISPUTE_LIMIT (UINT64_C(64) << 20) /* of what an opening or a pick names: runtime/worker/dispute.h */

enum {
    COURSE_MACHINES = 512,    /* enrolments kept: more than a run has members and asks to have */
    COURSE_DOCUMENT = 8 << 20 /* bytes of a document as a peer sends it */
};

struct course {
    struct node *node; /* borrowed */
    char run[CID_TEXT];
    struct hash id;
    struct document document; /* of the run */
    struct run_spec spec;
    struct rules rules;
    json_t
        *enrolments; /* did -> { envelope, payload, url, ids }; the newest of each, and the CIDs of all that lie in the journal */
    json_t *displaced; /* cid -> did: enrolments of those that gave way, until their documents are deleted */
    bool announced;    /* the peer has this node's enrolment */
    size_t turn;       /* which peer is asked next for enrolments */
    json_t *shards;    /* owned: list of CIDs of the dataset's shards, once the manifest is here */
    json_t *open;      /* owned: the workers' open job, once everything is here */
};

/* From the bytes of the run document. `node` needs no more than folder, blocks and peers. */
bool course_of(struct node *node, const char *run, const void *bytes, size_t size, struct course *course, struct error *err);

/* Reads the run document and enrolments from the journal. Errors: missing. */
bool course_load(struct node *node, const char *run, struct course *course, struct error *err);
void course_free(struct course *course);

/* Whether the spec lets its signer enrol in this role; else *code says why not. Static text. */
bool course_admits(const struct course *course, const struct document *document, const char **code);
/* Takes an enrolment document that was verified: learns its endpoint, unless a later one of the same machine is known. Keys cost nothing: where
 * COURSE_MACHINES are known, the first that is neither named (course_names) nor held by the round machine, which knows who has locked something,
 * gives way to one that is not named either; those that are come on top. It is taken again when it says so again. A node without a round
 * machine, as a sponsor's, keeps the first. Errors: limit (nobody gives way). */
bool course_enrol(struct course *course, const struct document *document, struct error *err);
/* Whether it may be taken from somebody's list: where COURSE_MACHINES are known, others than the named say themselves that they want to take part. */
bool course_takes_hearsay(const struct course *course, const struct public_key *signer);
/* Deletes the documents of those that gave way, but what a record lists; what the disk does not delete is tried again. Outside of the journal's
 * transactions. */
void course_forget_displaced(struct course *course);
/* The endpoint an enrolled machine gave, with its fingerprint as a pin (tls.h), or NULL. Borrowed. */
const char *course_endpoint(const struct course *course, const char *did);
/* Whether a signer that the spec lets speak may have one more document of this type kept here: honest ones need few. Documents whose round is
 * theirs to choose are counted over all rounds. */
bool course_has_room(const struct course *course, const struct document *document);
/* Bytes of a carry (runtime/worker/carry.h) at most: it is larger than the payloads that are made of it. */
uint64_t course_carry_limit(const struct course *course);
/* Enrolled, of concern to the newest record (membership_concerns), of the panel, or the sponsor. */
bool course_knows(const struct course *course, const struct public_key *signer);
/* By the panel or the allow-list, as of concern to the newest record, or this node itself. */
bool course_names(const struct course *course, const struct public_key *signer);

/* Known, or somebody whom the spec lets enrol. */
bool course_invites(const struct course *course, const struct public_key *key);

#endif
