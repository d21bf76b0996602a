/* certificate.h - q votes of one view and phase for one record, and what a decided round must look like.
 *
 *     { type: "certificate", version: 1, run, round, view, phase: prepare|commit, record, votes: [ q envelopes, ascending by signer ] }
 *     vote = { version: 1, signer, run, round, view, phase, record }
 *
 * A prepare certificate is a lock or a justification; a commit certificate makes the record final.
 */
#ifndef RONDO_ROUND_CERTIFICATE_H
#define RONDO_ROUND_CERTIFICATE_H

#include "runtime/round/committee.h"
#include "runtime/round/machine.h"

/* `votes`: did -> envelope, at least q; the q smallest DIDs are taken. New reference. */
json_t *certificate_make(const struct rules *rules, int64_t round, int64_t view, const char *phase, const char *record,
                         const json_t *votes, int64_t q);

/* Every vote's signature, that each says what the certificate says, q distinct signers of the committee. Errors: syntax, signature,
 * refused. */
bool certificate_check(const struct rules *rules, const json_t *certificate, const char *phase, int64_t round,
                       const json_t *committee, const struct signing *signing, struct error *err);

/* A decided round: the record follows `previous` (NULL for round 0), its seed is that of its block and its committee that of the
 * seed, and the certificate commits it. Whether the block is the ledger's and the record what record_of gives is for others
 * (history.h, member.h). Errors: mismatch, refused, signature. */
bool final_check(const struct rules *rules, const json_t *previous, const json_t *record, const json_t *certificate,
                 const struct signing *signing, struct error *err);

/* Two signed statements that must not both exist: the same signer, run, round and type, and for votes the same view and phase, for
 * proposals and `received` the same view; different payloads. Round 0 convicts nobody: a disk lost in it makes a new machine. */
bool equivocation_check(const struct rules *rules, const json_t *payload, const struct signing *signing, struct error *err);

#endif
