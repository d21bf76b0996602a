/* ledger_test.c - ledger server and client over loopback, and the server as a process of its own. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "runtime/ledger/client.h"
#include "runtime/ledger/server.h"
#include "runtime/ledger/transaction.h"
#include "tests/fixture/fixture.h"
#include "tests/unit/loop_run.h"
#include "tests/unit/sick_disk.h"

#define CHAIN 31337

struct world {
    char folder[64], path[96], url_file[96];
    uv_loop_t loop;
    struct account_key sponsor, member;
    struct ledger_allocation allocation;
    struct ledger_genesis genesis;
    struct ledger_options options;
    struct ledger_server *server;
    struct http_client *http;
    struct ledger *ledger;
    struct error err;
    /* the last answer, copied */
    unsigned done;
    struct error error;
    bool present;
    struct ledger_status status;
    struct ledger_block block;
    struct ledger_escrow escrow;
    struct ledger_account account;
    struct ledger_receipt receipt;
    struct ledger_event events[LEDGER_EVENTS];
    size_t event_count;
    uint64_t next;
};

static void start_server(struct world *w)
{
    w->server = ledger_server_new(&w->loop, &w->options, &w->err);
    assert_non_null(w->server);
}

static int begin(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    fixture_folder(w->folder);
    snprintf(w->path, sizeof w->path, "%s/ledger.db", w->folder);
    snprintf(w->url_file, sizeof w->url_file, "%s/url", w->folder);
    uv_loop_init(&w->loop);
    w->sponsor = fixture_account(1), w->member = fixture_account(3);
    w->allocation = (struct ledger_allocation){ account_address(&w->sponsor), 1000000 };
    w->genesis = (struct ledger_genesis){ .chain = CHAIN, .block_ms = 20, .allocations = &w->allocation, .allocation_count = 1 };
    w->options = (struct ledger_options){ .path = w->path, .genesis = &w->genesis, .url_file = w->url_file };
    start_server(w);
    w->http = http_client_new(&w->loop, NULL, &w->err);
    w->ledger = ledger_client_new(&w->loop, w->http, ledger_server_url(w->server), 3000, &w->err);
    *state = w;
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;
    int busy;

    ledger_free(w->ledger);
    http_client_free(w->http);
    ledger_server_free(w->server);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    busy = uv_loop_close(&w->loop);
    fixture_remove(w->folder);
    free(w);
    return busy;
}

/* ---- waiting for answers ---- */

static void on_done(void *context, const struct ledger_answer *a)
{
    struct world *w = context;

    w->done++;
    w->error = a->error ? *a->error : (struct error){ 0 };
    w->present = a->escrow || a->receipt;
    if (a->status)
        w->status = *a->status;
    if (a->block)
        w->block = *a->block;
    if (a->escrow)
        w->escrow = *a->escrow;
    if (a->account)
        w->account = *a->account;
    if (a->receipt)
        w->receipt = *a->receipt;
    w->event_count = a->event_count;
    w->next = a->next;
    if (a->events)
        memcpy(w->events, a->events, a->event_count * sizeof *a->events);
}

static struct ledger_then then(struct world *w)
{
    return (struct ledger_then){ on_done, w };
}

/* Runs the loop until one more answer is there. */
static void await(struct world *w)
{
    unsigned before = w->done;

    for (int i = 0; i < 100000 && w->done == before; i++)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(w->done, before + 1);
}

static void assert_fine(struct world *w)
{
    if (w->error.code != ERROR_NONE)
        fail_msg("%s: %s", w->error.place, w->error.message);
}

static void run_for(struct world *w, unsigned ms)
{
    loop_run(&w->loop, ms);
}

/* ---- transactions ---- */

static uint64_t soon(void)
{
    return (uint64_t)time(NULL) + 1000;
}

static void creation(struct world *w, uint64_t nonce, uint64_t round, uint64_t expiry, struct buffer *out)
{
    struct transaction t = { .method = TRANSACTION_CREATE, .chain = CHAIN, .nonce = nonce };

    t.create = (struct transaction_create){ .run = { { 7 } },
                                            .round = round,
                                            .amount = 100,
                                            .panel = { account_address(&w->member) },
                                            .panel_count = 1,
                                            .threshold = 1,
                                            .expiry = expiry };
    assert_true(transaction_sign(&t, &w->sponsor, out, &w->err));
}

static struct hash ref_of(uint64_t round)
{
    return release_round_ref((struct hash){ { 7 } }, round);
}

