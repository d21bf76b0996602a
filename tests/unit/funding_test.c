/* Money for a run whose ledger has only just been started. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/file.h"
#include "runtime/ledger/server.h"
#include "runtime/role/sponsor.h"
#include "tests/fixture/fixture.h"

struct place {
    char folder[64], path[96], url_file[96];
    struct key_pair keys;
    struct journal *journal;
    pid_t ledger;
    char url[128];
};

/* A ledger in a process of its own, with 1000 units in the sponsor's account. Its first block comes after block_ms. */
static void begin_ledger(struct place *p, uint32_t block_ms)
{
    struct buffer url = { 0 };
    struct error err = { 0 };

    p->ledger = fork();
    assert_true(p->ledger >= 0);
    if (p->ledger == 0) {
        struct ledger_allocation all = { account_address(&p->keys.account), 1000 };
        struct ledger_genesis genesis = { .chain = 7, .block_ms = block_ms, .allocations = &all, .allocation_count = 1 };
        struct ledger_options options = { .path = p->path, .genesis = &genesis, .url_file = p->url_file };

        _exit(ledger_serve(&options, &err) ? 0 : 1);
    }
    while (!file_read(p->url_file, sizeof p->url - 1, &url, &err) || url.size == 0)
        usleep(10000);
    snprintf(p->url, sizeof p->url, "%.*s", (int)strcspn((const char *)buffer_text(&url), "\n"), buffer_text(&url));
    buffer_free(&url);
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct error err = { 0 };

    assert_true(sodium_init() >= 0);
    fixture_folder(p->folder);
    snprintf(p->path, sizeof p->path, "%s/ledger", p->folder);
    snprintf(p->url_file, sizeof p->url_file, "%s/url", p->folder);
    key_pair_derive("funding_test", "sponsor", &p->keys);
    p->journal = journal_open(p->folder, &err);
    assert_non_null(p->journal);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    int status;

    kill(p->ledger, SIGTERM);
    waitpid(p->ledger, &status, 0);
    journal_close(p->journal);
    fixture_remove(p->folder);
    free(p);
    return status;
}

static struct run_spec spec_of(const struct place *p, unsigned per_round)
{
    struct run_spec spec = { .id = hash_block("run", 3), .account = account_address(&p->keys.account), .rounds = 2 };

    spec.quorum.round_ms = 60000;
    spec.committee.panel_count = spec.committee.release_threshold = 1;
    spec.committee.panel[0].account = spec.account;
    spec.payment.chain = 7;
    spec.payment.contract = ledger_local_domain(7).contract;
    spec.payment.per_round = per_round;
    spec.payment.expiry_rounds = 20;
    return spec;
}

static void a_ledger_that_has_no_block_yet_takes_the_money(void **state)
{
    struct place *p = *state;
    struct run_spec spec = spec_of(p, 500);
    struct error err = { 0 };
    uint32_t rounds;

    begin_ledger(p, 1000);
    FIXTURE_OK(sponsor_fund(&spec, &p->keys, p->url, false, p->journal, &err), &err);
    assert_true(sponsor_funded(p->journal, spec.id, &rounds));
    assert_int_equal(rounds, 2);
}

static void an_account_that_holds_too_little_is_told_so(void **state)
{
    struct place *p = *state;
    struct run_spec spec = spec_of(p, 501);
    struct error err = { 0 };
    uint32_t rounds;

    begin_ledger(p, 100);
    assert_false(sponsor_fund(&spec, &p->keys, p->url, false, p->journal, &err));
    assert_int_equal(err.code, ERROR_REFUSED);
    assert_non_null(strstr(err.message, "round 2"));
    assert_non_null(strstr(err.hint, "whole budget"));
    assert_true(sponsor_funded(p->journal, spec.id, &rounds));
    assert_int_equal(rounds, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_ledger_that_has_no_block_yet_takes_the_money, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_account_that_holds_too_little_is_told_so, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
