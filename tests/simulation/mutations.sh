#!/bin/sh
# mutations.sh: removes one rule of the protocol after another from the round machines and lets the simulator look for what breaks.
# usage: RONDO_BUILD=build sh tests/simulation/mutations.sh [NAME...]
#
# A mutation is one line of sed on a copy of one file of runtime/round; that file alone is compiled and linked before the libraries of the
# build, so no shipped program has a switch for it. Prints a table row for each: name, rule, seed and invariant that broke. Exit status 1
# when one is not found within RONDO_SEEDS (2000) seeds, no longer applies, or the command told for the small failure does not repeat it.
set -eu
build=${RONDO_BUILD:-build}
seeds=${RONDO_SEEDS:-2000}
only=" $* "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
libraries=
for name in simulation round attest net document native kernel base; do libraries="$libraries $build/librondo_$name.a"; done
packages="jansson libsodium libuv sqlite3 libmicrohttpd libsecp256k1 libcurl"
compile="${CC:-cc} -std=gnu17 -O2 -w -D_GNU_SOURCE -DRONDO_VERSION=\"mutant\" -I."
for file in tests/simulation/mutant.c runtime/cli/command.c runtime/cli/manual.c runtime/cli/cmd_simulate.c; do
    $compile -c -o "$work/$(basename "$file" .c).o" "$file" || exit 4
done

# simulate ARGUMENTS: the first failure of the mutant as "seed, invariant, message, command" with tabs between.
simulate() {
    status=0
    (ulimit -v 4000000 && exec timeout 900 "$work/mutant" simulate "$@" --json) >"$work/out" 2>"$work/err" || status=$?
    sed -n 's/.*"violation": *{"seed": *\([0-9]*\), *"invariant": *"\([^"]*\)", *"message": *"\([^"]*\)", *"command": *"\([^"]*\)".*/\1\t\2\t\3\t\4/p' \
        "$work/out" >"$work/found"
}
field() { cut -f"$1" "$work/found"; }

