/* session.h - what a worker keeps of one run between jobs: model, data, scripts, traces and executors.
 *
 *     open job ── spec, scripts, model folder ──> session ── train, fold, replay, evaluate
 *
 * Weights are read when the first job needs them; traces and executors are made once for each shape and kept.
 */
#ifndef RONDO_WORKER_SESSION_H
#define RONDO_WORKER_SESSION_H

#include "native/graph/execute.h"
#include "native/model/adapter.h"
#include "native/model/source.h"
#include "native/text/conversation.h"
#include "runtime/script/host.h"
#include "runtime/store/block.h"
#include "runtime/worker/batch.h"
#include "runtime/worker/layout.h"
#include "runtime/worker/prompts.h"

struct pool;

/* Arenas of cached executors, all shapes together. A shape that needs more alone is kept alone. */
#define SESSION_ARENAS (UINT64_C(1) << 30)

/* A spec's script with everything it may import. */
struct session_script {
    struct script_file *files; /* owned list of borrowed texts */
    struct script_bundle bundle;
};

struct session_shard {
    struct hash id;
    struct buffer bytes;
    struct rows rows;
    struct examples examples;
    struct prompts prompts; /* in a run on rollouts, instead of examples */
    struct conversation_counts counts;
    bool stream;
    bool coalesced; /* by the spec's `coalesce`: for training alone, since accuracy counts turns */
};

enum session_role {
    SESSION_MODEL,
    SESSION_OBJECTIVE,
    SESSION_INNER,
    SESSION_OUTER,
    SESSION_SCHEDULE,
    SESSION_REWARD,
    SESSION_ROLES
};

/* What the objective asks of its rollouts. */
struct session_rollout {
    int64_t samples;    /* completions of a prompt: a group */
    int64_t updates;    /* steps on each batch of rollouts */
    int64_t max_tokens; /* of a completion */
    double temperature; /* of drawing, and of every log-probability that the objective reads */
};

/* What of the model is trained: rank 0: every weight; else the adapter's parts. */
struct session_adapter {
    struct adapter_kind kind; /* with its patterns and whole modules */
    json_t *patterns;         /* owned: the same for scripts (host.h), or NULL */
    const char **targets;     /* owned list of borrowed ends of names; of no target: all-linear */
    size_t target_count;
    double plus;       /* rate of B over that of A; 0: the same */
    const char *start; /* PEFT folder that the run goes on from, or NULL; borrowed */
};

/* What a shape's graph is for: an inner step, log-probabilities of given text, logits of tokens that go on with kept sequences, the
 * objective's loss and metrics without a step. */
enum session_use { SESSION_TRAIN, SESSION_EVALUATE, SESSION_CONTINUE, SESSION_MEASURE };

/* A frozen parameter as its file holds it. */
struct session_stored {
    const void *bytes; /* NULL: not read so far */
    void *owned;       /* what must be freed */
};

/* The executor of one shape; `shape.graph` names its inputs. */
struct session_step {
    int64_t rows, time;
    enum session_use use;
    double clip;
    struct script_trace model, objective;
    struct graph *graph;
    uint8_t *
        stored; /* enum tensor_type of each bound node's data: frozen weights stay as the file has them where the graph allows it */
    struct executor *executor;     /* NULL until the step is run */
    struct dispute_shape *dispute; /* owned: what disputes about such steps share (dispute_shape.h); NULL until there is one */
    struct executor *prepare;      /* of an objective's `prepare`; NULL: it has none */
    struct cache *cache;           /* borrowed: of the sequences that go on, or NULL */
    uint64_t serial;               /* of no other step, now or before */
};

/* What reference.h keeps. */
struct session_reference {
    struct session *other; /* NULL: the run's own */
    float *values;
};

/* A contribution that was replayed: its spot check and every challenge of it that a replay decides share one. */
enum { SESSION_REPLAYS = 64, SESSION_SHOWN = 16 << 20 };

struct session_replay {
    struct hash key;
    json_t *result; /* owned, NULL: none */
};

/* The batch of a disputed step: challenge, opening and pick are about one. */
struct session_disputed {
    bool held;
    struct hash key, root; /* root: what a leaf says of it */
    struct batch batch;
};

struct session {
    json_t *job;  /* owned: the open job; spec, scripts, options point into it */
    json_t *spec; /* borrowed */
    const char *run;
    struct block_store blocks;
    struct pool *pool;
    struct script_limits limits;

