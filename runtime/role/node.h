/* node.h - what every role shares: identity, stores, HTTP, ledger, peers, on one loop.
 *
 *     HOME/nodes/NAME/  key.json  node.db  blocks/CID  documents/CID  models/CID/
 *
 * A node takes part in one run. It serves its blocks and documents to anybody and takes what enrolled signers push:
 *
 *     GET  /metrics                        Prometheus (metrics.h)
 *     GET  /v1/status                      POST /v1/documents        a message (runtime/round/machine.h); the answer lists missing blocks
 *     GET  /v1/blocks/{cid}                PUT  /v1/blocks/{cid}     only what an accepted document names
 *     GET  /v1/documents/{cid}             GET  /v1/runs
 *     GET  /v1/runs/{run}                  the run document
 *     GET  /v1/runs/{run}/enrolments       { documents: [...] }
 *     GET  /v1/runs/{run}/rounds/{n}       { record, certificate }; ?wait=MS holds the answer until it is there
 *     GET  /v1/runs/{run}/events           server-sent events
 *     POST /v1/runs/{run}/releases/{n}     a panel member's release signature
 */
#ifndef RONDO_ROLE_NODE_H
#define RONDO_ROLE_NODE_H

#include <jansson.h>
#include <uv.h>

#include "runtime/crypto/keyfile.h"
#include "runtime/doc/documents.h"
#include "runtime/ledger/ledger.h"
#include "runtime/net/http_client.h"
#include "runtime/net/http_server.h"
#include "runtime/net/peer.h"
#include "runtime/round/trainer.h"
#include "runtime/store/block.h"
#include "runtime/store/journal.h"

struct course;
struct driver;
struct expected;
struct file_sync;
struct subscribers;

struct node_options {
    const char *folder;     /* HOME/nodes/NAME */
    const char *listen;     /* numeric address; NULL: 127.0.0.1 */
    uint16_t port;          /* 0: any */
    const char *ledger;     /* URL */
    const char *endpoint;   /* what others reach this node by; NULL: address and port */
    const char *peer;       /* URL of any node of the run; NULL: the run is in the own journal */
    const char *passphrase; /* of key.json, or NULL */
    bool plain;             /* plain HTTP to other machines */
    bool outbound;          /* listens nowhere: only calls others. For trainers and auditors, who push what they make */
    bool tls;               /* serves over TLS, by a certificate of its own (tls.h) */
    bool leave;             /* stop when the run is over */
    int64_t
        most_unpaid; /* records after which a trainer stops whose settled round is not released; below zero: W + D + 2; 0: never */
    bool deposit;    /* locks what the spec asks of its role before it enrols (lock.h) */
    bool json;       /* progress as JSON lines on standard output */
    bool quiet;
    unsigned threads;           /* of its workers; 0: the machine's cores */
    int64_t batches;            /* most batches of a step that a trainer takes, where the run lets it say; 0: one */
    const char *region;         /* where it stands, or NULL: said to runs that name this region */
    const char *evidence;       /* file of what its enrolment shows of its hardware, or NULL: what the last one showed */
    uint64_t quota;             /* bytes of blocks beyond which rounds that are over are dropped (collect.h); 0: never */
    struct trainer_audit audit; /* of a trainer or an auditor: what of others' work it replays and challenges */
};

struct node {
    struct node_options options;
    uv_loop_t loop;
    char folder[4000];
    struct key_pair keys;
    struct public_key key;
    char did[DID_TEXT];
    struct address account;
    struct block_store blocks;
    struct journal *journal;
    struct verified *known;          /* documents that were found good since this process began */
    struct http_server *server;      /* NULL when it listens nowhere */
    struct subscribers *subscribers; /* subscribers.h */
    struct file_sync *sync;          /* file_sync.h */
    struct expected *expected;       /* blocks that may be pushed (expected.h) */
    struct http_client *client;
    struct ledger *ledger;
    struct peer_list *peers;
    struct fetch *fetches;           /* those that are not over (fetch.h) */
    struct course *course;           /* the run, once known */
    struct driver *driver;           /* the machine; NULL for a sponsor */
    json_t *counters;                /* of metrics.h: an object of labels a metric */
    uint64_t opened;                 /* loop time */
    char verdict[16];                /* of an auditor that asked about one contribution: "equal", "convicted", "rejected" */
    char address_url[PEER_ENDPOINT]; /* options.endpoint with the pin of the own certificate; empty: that of the server */
    const char *role;                /* "sponsor", "trainer", "syncer", "auditor" */
    uv_signal_t interrupt, terminate, leave; /* SIGUSR1: a trainer leaves its run */
    bool stopping;
    bool finished;      /* it stopped because the run is over */
    struct error fault; /* why the node stopped; code none when it was asked to */
};

/* Opens folder, key, stores, server and clients. The folder must hold key.json. False with `err`; node_close is right in both cases. */
bool node_open(struct node *node, const char *role, const struct node_options *options, struct error *err);
void node_close(struct node *node);

/* Runs the loop until node_stop, SIGINT or SIGTERM. False when it stopped for a fault, then told in `err`. */
bool node_run(struct node *node, struct error *err);
void node_stop(struct node *node, const struct error *fault); /* NULL: asked to */

/* Gives back the memory that starting took, and sees to it that what is freed later is not kept either. */
void node_settle(void);

/* The URL in the node's enrolment; "" when it listens nowhere. Borrowed. */
const char *node_endpoint(const struct node *node);

/* Tells people and programs: one line of text on standard error, or of JSON on standard output. Takes the reference. */
void node_tell(struct node *node, const char *kind, json_t *body);

#endif