static void payment(struct world *w, uint64_t nonce, uint64_t round, struct buffer *out)
{
    struct transaction t = { .method = TRANSACTION_RELEASE, .chain = CHAIN, .nonce = nonce };
    struct release_domain domain = ledger_domain(&w->status);
    struct hash digest;

    t.release = (struct transaction_release){ .record = { { 9 } },
                                              .payees = { account_address(&w->member) },
                                              .amounts = { 60 },
                                              .payee_count = 1,
                                              .signature_count = 1,
                                              .deadline = soon() };
    t.release.id = ledger_escrow_id(&domain, account_address(&w->sponsor), ref_of(round));
    assert_true(transaction_release_digest(&domain, &t.release, &digest, &w->err));
    t.release.signatures[0] = account_sign(&w->member, digest);
    assert_true(transaction_sign(&t, &w->member, out, &w->err));
}

static void submit(struct world *w, struct buffer *bytes)
{
    ledger_submit(w->ledger, bytes->bytes, bytes->size, then(w));
    await(w);
    buffer_free(bytes);
}

/* ---- client and server ---- */

static void a_round_is_funded_released_and_withdrawn_over_the_wire(void **state)
{
    struct world *w = *state;
    struct buffer bytes = { 0 };
    struct transaction t = { .method = TRANSACTION_WITHDRAW, .chain = CHAIN, .nonce = 1 };
    struct address member = account_address(&w->member);

    ledger_status(w->ledger, then(w)), await(w), assert_fine(w);
    assert_int_equal(w->status.chain, CHAIN);
    assert_int_equal(w->status.block_ms, 20);
    creation(w, 0, 1, soon(), &bytes), submit(w, &bytes), assert_fine(w);
    assert_true(w->receipt.final);
    assert_int_equal(w->receipt.code, ERROR_NONE);
    ledger_escrow(w->ledger, account_address(&w->sponsor), ref_of(1), then(w)), await(w), assert_fine(w);
    assert_true(w->present && w->escrow.status == LEDGER_FUNDED && w->escrow.amount == 100);
    payment(w, 0, 1, &bytes), submit(w, &bytes), assert_fine(w);
    assert_int_equal(w->receipt.code, ERROR_NONE);
    ledger_account(w->ledger, member, then(w)), await(w), assert_fine(w);
    assert_true(w->account.credit == 60 && w->account.nonce == 1);
    assert_true(transaction_sign(&t, &w->member, &bytes, &w->err));
    submit(w, &bytes), assert_fine(w);
    ledger_account(w->ledger, member, then(w)), await(w), assert_fine(w);
    assert_true(w->account.balance == 60 && w->account.credit == 0);
    ledger_events(w->ledger, NULL, 0, w->receipt.height, then(w)), await(w), assert_fine(w);
    assert_int_equal(w->event_count, 4);
    assert_string_equal(ledger_event_name(w->events[2].kind), "paid");
    assert_true(w->events[2].amount == 60 && address_equal(w->events[2].account, member));
    assert_int_equal(w->next, w->receipt.height + 1);
}

static void what_is_not_there_is_told_apart_from_errors(void **state)
{
    struct world *w = *state;

    ledger_escrow(w->ledger, account_address(&w->sponsor), ref_of(5), then(w)), await(w), assert_fine(w);
    assert_false(w->present);
    ledger_receipt(w->ledger, ref_of(5), then(w)), await(w), assert_fine(w);
    assert_false(w->present);
    ledger_block(w->ledger, 1u << 30, then(w)), await(w);
    assert_int_equal(w->error.code, ERROR_MISSING);
}

static void blocks_follow_one_another_while_somebody_asks(void **state)
{
    struct world *w = *state;
    struct hash last;
    uint64_t height;

    run_for(w, 200);
    ledger_block(w->ledger, LEDGER_FINAL, then(w)), await(w), assert_fine(w);
    height = w->block.height;
    last = w->block.hash;
    assert_true(height >= 3);
    run_for(w, 60);
    ledger_block(w->ledger, height + 1, then(w)), await(w), assert_fine(w);
    assert_true(hash_equal(w->block.previous, last));
}

static void a_transaction_without_effect_tells_why_in_its_receipt(void **state)
{
    struct world *w = *state;
    struct buffer bytes = { 0 };

    creation(w, 0, 1, 5, &bytes), submit(w, &bytes), assert_fine(w);
    assert_int_equal(w->receipt.code, ERROR_RANGE);
    assert_non_null(strstr(w->receipt.message, "expiry"));
}