# mutation NAME FILE SED RULE
mutation() {
    case $only in "  " | *" $1 "*) ;; *) return 0 ;; esac
    sed "$3" "runtime/round/$2" >"$work/mutated.c"
    if cmp -s "$work/mutated.c" "runtime/round/$2"; then
        echo "| $1 | $4 | the mutation no longer applies to $2 |" && bad=1 && return 0
    fi
    $compile -o "$work/mutant" "$work"/*.o "$work/mutated.c" $libraries $(pkg-config --libs $packages) -lpthread -lm || exit 4
    simulate --seeds "$seeds"
    case $status in
    0) echo "| $1 | $4 | NOT FOUND in $seeds seeds |" && bad=1 && return 0 ;;
    1) ;;
    *) echo "| $1 | $4 | the machine ends with status $status |" && bad=1 && return 0 ;;
    esac
    seed=$(field 1) invariant=$(field 2) message=$(field 3 | cut -c1-90) command=$(field 4)
    simulate ${command#rondo simulate}
    again="" && [ "$status" = 1 ] && [ "$(field 2)" = "$invariant" ] || { again=" (NOT REPEATED by $command)" && bad=1; }
    echo "| $1 | $4 | $seed | $invariant: $message$again |"
}

echo "| mutation | rule that is removed | seed | what breaks |"
echo "| --- | --- | --- | --- |"
mutation lock member_vote.c 's/if (m->lock && !value_is(m->lock, "record", cid)/if (false \&\& !value_is(m->lock, "record", cid)/' \
    "who is locked on a record prepares another only for a later certificate"
mutation lock_lost member.c 's/replace(&m->lock, json_incref(json_object_get(durable, "lock")))/(void)0/' \
    "the lock comes back after a restart"
mutation blind_leader member_vote.c 's/if (lock_view(lock) > lock_view(best) &&/if (false \&\&/' \
    "a leader proposes the highest lock that it is told of"
mutation write_first member_vote.c '/^static void vote(/,/^}/s/member_persist(m);//' \
    "a vote is on disk before it is sent"
mutation write_enter member_vote.c '/^static void enter(/,/^}/s/member_persist(m);//' \
    "a view and what is listed in it are on disk before they are sent"
mutation write_copy member.c 's/json_copy(m->own)/json_incref(m->own)/' \
    "a write holds what was said up to it, not what the same step says later"
mutation old_view member.c 's/m->view = value_integer(durable, "view");/m->view = value_integer(durable, "view") < 0 ? -1 : 0;/' \
    "who comes back votes in its view, never below"
mutation jump_back member_vote.c '/^bool member_rule_jump/,/^}/s/view <= m->view/view == m->view || view < 0/' \
    "nobody goes back to a lower view"
mutation jump_one member_vote.c 's/view_seen(m, m->quorum.t)/view_seen(m, 1)/' \
    "a view is jumped to when t members are there"
mutation quorum committee.c 's/\.n = n, \.q = q, /.n = n, .q = q > 1 ? q - 1 : q, /' \
    "two quorums share an honest member"
mutation height member_vote.c 's/return knows_head(m) && value_integer(record, "next_height") > value_integer(m->head, "height")/return true/' \
    "the block of the next seed lies ahead when a record is voted for"
mutation arrival received.c 's/if (size >= t) {/if (size >= 1) {/' \
    "an item is taken when t members list it"
mutation duplicate certificate.c 's/strcmp(before, did) < 0 &&/strcmp(before, did) <= 0 \&\&/' \
    "a signer counts once in a certificate"
mutation stranger certificate.c 's/ && value_lists(committee, did);/;/' \
    "only members of the committee count in a certificate"
mutation unfit certificate.c 's/value_is(vote, "record", value_text(certificate, "record"));/true;/' \
    "votes in a certificate are for its record"
mutation too_few certificate.c 's/!= quorum.q)/> quorum.q)/' \
    "a certificate has q votes"
mutation unjudged member_vote.c 's/bool valid = outcome == RECORD_MADE && json_equal(made, record);/bool valid = outcome == RECORD_MADE;/' \
    "a record is computed again before it is voted for"
mutation early_skip member_vote.c 's/(!value_is(record, "reason", "forced") || m->view >= m->quorum.n)/true/' \
    "a forced skip is prepared from view n on only"
mutation amnesia member.c 's/ && (m->round == 0 || !m->unproven)//' \
    "who lost its disk abstains until a record lists its new enrolment"
mutation twice record.c 's/if (ok > 1)/if (ok > 9)/' \
    "two contributions of one trainer are both refused"
mutation few record_fold.c 's/if (accepted < (size_t)amendment_quorum(.*))$/if (!accepted)/' \
    "a round below its quorum is skipped"
mutation kept_lie fold.c 's/if (!fold_is_removed(convicted/if (true || !fold_is_removed(convicted/' \
    "a fold leaves out what the convicted gave"
mutation uncorrected record.c 's/            m->correct = at;/            (void)at;/' \
    "a conviction folds again from the round of the lie"
mutation window record.c 's/round + m->rules->challenge_rounds <= m->round/round <= m->round/' \
    "nothing is released before its window is over"
mutation shown dispute.c 's/"trace", trace_shown(j, cid, index), "left"/"trace", NULL, "left"/' \
    "a dispute about a step that was opened before begins with that trace"
mutation upheld dispute.c 's/^    if (!strcmp(code, "upheld"))$/    if (false)/' \
    "who says that it computed what nobody can is convicted by the challenge itself"
mutation late dispute.c 's/return round > value_integer(entry, "round") + rules->challenge_rounds &&/return false \&\&/' \
    "a challenge counts until challenge_rounds records after its round, and no later"
mutation paid_liar payout.c 's/if (!is_removed(convicted/if (true || !is_removed(convicted/' \
    "the convicted are not paid"
mutation framed certificate.c 's/if (value_integer(a, "view") != value_integer(b, "view"))/if (false)/' \
    "only statements of one view contradict each other"
mutation commitment_key replica.c 's/value_hash(contribution, "rondo\/commitment", digest)/replica_result(contribution, digest)/' \
    "a commitment is to what its signer alone could sign"
mutation shown_early trainer_closed.c 's/committee_quorum(t->rules, t->committee).q/committee_quorum(t->rules, t->committee).t/' \
    "nothing is shown before q members have closed"
mutation write_closed member_closed.c 's/member_persist(m);//' \
    "what a member held when it closed is on disk before it is sent"
mutation alone replica.c 's/if (value_integer(of, "") < 2)/if (false)/; s/json_integer_value(alike) >= 2 && //' \
    "what one machine of a group gave is not accepted"
mutation fold_twice fold.c 's/ || json_object_get(groups, group))/)/' \
    "a group is folded once"
mutation differs_paid payout.c 's/if (json_object_get(item, "code"))/if (false)/' \
    "a group that does not agree is not paid"
mutation rubbish membership.c 's/if (value_is(line, "code", "ok") || .*/if (true)/' \
    "who sends what is refused was away"
mutation claim membership.c 's/claim_stands(payload) ?/true ?/' \
    "a trainer of a replicated run is taken with its account's signature only"
mutation trial replica.c 's/if (value_integer(machine, "trial") > trial)/if (false)/' \
    "no group depends on who was away or has just come"
mutation turn member_replay.c 's/return m->judging.whose..round == m->round &&/return false \&\&/; s/"round"), whose == OF_PANEL)/"round"), false)/; s/json_object_get(m->false_claims, signer) ? "" : NULL/NULL/' \
    "what the panel challenges is replayed first, for others one contribution at a time, and for who accused falsely none"
mutation owed member_collect.c 's/"round") + m->rules->challenge_rounds < m->round/"round") + 1 < m->round/' \
    "a replay that the seed drew counts also when it lasts longer than the round"
[ "$bad" = 0 ]
