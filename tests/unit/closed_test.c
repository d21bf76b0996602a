/* Commitments of the replicated tier: whose count. Whole rounds are in simulation_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "runtime/round/member_state.h"
#include "runtime/round/replica.h"

/* What a member that lists `commitment` said when it closed; else it listed nothing. */
static void closes(struct member *member, const char *did, const char *commitment)
{
    char key[64];
    snprintf(key, sizeof key, "closed/0//%s", did);
    json_t *list = *commitment ? json_pack("[s]", commitment) : json_array();
    json_object_set_new(member->statements, key, json_pack("{s{so}}", "payload", "commitments", list));
}

/* n = 4, q = 3, t = 2: work is shown when three have closed. A commitment to it can still reach the fourth, and a liar lists anything: two. */
static void a_commitment_counts_when_q_members_list_it(void **state)
{
    (void)state;
    const struct rules rules = { .run = "bafk2bzaarun", .rounds = 2, .replicas = 2 };
    char cid[CID_TEXT];
    json_t *previous = json_pack("{si}", "round", 0),
           *payload = json_pack("{sssissss}", "run", rules.run, "round", 1, "signer", "a", "salt", "s"),
           *contribution = json_pack("{sssO}", "cid", "c", "payload", payload);
    struct member member = { .rules = &rules,
                             .previous = previous,
                             .round = 1,
                             .committee = json_pack("[ssss]", "s0", "s1", "s2", "s3"),
                             .quorum = quorum_of(4, 3),
                             .statements = json_object(),
                             .committed = json_object() };
    assert_int_equal(member.quorum.t, 2);
    assert_true(member_replicates(&member));
    replica_commitment_cid(payload, cid);
    closes(&member, "s0", cid);
    closes(&member, "s1", cid);
    assert_null(member_commitment_code(&member, contribution));
    closes(&member, "s2", "");
    assert_null(member_commitment_code(&member, contribution)); /* the fourth may list it */
    closes(&member, "s3", "");
    assert_string_equal(member_commitment_code(&member, contribution), "uncommitted"); /* t of them are not enough */
    closes(&member, "s3", cid);
    assert_string_equal(member_commitment_code(&member, contribution), "ok");
    json_t *const owned[] = { previous, payload, contribution, member.committee, member.statements, member.committed };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        json_decref(owned[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_commitment_counts_when_q_members_list_it) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
