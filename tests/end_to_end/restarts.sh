#!/bin/sh
# A syncer killed at each phase, the leader included, in the middle of a step and after it, and started again: it votes again, signs
# nothing twice, and the run ends as one that nobody disturbed. A trainer killed in the middle of its work, and the ledger, likewise.
. "$(dirname "$0")/lib/network.sh"

run_file short -e 's/rounds = 3/rounds = 2/' -e 's/trainers = 3, syncers/trainers = 2, syncers/' -e 's/budget = "3000"/budget = "2000"/'
prepare "$T/short.lua"

start_all() {
    rm -rf "$H/nodes" "$H/ledger"
    cp -r "$T/prepared/nodes" "$T/prepared/ledger" "$H/"
    rm -f "$T"/log/*
    PEER=
    ledger
    sponsor
    for name in $1; do node syncer "$name"; done
    for name in trainer-1 trainer-2; do [ "$name" = "${2:-}" ] || node trainer "$name"; done
}
state_of() { finals "$1" | sed -n 's/^2 train //p'; }

mkdir "$T/prepared"
cp -r "$H/nodes" "$H/ledger" "$T/prepared/"
start_all 'syncer-1 syncer-2 syncer-3 syncer-4'
agree syncer-1 syncer-2 syncer-3 syncer-4
good=$(state_of syncer-1)
[ -n "$good" ] || fail "the undisturbed run: $(finals syncer-1)"
say "undisturbed: $good"
crash_all

for moment in die/await_entropy/1 die/training/1 die_before/collecting/1 die/voting/1/leads die_before/voting/2/leads; do
    start_all ''
    for name in syncer-1 syncer-2 syncer-3 syncer-4; do
        PROGRAM=$LIAR LIE=$moment node syncer $name
        # The leader is not known before: all are ready to die, the first who does is the one.
        case $moment in *leads) ;; *) break ;; esac
    done
    case $moment in *leads) ;; *) for name in syncer-2 syncer-3 syncer-4; do node syncer $name; done ;; esac
    died=
    for _ in $(seq 1200); do
        for name in syncer-1 syncer-2 syncer-3 syncer-4; do
            kill -0 "$(pid_of $name)" 2>/dev/null || died=$name
        done
        [ -z "$died" ] || break
        sleep 0.05
    done
    [ -n "$died" ] || fail "$moment: nobody died"
    gone $died
    node syncer $died
    agree syncer-1 syncer-2 syncer-3 syncer-4
    [ "$(state_of syncer-2)" = "$good" ] || fail "$moment: another state: $(finals syncer-2)"
    say "$moment: $died came back"
    crash_all
done

start_all 'syncer-1 syncer-2 syncer-3 syncer-4' trainer-2
PROGRAM=$LIAR LIE=die/training/2 node trainer trainer-2
wait "$(pid_of trainer-2)" || true
gone trainer-2
crash ledger
sleep 1
ledger
node trainer trainer-2
agree syncer-1 syncer-2 syncer-3 syncer-4
[ "$(state_of syncer-1)" = "$good" ] || fail "trainer and ledger: another state: $(finals syncer-1)"
say "trainer killed while it trained, ledger killed: the same state"
crash_all

# Two members die when everything is decided and before they have signed the last release: it waits for one of them.
start_all 'syncer-1 syncer-2'
for name in syncer-3 syncer-4; do PROGRAM=$LIAR LIE=die_before/done/5 node syncer $name; done
for name in syncer-3 syncer-4; do
    wait "$(pid_of $name)" || true
    gone $name
done
await syncer-1 '"phase":"done"'
sleep 3
[ "$(count syncer-1 '"event":"done"')" = 0 ] || fail "two of four released"
for name in syncer-3 syncer-4; do node syncer $name; done
agree syncer-1 syncer-2 syncer-3 syncer-4
say "the last release waited for a third signature"
