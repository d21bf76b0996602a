/* policy.h - what an operator lets a machine work on: a file that says which runs to take, and where to look for them.
 *
 *     policy file ── peers ── GET /v1/runs, /v1/runs/{run} ──> run documents ── judged one by one ──> the run that pays best
 *
 *     { "peers": [ "http://sponsor.example:7000" ],    who is asked
 *       "ledger": "http://127.0.0.1:8645",
 *       "accept": { "sponsors": [ DID ], "runs": [ CID ], "objectives": [ CID ], "licences": [ "Apache-2.0" ],
 *                   "modalities": [ "language" ], "asset": "TNZO" },      each may be absent: anything goes
 *       "refuse": { "sponsors": [ DID ], "runs": [ CID ] },
 *       "least_pay": "100",              of a round, when every trainer that the run may have takes part
 *       "most_rounds": 1000, "most_download": 20000000000, "every": 30 }   bytes; seconds between two looks
 */
#ifndef RONDO_ROLE_POLICY_H
#define RONDO_ROLE_POLICY_H

#include <jansson.h>

#include "runtime/doc/run_spec.h"

/* The file's object, checked, with what it leaves out filled in. NULL with `err`: the place is the file and the field's path. */
json_t *policy_read(const char *path, struct error *err);

/* "" when the policy lets a machine with this DID and account train in the run, else why not. `download`: bytes of model and data. */
const char *policy_judge(const json_t *policy, const struct run_spec *spec, const char *did, const char *account,
                         uint64_t download, char why[240]);

/* What one trainer gets of a round when all that the run may have take part. */
unsigned __int128 policy_pay(const struct run_spec *spec);

/* Asks the policy's peers. [ { run, name, peer, pay, reason } ], first the one to take: `reason` "" and the highest pay. Peers that do not
 * answer, or with nonsense, are entries with run "" and the reason. New reference. */
json_t *policy_survey(const json_t *policy, const char *did, const char *account, bool plain);

#endif
