/* The long-lived roles: sponsor, syncer, trainer. One row each; they differ in the machine that runs. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "native/base/decimal.h"
#include "native/base/memory_limit.h"
#include "native/kernel/class.h"
#include "runtime/cli/commands.h"
#include "runtime/crypto/keyfile.h"
#include "runtime/role/collect.h"
#include "runtime/role/course_join.h"
#include "runtime/role/driver.h"
#include "runtime/role/home.h"
#include "runtime/role/lock.h"
#include "runtime/role/policy.h"
#include "runtime/round/value.h"

#define NODE_OPTIONS                                                                                                             \
    { "peer", "URL", "a node of the run to begin with (not needed again once the folder knows the run)" },                       \
        { "ledger", "URL", "the run's ledger" }, { "name", "NAME", "folder HOME/nodes/NAME with key.json (default: the role)" }, \
        { "listen", "ADDRESS", "numeric address to listen on (default 127.0.0.1)" },                                             \
        { "port", "PORT", "port to listen on (default: the last one, else any)" },                                               \
        { "endpoint", "URL", "what others reach this node by, if not address and port" },                                        \
        { "no-listen", NULL, "listen nowhere: a trainer or an auditor only calls others" },                                      \
        { "tls", NULL, "serve over TLS; the certificate's fingerprint stands in the enrolment and in the endpoint" },            \
        { "plain", NULL, "plain HTTP to other machines than this one" },                                                         \
        { "quota", "SIZE", "drop blocks of rounds that are over when they take more (default: never)" },                         \
        { "with-parent", NULL, "end when the process that started this one ends" },                                              \
    {                                                                                                                            \
        NULL, NULL, NULL                                                                                                         \
    }

#define EVIDENCE_OPTION                                                                                                          \
    {                                                                                                                            \
        "evidence", "FILE",                                                                                                      \
            "show this evidence of the machine's hardware when enrolling (rondo attest; asked for where admission is attested)"  \
    }

static const struct option node_options_table[] = { NODE_OPTIONS };
static const struct option syncer_options[] = { EVIDENCE_OPTION, NODE_OPTIONS };
static const struct option trainer_options[] = {
    { "auto", "FILE", "take the runs that the policy in FILE allows, one after another, the best paid first" },
    { "list", NULL, "with --auto: say which runs there are and which would be taken, and end" },
    { "most-unpaid", "N", "stop when a settled round is not paid N records later (default: W + D + 2 of the run; 0: never)" },
    { "deposit", NULL, "lock what the spec asks of a trainer, if it is not locked yet (rondo deposit)" },
    { "capacity", "N", "most batches of batch_tokens that it trains in a step, up to the run's limits.batches (default 1)" },
    { "region", "NAME", "where this machine stands, for runs whose shards belong to regions" },
    EVIDENCE_OPTION,
    { "audit", "SHARE", "also replay this share of the others' contributions, and challenge what is wrong (default 0)" },
    NODE_OPTIONS
};
static const struct option auditor_options[] = {
    { "deposit", NULL, "lock what the spec asks of a challenger, if it is not locked yet (rondo deposit)" },
    { "share", "SHARE", "replay this share of all contributions (0.1; default 1: all)" },
    EVIDENCE_OPTION,
    NODE_OPTIONS
};

static bool read_share(const struct invocation *in, const char *role, int64_t *share, struct error *err)
{
    const bool trainer = strcmp(role, "trainer") == 0, auditor = strcmp(role, "auditor") == 0;
    const char *name = trainer ? "audit" : "share", *text = trainer || auditor ? option_text(in, name, auditor ? "1" : "0") : "0";

    return (decimal_parse(text, share) && *share >= 0 && *share <= DECIMAL_ONE) ||
           error_set(err, ERROR_USAGE, NULL, "--%s %s: a share from 0 to 1 is needed", name, text);
}

/* A passphrase comes from a file or the environment's file name, never from a flag's value. */
static bool read_options(struct invocation *in, const char *role, struct node_options *options, char folder[4400],
                         struct error *err)
{
    int64_t port = 0, share = 0, unpaid = -1, batches = 0;
    const bool trains = strcmp(role, "trainer") == 0;
    const char *name, *quota = option_text(in, "quota", NULL);
    uint64_t bytes = 0;
    bool outbound = option_flag(in, "no-listen");

    if (outbound && (strcmp(role, "syncer") == 0 || strcmp(role, "sponsor") == 0))
        return error_set(err, ERROR_USAGE, "others ask it for blocks and documents", "a %s cannot take --no-listen", role);

