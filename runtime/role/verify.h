/* verify.h - the evidence of an archive as history_check wants it: what `audit` and `sync` have in common.
 *
 *     documents   of any node, every copy with its signature verified            archive_document
 *     blocks      of the ledger                                                  books.h
 *     results     plans and folds, computed anew by the archive's worker         jobs plan, fold
 */
#ifndef RONDO_ROLE_VERIFY_H
#define RONDO_ROLE_VERIFY_H

#include "runtime/role/archive.h"
#include "runtime/role/books.h"
#include "runtime/round/history.h"

struct verifier {
    struct archive *a;                       /* borrowed; its worker runs */
    struct books *books;                     /* borrowed */
    bool quick;                              /* plans and folds are taken as the records claim them */
    int64_t documents, blocks, plans, folds; /* how many were looked at */
    json_t *fold;                            /* owned: { request, answer } of the last fold, or NULL */
    struct error fault;                      /* why a source last had nothing to give */
};

/* Roots of the state before round 1, from the worker, into the course's rules. */
bool verifier_start(struct verifier *v, struct error *err);

/* history_check_round for the archive's run. `final` is { record, certificate }. */
bool verifier_round(struct verifier *v, const json_t *previous, const json_t *final, struct error *err);

/* One record, computed again from what it names: plan, fold and all corrections with it. `v->fold` is what its fold gave. */
bool verifier_record(struct verifier *v, const json_t *previous, const json_t *record, struct error *err);
void verifier_free(struct verifier *v);

/* { run, round, did, ... } of one listed contribution, as CHECK and REPLAY are told it; NULL when its DID has no part in the round. */
json_t *verifier_context(struct archive *a, int64_t round, const char *did);

#endif
