/* audit_internal.h - the parts of an audit. Only audit*.c and replaying commands include it. */
#ifndef RONDO_ROLE_AUDIT_INTERNAL_H
#define RONDO_ROLE_AUDIT_INTERNAL_H

#include "native/base/scratch.h"
#include "runtime/role/audit.h"
#include "runtime/role/verify.h"

struct audit {
    const struct audit_options *options;
    struct scratch folder; /* what it works in */
    struct archive a;
    struct books *books;
    struct verifier verifier;
    json_t *checked, *findings;
};

/* audit_findings.c. Adds `n` to a count of the result. */
void audit_count(json_t *checked, const char *name, int64_t n);

/* A fault of the evidence becomes a finding, once. False when it is none: the audit cannot go on. */
bool audit_find(json_t *findings, const struct error *fault);

/* Faults of the machine that audits say nothing about the run. */
bool audit_is_own_fault(enum error_code code);

void audit_tell(struct audit *u, const char *what, int64_t done, int64_t of);

/* Each goes through everything and adds findings; false with `err` only when it cannot go on. */
bool audit_copies(struct archive *a, json_t *checked, json_t *findings, struct error *err);
bool audit_work(struct audit *u, struct error *err);
bool audit_money(struct audit *u, struct error *err);

#endif
