#!/bin/sh
# A run over TLS between nodes that trust no authority, with trainers that listen nowhere: each server has a certificate of its own, its
# fingerprint stands in its enrolment or in the URL that is given, and another fingerprint is refused by name.
. "$(dirname "$0")/lib/network.sh"

run_file short -e 's/rounds = 3/rounds = 2/' -e 's/trainers = 3, syncers/trainers = 2, syncers/' -e 's/budget = "3000"/budget = "2000"/'
prepare "$T/short.lua"
LEDGER_OPTION=--tls ledger
sponsor --tls
for url in "$LEDGER" "$PEER"; do
    case $url in https://127.0.0.1:*\#sha256=????????????????????????????????????????????????????????????????) ;; *) fail "no pinned URL: $url" ;; esac
done

# refused LOG CODE COMMAND...: exit status 3 and this code
refused() {
    said=$1 code=$2 status=0
    shift 2
    "$@" >"$T/log/$said" 2>&1 || status=$?
    [ $status = 3 ] && grep -q "\"code\":\"$code\"" "$T/log/$said" || fail "$said: status $status, $(cat "$T/log/$said")"
}
wrong=$(printf '%s' "$PEER" | sed 's/sha256=.*/sha256=0000000000000000000000000000000000000000000000000000000000000000/')
refused wrong-peer mismatch "$RONDO" trainer "$RUN" --home "$H" --name trainer-1 --no-listen --ledger "$LEDGER" --peer "$wrong" --json
grep -q 'not the one that was promised' "$T/log/wrong-peer" || fail "$(cat "$T/log/wrong-peer")"
refused no-pin syntax "$RONDO" trainer "$RUN" --home "$H" --name trainer-1 --no-listen --ledger "$LEDGER" --peer "${PEER%??}" --json
status=0
"$RONDO" syncer "$RUN" --home "$H" --name syncer-1 --no-listen --ledger "$LEDGER" --json >"$T/log/usage" 2>&1 || status=$?
[ $status = 2 ] || fail "a syncer that listens nowhere: status $status"
status=0
"$RONDO" syncer "$RUN" --home "$H" --name syncer-1 --listen 0.0.0.0 --ledger "$LEDGER" --json >"$T/log/usage" 2>&1 || status=$?
[ $status = 2 ] || fail "plain HTTP to everybody, not asked for: status $status"

for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name --tls; done
for name in trainer-1 trainer-2; do node trainer $name --no-listen; done
await syncer-1 '"phase":"training","round":1'
# A stranger reads with the pin alone, and gets nothing without TLS.
node=$(sed -n 's/.*"event":"ready".*"endpoint":"\([^"]*\)".*/\1/p' "$T/log/syncer-1" | tail -1)
curl -s -m 5 -o /dev/null "http${node#https}" && fail "plain HTTP was answered"
"$RONDO" status "$node" --json >"$T/status" || fail "status: $(cat "$T/status")"
"$RONDO" status --home "$H" >"$T/status" || fail "status of the home"
[ "$(grep -c 'listens nowhere' "$T/status")" = 2 ] || fail "$(cat "$T/status")"
# One URL is enough: the others' fingerprints stand in their enrolments.
"$RONDO" watch "$node" --once --json >"$T/watch" || fail "watch: $(cat "$T/watch")"
[ "$(grep -o '"role":"syncer","endpoint":"[^"]*","answers":true' "$T/watch" | wc -l)" = 4 ] || fail "$(cat "$T/watch")"
for name in trainer-1 trainer-2; do
    ls -l "/proc/$(pid_of $name)/fd" | grep -o 'socket:\[[0-9]*\]' | tr -dc '0-9\n' >"$T/sockets"
    awk '$4 == "0A" { print $10 }' /proc/net/tcp /proc/net/tcp6 | grep -qxFf "$T/sockets" && fail "$name listens"
done
agree syncer-1 syncer-2 syncer-3 syncer-4
for round in 1 2; do for name in trainer-1 trainer-2; do expect_code $round $name ok; done; done
say "two rounds over TLS, by trainers that listen nowhere"