static void a_refused_transaction_is_an_error_at_once(void **state)
{
    struct world *w = *state;
    struct buffer bytes = { 0 };

    creation(w, 3, 1, soon(), &bytes), submit(w, &bytes);
    assert_int_equal(w->error.code, ERROR_STALE);
    buffer_add_text(&bytes, "{}"), submit(w, &bytes);
    assert_int_not_equal(w->error.code, ERROR_NONE);
}

static void a_restarted_ledger_is_a_delay_and_no_error(void **state)
{
    struct world *w = *state;
    struct buffer bytes = { 0 };
    char url[64];

    snprintf(url, sizeof url, "%s", ledger_server_url(w->server));
    w->options.port = (uint16_t)atoi(strrchr(url, ':') + 1);
    ledger_server_free(w->server);
    w->server = NULL;
    run_for(w, 20);
    creation(w, 0, 1, soon(), &bytes);
    ledger_submit(w->ledger, bytes.bytes, bytes.size, then(w));
    ledger_status(w->ledger, then(w));
    run_for(w, 300);
    assert_int_equal(w->done, 0);
    start_server(w);
    await(w);
    assert_fine(w);
    await(w);
    assert_fine(w);
    assert_true(w->receipt.final);
    buffer_free(&bytes);
}

static void a_ledger_that_forgot_a_waiting_transaction_is_sent_it_again(void **state)
{
    struct world *w = *state;
    struct buffer bytes = { 0 };

    w->options.port = (uint16_t)atoi(strrchr(ledger_server_url(w->server), ':') + 1);
    ledger_server_free(w->server); /* one whose blocks never come */
    w->server = NULL;
    run_for(w, 20);
    unlink(w->path);
    w->genesis.block_ms = 600000;
    start_server(w);
    creation(w, 0, 1, soon(), &bytes);
    ledger_submit(w->ledger, bytes.bytes, bytes.size, then(w));
    run_for(w, 200);
    assert_int_equal(ledger_local_waiting(ledger_server_local(w->server)), 1);
    ledger_server_free(w->server); /* forgets it */
    w->server = NULL;
    run_for(w, 20);
    unlink(w->path);
    w->genesis.block_ms = 20;
    start_server(w);
    await(w);
    assert_fine(w);
    assert_true(w->receipt.final);
    buffer_free(&bytes);
}

static void a_ledger_that_stays_away_is_a_network_error(void **state)
{
    struct world *w = *state;

    ledger_free(w->ledger);
    w->ledger = ledger_client_new(&w->loop, w->http, "http://127.0.0.1:1/", 200, &w->err);
    ledger_status(w->ledger, then(w));
    await(w);
    assert_int_equal(w->error.code, ERROR_NETWORK);
    assert_non_null(strstr(w->error.place, "ledger"));
}

static void freeing_the_client_drops_what_was_asked(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 5; i++)
        ledger_status(w->ledger, then(w));
    uv_run(&w->loop, UV_RUN_NOWAIT);
    ledger_free(w->ledger);
    w->ledger = NULL;
    run_for(w, 50);
    assert_int_equal(w->done, 0);
}

/* ---- the protocol, strictly ---- */

static void assert_answer(struct world *w, const char *request, const char *part)
{
    struct buffer response = { 0 };

    ledger_answer(ledger_server_local(w->server), request, strlen(request), &response);
    if (!strstr(buffer_text(&response), part))
        fail_msg("%s\n%s", request, buffer_text(&response));
    buffer_free(&response);
}

static void json_rpc_is_read_strictly(void **state)
{
    static const char *const cases[][2] = {
        { "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"status\"}", "\"id\":\"a\",\"result\":{" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"block\",\"params\":{\"height\":0}}", "\"height\":0" },
        { "", "-32700" },
        { "{", "-32700" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"status\"}", "-32700" },
        { "[]", "-32600" },
        { "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}]", "batches are not taken" },
        { "7", "-32600" },
        { "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"status\"}", "-32600" },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"status\"}", "-32600" },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"status\"}", "-32600" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", "-32600" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\",\"extra\":1}", "unknown member extra" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"mint\"}", "-32601" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\",\"params\":[]}", "-32602" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\",\"params\":{\"a\":1}}", "-32602" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"block\",\"params\":{\"height\":-1}}", "params: height" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"block\",\"params\":{\"height\":1.0}}", "-32602" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"block\",\"params\":{\"height\":999999}}", "\"code\":\"missing\"" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"account\",\"params\":{}}", "params: account" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"account\",\"params\":{\"account\":\"0x12\"}}", "-32602" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"submit\",\"params\":{\"transaction\":\"{}\"}}", "-32000" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"events\",\"params\":{\"from\":0,\"to\":9}}", "\"events\":[]" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_answer(*state, cases[i][0], cases[i][1]);
}