    if (quota && !memory_size_read(quota, &bytes))
        return error_set(err, ERROR_USAGE, "a size such as 500M or 8G", "--quota %s", quota);
    if (!option_node_name(in, role, &name, err))
        return false;
    snprintf(folder, 4400, "%.4000s/nodes/%s", in->home, name);
    if (!option_integer(in, "port", 0, 65535, &port, err) || !read_share(in, role, &share, err) ||
        (trains && (!option_integer(in, "most-unpaid", 0, INT32_MAX, &unpaid, err) ||
                    !option_integer(in, "capacity", 1, 65536, &batches, err))))
        return false;
    if (!option_may_listen(option_text(in, "listen", NULL), option_text(in, "endpoint", NULL), option_flag(in, "tls"),
                           option_flag(in, "plain"), err))
        return false;
    *options = (struct node_options){
        .folder = folder,
        .listen = option_text(in, "listen", NULL),
        .port = (uint16_t)port,
        .ledger = option_text(in, "ledger", "http://127.0.0.1:8645"),
        .peer = option_text(in, "peer", NULL),
        .endpoint = option_text(in, "endpoint", NULL),
        .passphrase = getenv("RONDO_PASSPHRASE"),
        .plain = option_flag(in, "plain"),
        .tls = option_flag(in, "tls"),
        .outbound = outbound,
        .json = in->json,
        .quiet = in->quiet,
        .threads = in->threads,
        .quota = bytes,
        .deposit = option_flag(in, "deposit"),
        .audit = { .share = share },
        .most_unpaid = unpaid,
        .batches = batches,
        .region = trains ? option_text(in, "region", NULL) : NULL,
        .evidence = option_text(in, "evidence", NULL),
    };
    return true;
}

/* What the spec asks for is locked before anything is said to anybody. */
static bool lock(struct node *node, const char *role, struct error *err)
{
    struct books *books;
    json_t *locked = NULL;

    if (!node->options.deposit)
        return true;
    books = books_of_url(node->options.ledger, node->options.plain, err);
    if (books)
        locked = lock_deposit(books, node->course, &node->keys, role, err);
    books_free(books);
    if (locked)
        node_tell(node, "deposit", json_incref(locked));
    json_decref(locked);
    return locked != NULL;
}

/* A node that keeps a quota makes room before it writes anything: a full disk would end its start. What is wrong with the folder is told by what
 * opens it next. */
static void make_room(const struct node_options *options, const char *run)
{
    struct node node;
    struct collection c;
    struct error none;
    int64_t below;

    if (!options->quota || !collect_open(&node, options->folder, run, &none))
        return;
    if (collect_find_below(&node, options->passphrase, &below, &none))
        collect_run(&node, below, options->quota, false, &c, &none);
    collect_close(&node);
}

/* How a node ended that ended without a fault. */
struct end {
    char verdict[16]; /* of an auditor that asked about one contribution */
    bool finished;    /* the run is over; else it was told to stop */
};

static bool run_node(const char *role, const struct node_options *options, const char *run, struct end *end, struct error *err)
{
    struct node node = { 0 };

    make_room(options, run);

    bool ok = kernel_start(err) && node_open(&node, role, options, err) && course_take_part(&node, run, err) &&
              lock(&node, role, err) && home_running_put(&node, err);

    if (ok && strcmp(role, "sponsor") != 0) {
        node.driver = driver_new(&node, strcmp(role, "syncer") == 0, err);
        ok = node.driver != NULL;
    } else if (ok) {
        node_settle();
        node_tell(&node, "ready", json_pack("{s:s, s:s}", "run", node.course->run, "endpoint", node_endpoint(&node)));
    }
    ok = ok && node_run(&node, err);
    home_running_remove(&node);
    memcpy(end->verdict, node.verdict, sizeof end->verdict);
    end->finished = node.finished;
    node_close(&node);
    return ok;
}

/* `about`: what an auditor is asked about, or NULL. Exit status 0 then: `good` is the verdict. */
static int run_role(struct invocation *in, const char *role, const struct trainer_audit *about, const char *good)
{
    struct node_options options;
    struct end end = { 0 };
    struct error err = { 0 };
    char folder[4400];

    if (!read_options(in, role, &options, folder, &err))
        return command_fail(in, &err);
    if (about)
        options.audit = *about;
    if (option_flag(in, "with-parent"))
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (!run_node(role, &options, in->argument[0], &end, &err))
        return command_fail(in, &err);
    return about && strcmp(end.verdict, good) != 0 ? EXIT_VERDICT : EXIT_OK;
}