    struct model_source *model;
    struct tokenizer *tokenizer;
    struct template *template;
    json_t *variables;
    struct date date; /* of strftime_now */
    float *token_bytes;
    struct batch_rules rules; /* `stream` is the shard's; `pairs` says that the objective reads them */

    struct session_script scripts[SESSION_ROLES]; /* a reward only where the spec has one */
    struct session_rollout rollout;               /* samples 0: a run on given text */
    struct session_reference *reference;          /* of a run on rollouts, once it is read */
    struct session_adapter adapter;
    struct session_script aggregators[8];
    size_t aggregator_count;

    struct layout layout;
    uint32_t fragments; /* of the schedule, once asked for (fragments.h): 0: it has none */
    bool fragments_known;
    struct script_trace inner, outer; /* optimisers over the layout */
    float **frozen;                   /* base weights by place in the model meta's params, NULL where trained or unread */
    struct session_stored *stored;    /* likewise, as the file has them */

    struct cache *cache; /* what a sequence keeps, whatever the shape; made with the first SESSION_CONTINUE */

    struct session_shard **shards;
    size_t shard_count;
    struct session_step **steps; /* the one used last stands last */
    size_t step_count;
    struct session_rates {
        int64_t round, steps;
        double *rates; /* owned */
    } rates;           /* the schedule's, of the round that was asked for last */
    struct session_replay replays[SESSION_REPLAYS];
    size_t replay_next;
    struct session_disputed disputed;
    uint64_t serial; /* of the last step made */
    uint64_t arenas; /* SESSION_ARENAS */
    uint64_t shown;  /* bytes of one operand above which a pick shows less where less will do (dispute_reads.h): SESSION_SHOWN */
    uint64_t
        memory; /* bytes for one step: weights, state and arena; RONDO_MEMORY, else three quarters of what this process may have */
};

/* `job`: { run, spec, model: path, reference?: path, adapter?: folder that the run goes on from, template: text | null,
 * scripts: { CID: { name, source } } }. Takes no reference from the caller.
 * NULL with `err`. */
struct session *session_new(json_t *job, const struct block_store *blocks, struct pool *pool, struct error *err);
void session_free(struct session *s);

/* How rows of this run become text and tokens. What it names is borrowed. */
struct conversation_format session_format(const struct session *s);

/* The shard's examples, read from its object once a use. Borrowed. */
const struct session_shard *session_shard(struct session *s, struct hash id, enum session_use use, struct error *err);

/* The executor for this shape; made at the first call. What would need more than `memory` is computed again instead of kept; error
 * memory, with both numbers, where that is not enough. Borrowed until the next call, which may forget it: `serial` tells. */
const struct session_step *session_step(struct session *s, int64_t rows, int64_t time, enum session_use use, double clip,
                                        struct error *err);

/* The same without its executor, for those who only look at the graph. */
const struct session_step *session_shape(struct session *s, int64_t rows, int64_t time, enum session_use use, double clip,
                                         struct error *err);

/* The learning rates of the steps of a round by the schedule's script, `steps` of them; borrowed until other rates are asked for. */
const double *session_rates(struct session *s, int64_t round, int64_t steps, struct error *err);

/* Another executor of that step whose every value `see` is shown, one operator after the other; the caller frees it. Errors: memory. */
struct executor *session_traced(struct session *s, const struct session_step *step, graph_trace see, void *context,
                                struct error *err);

/* Bytes of memory of a training step of that shape, as it runs here and traced, with weights and state. Nothing is run. Errors: those of
 * session_step; memory. */
bool session_step_bytes(struct session *s, int64_t rows, int64_t time, double clip, uint64_t *plain, uint64_t *traced,
                        struct error *err);

/* The run's first trained values: of the adapter that it goes on from, or of the model's file where it has them, else drawn from the run id
 * (magnitudes: the norms of the base's rows). Errors of an adapter that does not fit, its file as place: mismatch (another rank or scale,
 * or not the same kind), those of adapter_read. */
bool session_genesis(struct session *s, float *values, struct error *err);

/* The type in which the file holds a frozen parameter of that shape; f32 when it is another or has none. */
enum tensor_type session_stored_type(const struct session *s, const char *name, uint64_t values);

/* The data of a frozen parameter as the file holds it; NULL with `err`. Borrowed. */
const void *session_stored_weight(struct session *s, const char *name, uint64_t *values, struct error *err);

/* The data of a frozen parameter for binding and how many values there are; NULL with `err`. Borrowed. */
const float *session_weight(struct session *s, const char *name, uint64_t *values, struct error *err);

#endif