/* ---- a disk that fails ---- */

static void a_server_that_can_neither_write_nor_read_its_file_closes_its_port(void **state)
{
    struct world *w = *state;
    struct buffer bytes = { 0 };
    struct rlimit room;

    creation(w, 0, 0, soon(), &bytes);
    run_for(w, 50);
    disk_forget(w->path);
    ledger_submit(w->ledger, bytes.bytes, bytes.size, then(w));
    while (!ledger_local_waiting(ledger_server_local(w->server)))
        uv_run(&w->loop, UV_RUN_ONCE);
    disk_fill(&room);
    unreadable = true;
    for (int i = 0; i < 100000 && ledger_server_sound(w->server, &w->err); i++)
        uv_run(&w->loop, UV_RUN_ONCE);
    unreadable = false;
    disk_empty(&room);
    assert_int_equal(w->err.code, ERROR_FAULT);
    while (!w->done)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(w->error.code, ERROR_NETWORK);
    buffer_free(&bytes);
}

/* ---- a process of its own ---- */

static pid_t spawn(struct world *w)
{
    pid_t child = fork();

    if (child == 0)
        _exit(ledger_serve(&w->options, &w->err) ? 0 : 1);
    return child;
}

static bool read_url(struct world *w, struct buffer *url)
{
    for (int i = 0; i < 200; i++) {
        struct timespec pause = { .tv_nsec = 10000000 };

        if (file_read(w->url_file, 100, url, &w->err) && url->size)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static void the_process_tells_its_url_survives_kill_and_ends_cleanly(void **state)
{
    struct world *w = *state;
    struct buffer url = { 0 }, bytes = { 0 };
    uint64_t height;
    pid_t child;
    int status;

    ledger_free(w->ledger);
    w->ledger = NULL;
    ledger_server_free(w->server);
    w->server = NULL;
    run_for(w, 10);
    for (int turn = 0; turn < 3; turn++) {
        buffer_clear(&url);
        unlink(w->url_file);
        child = spawn(w);
        assert_true(read_url(w, &url));
        w->ledger = ledger_client_new(&w->loop, w->http, buffer_text(&url), 3000, &w->err);
        creation(w, (uint64_t)turn, (uint64_t)turn, soon(), &bytes), submit(w, &bytes), assert_fine(w);
        assert_int_equal(w->receipt.code, ERROR_NONE);
        ledger_free(w->ledger);
        w->ledger = NULL;
        kill(child, turn < 2 ? SIGKILL : SIGTERM);
        waitpid(child, &status, 0);
        assert_true(turn < 2 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_true(ledger_local_check(w->path, &height, &w->err));
        assert_true(height >= w->receipt.height);
    }
    buffer_free(&url);
}

static void a_port_in_use_stops_the_process_with_a_hint(void **state)
{
    struct world *w = *state;
    struct ledger_options second = w->options;

    second.port = (uint16_t)atoi(strrchr(ledger_server_url(w->server), ':') + 1);
    second.path = "/tmp/rondo-ledger-second.db";
    assert_false(ledger_serve(&second, &w->err));
    assert_non_null(strstr(w->err.hint, "another port"));
    second.path = w->path;
    assert_false(ledger_serve(&second, &w->err));
    assert_int_equal(w->err.code, ERROR_CONFLICT);
    unlink("/tmp/rondo-ledger-second.db");
    unlink("/tmp/rondo-ledger-second.db.lock");
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_round_is_funded_released_and_withdrawn_over_the_wire),
        T(what_is_not_there_is_told_apart_from_errors),
        T(blocks_follow_one_another_while_somebody_asks),
        T(a_transaction_without_effect_tells_why_in_its_receipt),
        T(a_refused_transaction_is_an_error_at_once),
        T(a_restarted_ledger_is_a_delay_and_no_error),
        T(a_ledger_that_forgot_a_waiting_transaction_is_sent_it_again),
        T(a_ledger_that_stays_away_is_a_network_error),
        T(freeing_the_client_drops_what_was_asked),
        T(json_rpc_is_read_strictly),
        T(the_process_tells_its_url_survives_kill_and_ends_cleanly),
        T(a_server_that_can_neither_write_nor_read_its_file_closes_its_port),
        T(a_port_in_use_stops_the_process_with_a_hint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