static int sponsor_main(struct invocation *in)
{
    return run_role(in, "sponsor", NULL, NULL);
}

static int syncer_main(struct invocation *in)
{
    return run_role(in, "syncer", NULL, NULL);
}

/* --- a trainer that looks for runs by itself -------------------------------------------------------------------------------- */

struct seeking {
    struct invocation *in;
    json_t *policy, *done; /* done: run -> true */
    struct node_options options;
    char did[DID_TEXT], account[ADDRESS_TEXT];
};

static bool read_identity(struct seeking *s, struct error *err)
{
    struct key_pair keys;
    struct public_key key;
    char path[4500];

    snprintf(path, sizeof path, "%s/key.json", s->options.folder);
    if (!keyfile_read(path, s->options.passphrase, &keys, err))
        return false;
    key = public_key_of(&keys.identity);
    did_text(&key, s->did);
    address_text(account_address(&keys.account), s->account);
    key_pair_wipe(&keys);
    return true;
}

/* One line a run: what it pays, and whether it is taken. */
static void print_survey(const struct seeking *s, const json_t *list)
{
    json_t *one;
    size_t index;

    if (s->in->quiet || s->in->json)
        return;
    json_array_foreach(list, index, one)
    {
        const char *run = value_text(one, "run"), *reason = value_text(one, "reason");

        if (json_object_get(s->done, run))
            reason = "over";
        fprintf(stderr, "%s %.20s pays %s a round: %s\n", run[0] ? run : value_text(one, "peer"), value_text(one, "name"),
                value_text(one, "pay"), reason[0] ? reason : "taken");
    }
}

static const json_t *choose(const struct seeking *s, const json_t *list)
{
    json_t *one;
    size_t index;

    json_array_foreach((json_t *)(uintptr_t)list, index,
                       one) if (!value_text(one, "reason")[0] && !json_object_get(s->done, value_text(one, "run"))) return one;
    return NULL;
}

static bool interrupted_within(const struct seeking *s)
{
    const struct timespec wait = { .tv_sec = value_integer(s->policy, "every") };

    return nanosleep(&wait, NULL) != 0;
}

/* Goes from run to run until it is told to stop. A run that fails is left for this time. */
static void seek(struct seeking *s)
{
    for (bool stop = false; !stop;) {
        json_t *list = policy_survey(s->policy, s->did, s->account, s->options.plain);
        const json_t *one = choose(s, list);
        struct error err = { 0 };
        struct end end = { 0 };
        char run[CID_TEXT], peer[512];

        print_survey(s, list);
        snprintf(run, sizeof run, "%s", value_text(one, "run"));
        snprintf(peer, sizeof peer, "%s", value_text(one, "peer"));
        json_decref(list);
        if (!one) {
            stop = interrupted_within(s);
            continue;
        }
        s->options.peer = peer;
        if (!run_node("trainer", &s->options, run, &end, &err))
            command_fail(s->in, &err);
        else
            stop = !end.finished;
        json_object_set_new(s->done, run, json_true());
    }
}

static int list_runs(struct seeking *s)
{
    json_t *list = policy_survey(s->policy, s->did, s->account, s->options.plain);
    const json_t *chosen = choose(s, list);
    bool some = chosen != NULL;
    json_t *one;
    size_t index;

    print_survey(s, list);
    json_array_foreach(list, index, one) json_object_set_new(one, "taken", json_boolean(one == chosen));
    if (s->in->json)
        command_print_json(json_pack("{s:O}", "runs", list));
    json_decref(list);
    return some ? EXIT_OK : EXIT_VERDICT;
}

static int seeking_main(struct invocation *in)
{
    struct seeking s = { .in = in };
    struct error err = { 0 };
    char folder[4400];
    int status = EXIT_OK;
    bool ok = in->arguments == 0 || error_set(&err, ERROR_USAGE, NULL, "--auto chooses the runs: leave RUN out");

    if (ok && option_text(in, "evidence", NULL))
        ok = error_set(&err, ERROR_USAGE, "name the RUN that it was made for", "evidence is of one run: --auto takes none");
    ok = ok && read_options(in, "trainer", &s.options, folder, &err) && read_identity(&s, &err);
    s.policy = ok ? policy_read(option_text(in, "auto", NULL), &err) : NULL;
    if (!s.policy)
        return command_fail(in, &err);
    s.done = json_object();
    s.options.leave = true;
    s.options.ledger = option_text(in, "ledger", value_text(s.policy, "ledger"));
    if (option_flag(in, "list"))
        status = list_runs(&s);
    else
        seek(&s);
    json_decref(s.policy);
    json_decref(s.done);
    return status;
}

