/* quote_internal.h - the parts of a quote: quote.c (the draft, the whole), quote_parts.c (committee, money, bytes), quote_measure.c (plans and
 * steps by a worker). */
#ifndef RONDO_ROLE_QUOTE_INTERNAL_H
#define RONDO_ROLE_QUOTE_INTERNAL_H

#include "runtime/role/archive.h"
#include "runtime/role/quote.h"

struct quote {
    const struct quote_options *options;
    struct archive a;                        /* a store and a worker; no nodes */
    json_t *draft, *network;                 /* borrowed from the run file */
    json_t *placeholders, *warnings, *plans; /* owned */
    int64_t trainers, syncers;
    int64_t parameters, steps;                     /* steps: of one trainer, all rounds */
    int64_t batches;                               /* of rollouts, likewise; 0: a run on given text */
    int64_t outer_bytes, payload_bytes, log_bytes; /* of one object; payload and log of the largest plan */
    int64_t sent_values, sent_tensors;             /* in a payload of the plan asked for last */
    double first, second;                          /* seconds of a step, with and without set-up; 0: not measured */
    int64_t memory;                                /* bytes; 0: not measured */
    int64_t traced;                                /* bytes of a step that is traced for a dispute; 0: none is */
};

/* quote_measure.c */
bool quote_plans(struct quote *q, struct error *err);
bool quote_measure(struct quote *q, struct error *err);

/* quote_parts.c */
void quote_warn(struct quote *q, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* New references. */
json_t *quote_committee(struct quote *q);
json_t *quote_money(struct quote *q);
json_t *quote_work(const struct quote *q);
json_t *quote_rollouts(struct quote *q); /* null: a run on given text */
json_t *quote_bytes(const struct quote *q);
json_t *quote_disk(const struct quote *q);
json_t *quote_memory(const struct quote *q);
json_t *quote_time(struct quote *q);
bool quote_claims(struct quote *q, struct error *err); /* warnings about what scripts say of themselves */

#endif
