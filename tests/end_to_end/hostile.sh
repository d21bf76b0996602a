#!/bin/sh
# A node that strangers talk to while a round runs: bodies over the limit, garbage, clients that say nothing, blocks that nobody named,
# documents of strangers. Each is refused with its code, and the round does not notice.
. "$(dirname "$0")/lib/network.sh"

run_file short -e 's/rounds = 3/rounds = 2/' -e 's/trainers = 3, syncers/trainers = 2, syncers/' -e 's/budget = "3000"/budget = "2000"/'
prepare "$T/short.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
for name in trainer-1 trainer-2; do node trainer $name; done
await syncer-1 '"phase":"training","round":1'
node=$(sed -n 's/.*"event":"ready".*"endpoint":"\([^"]*\)".*/\1/p' "$T/log/syncer-1" | tail -1)
port=${node##*:}

# expect STATUS CODE CURL...: the answer's status and its problem code
expect() {
    status=$1 code=$2
    shift 2
    got=$(curl -s -o "$T/answer" -w '%{http_code}' "$@" || true)
    [ "$got" = "$status" ] || fail "$*: status $got, not $status: $(head -c 300 "$T/answer")"
    [ -z "$code" ] || grep -q "\"code\":\"$code\"" "$T/answer" || fail "$*: $(head -c 300 "$T/answer")"
}
block=bafk2bzaceakmfkqmw3fjpqa7h2bvh7euxhbrb5fg3zfq3jkpvtsh4wmb7hvqk
head -c 2000000 /dev/zero >"$T/big"
head -c 20000000 /dev/zero >"$T/bigger"
expect 413 limit -X PUT --data-binary "@$T/big" "$node/v1/blocks/$RUN"
expect 413 limit -X POST --data-binary "@$T/bigger" "$node/v1/documents"
expect 403 refused -X PUT --data-binary hello "$node/v1/blocks/$RUN"
expect 400 syntax -X PUT --data-binary hello "$node/v1/blocks/notacid"
expect 400 syntax -X POST --data-binary '{"documents":[' "$node/v1/documents"
expect 400 duplicate -X POST --data-binary '{"a":1,"a":2}' "$node/v1/documents"
expect 404 '' "$node/v1/blocks/$RUN"
expect 404 '' "$node/v1/nothing"
expect 405 '' -X DELETE "$node/v1/status"
expect 404 unknown "$node/v1/runs/$block"
expect 404 missing "$node/v1/runs/$RUN/rounds/99"
expect 400 '' "$node/v1/runs/$RUN/rounds/x"
for document in 1 null '"x"' '[]' '{}' '{"payload":5}'; do # a document is an object with a signature
    expect 400 '' -X POST --data-binary "{\"documents\":[$document]}" "$node/v1/documents"
done

# Documents of strangers: enrolments and contributions of the same spec with other keys, signed in order. Of another run, and of nobody who
# may enrol, as the same run with another trainer's key would be.
mine=$H mine_run=$RUN
H=$T/strangers
SEED=strangers
prepare "$T/short.lua"
stranger=$RUN
H=$mine
RUN=$mine_run
mkdir -p "$T/outside/nodes/trainer-1"
cp "$T/strangers/nodes/trainer-1/key.json" "$T/outside/nodes/trainer-1/"
HOME_OF=$T/outside LIE= launch outsider "$RONDO" trainer "$RUN" --home "$T/outside" --name trainer-1 --ledger "$LEDGER" --peer "$PEER" \
    --threads 1 --json
await outsider '"did":'
one=$(grep -l "$(did_of outsider)" "$T"/outside/nodes/trainer-1/documents/* | head -1)
[ -n "$one" ] || fail "the outsider made no enrolment"
printf '{"documents":[%s]}' "$(cat "$one")" >"$T/message"
expect 403 refused -X POST --data-binary "@$T/message" "$node/v1/documents"

for i in $(seq 200); do
    head -c $((i * 37)) /dev/urandom >"$T/garbage"
    curl -s -o /dev/null -m 5 -X POST --data-binary "@$T/garbage" "$node/v1/documents" || true
    [ $((i % 20)) != 0 ] || (head -c 4000 /dev/urandom | curl -s -m 2 "telnet://127.0.0.1:$port" >/dev/null 2>&1 || true)
done &
garbage=$!
# Clients that begin a request and say no more.
for i in $(seq 20); do
    (printf 'POST /v1/documents HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{'; sleep 15) | curl -s -m 20 "telnet://127.0.0.1:$port" >/dev/null 2>&1 &
    echo $! >"$T/pid/slow-$i"
done
wait $garbage
# What was refused is counted, and the text is what Prometheus reads.
curl -s -m 5 "$node/metrics" >"$T/metrics"
if grep -vE '^(# (HELP|TYPE) rondo_[a-z_]+ .+|rondo_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.e+-]+)$' "$T/metrics"; then fail "a line of /metrics"; fi
for line in 'rondo_http_problems_total{code="refused"}' 'rondo_http_problems_total{code="syntax"}' 'rondo_documents_total{type="enrolment"}' \
    'rondo_build_info{version='; do
    grep -qF "$line" "$T/metrics" || fail "no $line in $(cat "$T/metrics")"
done
agree syncer-1 syncer-2 syncer-3 syncer-4
[ "$(finals syncer-1 | grep -c ' train ')" = 2 ] || fail "$(finals syncer-1)"
say "200 pieces of garbage, 20 silent clients: both rounds were trained ($stranger is somebody else's)"