static int trainer_main(struct invocation *in)
{
    struct error err = { 0 };

    if (option_text(in, "auto", NULL))
        return seeking_main(in);
    if (in->arguments)
        return run_role(in, "trainer", NULL, NULL);
    error_set(&err, ERROR_USAGE, NULL, "name a RUN, or let a policy choose: --auto FILE");
    return command_fail(in, &err);
}

const struct command command_sponsor = {
    "sponsor",
    "RUN",
    "serve a run that was created here: its document, scripts, model and data",
    "rondo sponsor RUN --ledger http://127.0.0.1:8645",
    "The run must be in the folder's journal (rondo run create). A sponsor takes no part in rounds and is not needed once\n"
    "enough nodes hold the run's blocks.",
    node_options_table,
    sponsor_main,
};

const struct command command_syncer = {
    "syncer",
    "RUN",
    "take part in a run as a member of its committee",
    "rondo syncer RUN --peer http://sponsor.example:7000 --ledger http://ledger.example:8645",
    "Checks and aggregates contributions, votes on records, replays what the seed draws, releases escrows. Its DID must stand "
    "in\n"
    "the spec's panel. Keeps everything it needs to go on in its folder; never run two from one key.",
    syncer_options,
    syncer_main,
};

const struct command command_trainer = {
    "trainer",
    "[RUN]",
    "take part in a run as a trainer",
    "rondo trainer RUN --peer http://sponsor.example:7000 --ledger http://ledger.example:8645\n"
    "rondo trainer --auto policy.json --name trainer-1\nrondo trainer --auto policy.json --list",
    "Fetches model, scripts and its shards, trains each round's assignment, pushes the result to every member. Outbound\n"
    "connections suffice. Stay until your last round is settled: who leaves earlier and is challenged is not paid.\n"
    "With --auto it asks the policy's peers for runs and stays with each until that is over (docs/operator.md).",
    trainer_options,
    trainer_main,
};

static int auditor_main(struct invocation *in)
{
    return run_role(in, "auditor", NULL, NULL);
}

const struct command command_auditor = {
    "auditor",
    "RUN",
    "replay what trainers did, and challenge what is wrong",
    "rondo auditor RUN --peer http://sponsor.example:7000 --ledger http://ledger.example:8645 --share 0.1",
    "Follows the run, computes contributions again step by step, and disputes the first wrong leaf of a step log until the "
    "committee has\n"
    "decided (docs/protocol.md, section 7). Its DID must be on the run's allow-list, or the spec asks challengers for a deposit "
    "(--deposit). A challenge that fails costs the "
    "deposit,\n"
    "and bars it from more.",
    auditor_options,
    auditor_main,
};

static int challenge_main(struct invocation *in)
{
    struct error err = { 0 };
    char *end, did[DID_TEXT];
    long round = strtol(in->argument[1], &end, 10);
    struct trainer_audit about = { .round = round };

    snprintf(about.did, sizeof about.did, "%s", home_did(in->home, in->argument[2], did));
    if (*end || round < 1 || round > INT32_MAX) {
        error_set(&err, ERROR_USAGE, NULL, "ROUND %.80s is no round: they count from 1", in->argument[1]);
        return command_fail(in, &err);
    }
    return run_role(in, "auditor", &about, "convicted");
}

int audit_live(struct invocation *in, int64_t share)
{
    const struct trainer_audit about = { .share = share, .sums_up = true };

    return run_role(in, "auditor", &about, "equal");
}

const struct command command_challenge = {
    "challenge",
    "RUN ROUND DID|NAME",
    "replay one contribution, and dispute it until it is decided",
    "rondo challenge RUN 3 did:tenzro:machine:z6Mk... --peer http://sponsor.example:7000 --ledger http://ledger.example:8645",
    "An auditor (rondo auditor) for one contribution of a round that is not settled. Exit status 0: its maker was convicted; 1: "
    "every bit is\n"
    "right, the committee rejected the challenge, or the round is settled; the last line says which.",
    node_options_table,
    challenge_main,
};
