/* course.h - the run a node takes part in: its document, its spec, who is enrolled, and what its workers need.
 *
 *     peer ── run document ── enrolments ── scripts, model, dataset manifest ──> store ── worker opens ──> roots of the start
 *
 * Model manifest, the block that `base_model` names (and `adapter.start` likewise, of a PEFT folder):  { "files": [ { "name": "config.json", "object": CID, "size": n }, ... ], "version": 1 }
 * Dataset manifest:  { "rows": n, "shards": [ { "object": CID, "rows": n, "size": n }, ... ], "version": 1 }
 */
#ifndef RONDO_ROLE_COURSE_H
#define RONDO_ROLE_COURSE_H

#include "runtime/doc/run_spec.h"
#include "runtime/role/fetch.h"
#include "runtime/role/node.h"
#include "runtime/round/rules.h"
#include "runtime/worker/client.h"

#define SHARD_MEDIA   "application/vnd.rondo.shard+jsonl"
#define PAYLOAD_MEDIA "application/vnd.rondo.payload"
#define LOG_MEDIA     "application/vnd.rondo.step-log"

#define COURSE_OBJECT_LIMIT  (UINT64_C(16) << 30)
#define COURSE_DISPUTE_LIMIT (UINT64_C(64) << 20) /* of what an opening or a pick names: runtime/worker/dispute.h */

enum { COURSE_MACHINES = 1024 }; /* enrolments kept, of an open run */

struct course {
    struct node *node; /* borrowed */
    char run[CID_TEXT];
    struct hash id;
    struct document document; /* of the run */
    struct run_spec spec;
    struct rules rules;
    json_t *enrolments; /* did -> { envelope, payload, url }; the newest of each */
    bool announced;     /* the peer has this node's enrolment */
    size_t turn;        /* which peer is asked next for enrolments */
    json_t *shards;     /* owned: list of CIDs of the dataset's shards, once the manifest is here */
    json_t *open;       /* owned: the workers' open job, once everything is here */
};

/* From the bytes of the run document. `node` needs no more than folder, blocks and peers. */
bool course_of(struct node *node, const char *run, const void *bytes, size_t size, struct course *course, struct error *err);

/* Reads the run document and enrolments from the journal. Errors: missing. */
bool course_load(struct node *node, const char *run, struct course *course, struct error *err);
void course_free(struct course *course);
/* The run from the node's own folder, else from `node->options.peer`, into node->course. */
bool course_take_part(struct node *node, const char *run, struct error *err);

/* Whether the spec lets its signer enrol in this role; else *code says why not. Static text. */
bool course_admits(const struct course *course, const struct document *document, const char **code);
/* Takes an enrolment document that was verified: learns its endpoint, unless a later one of the same machine is known. */
bool course_enrol(struct course *course, const struct document *document, struct error *err);
/* The endpoint an enrolled machine gave, with its fingerprint as a pin (tls.h), or NULL. Borrowed. */
const char *course_endpoint(const struct course *course, const char *did);
/* Whether a signer that the spec lets speak may have one more document of this type kept here: honest ones need few. Documents whose round is
 * theirs to choose are counted over all rounds. */
bool course_has_room(const struct course *course, const struct document *document);
/* Bytes of a carry (runtime/worker/carry.h) at most: it is larger than the payloads that are made of it. */
uint64_t course_carry_limit(const struct course *course);
/* Enrolled, of the panel, or the sponsor. */
bool course_knows(const struct course *course, const struct public_key *signer);

/* Known, or somebody whom the spec lets enrol. */
bool course_invites(const struct course *course, const struct public_key *key);

/* Gets the run document and enrolments from `node->options.peer` (synchronously, at start), into journal and course. */
bool course_join(struct node *node, const char *run, struct error *err);

/* Takes what is new in somebody's list of enrolments, and refuses the rest in silence. What is longer than one enrolment for each machine
 * that the spec names is no honest list. */
void course_take_enrolments(struct course *course, const json_t *list);

/* Asks the peer and a few others for enrolments; a repeated, quiet call. Everybody known has a turn, from a random one on: whoever leaves
 * an enrolment out of its list hides nothing for long. */
void course_refresh(struct course *course);
/* Who has the next turn: not one that is left alone for a while. NULL when there is none. Borrowed. */
const struct peer *course_next_peer(struct course *course, uint64_t now_ms);

/* A file's name inside a model's folder: no path. */
bool course_plain_name(const char *name);

/* What must be in the store before a worker can open. The caller frees. Grows: call it again when what it named has arrived, until
 * *complete. */
bool course_wants(struct course *course, struct fetch_want **wants, size_t *count, bool *complete, struct error *err);

/* Lays the model out as files and makes course->open. Everything of course_wants must be in the store. */
bool course_prepare(struct course *course, struct error *err);

#endif
