/* metrics.h - what a node counts, as Prometheus reads it (text format 0.0.4, GET /metrics).
 *
 *     rondo_build_info{version,role}          1
 *     rondo_up_seconds                        since this process opened the node
 *     rondo_round, rondo_view                 where its machine is; rondo_phase{phase} 1
 *     rondo_records_total{kind}               rounds decided while this process ran: open, train, skip, close
 *     rondo_contributions_total{code}         listed in those: ok, or why they are refused
 *     rondo_moves_total{type,code}            challenges, openings, picks and evidence in those
 *     rondo_disputes_open, rondo_convicted    in the last record
 *     rondo_jobs_total{job}, rondo_job_failures_total{job,code}, rondo_abstentions_total{job,code}
 *     rondo_documents_total{type}             taken from others
 *     rondo_documents_read_total{how}         known from before, or verified
 *     rondo_http_answers_total{status}, rondo_http_problems_total{code}, rondo_http_connections
 *     rondo_http_cut_total{reason}            connections cut for a deadline, or to make room; rondo_http_banned senders
 *     rondo_peers, rondo_peers_silent
 *
 * Counters begin at zero with the process.
 */
#ifndef RONDO_ROLE_METRICS_H
#define RONDO_ROLE_METRICS_H

#include "native/base/buffer.h"
#include "runtime/role/node.h"

enum metric {
    METRIC_RECORDS,
    METRIC_CONTRIBUTIONS,
    METRIC_MOVES,
    METRIC_JOBS,
    METRIC_JOB_FAILURES,
    METRIC_ABSTENTIONS,
    METRIC_DOCUMENTS,
    METRICS
};

/* One more under these labels; `second` NULL where the metric has one label. Labels come from fixed sets: types, kinds, codes. */
void metrics_count(struct node *node, enum metric metric, const char *first, const char *second);

/* What a decided record holds. */
void metrics_record(struct node *node, const json_t *record);

/* What is told of a node's machine; all borrowed. */
struct metrics_machine {
    const json_t *status; /* driver_status */
    int64_t round;        /* driver_round */
    const json_t *last;   /* the newest record, or NULL */
};

/* Everything, as text; `machine` NULL where the node has none. */
void metrics_text(struct node *node, const struct metrics_machine *machine, struct buffer *out);

#endif
