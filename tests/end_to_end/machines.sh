#!/bin/sh
# Two machines: the trainers' home shares nothing with the syncers' home, and nobody can reach the trainers: they give an address behind
# which nothing listens. They fetch what they need and push what they make; the run ends as usual and they are paid.
. "$(dirname "$0")/lib/network.sh"

run_file short -e 's/rounds = 3/rounds = 2/' -e 's/trainers = 3, syncers/trainers = 2, syncers/' -e 's/budget = "3000"/budget = "2000"/'
prepare "$T/short.lua"
mkdir -p "$T/far/nodes"
for name in trainer-1 trainer-2; do
    mkdir "$T/far/nodes/$name"
    mv "$H/nodes/$name/key.json" "$T/far/nodes/$name/"
    rm -rf "$H/nodes/$name"
done
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
at=1
for name in trainer-1 trainer-2; do
    HOME_OF=$T/far node trainer $name --listen 127.0.0.1 --endpoint "http://127.0.0.1:$at"
    at=$((at + 1))
done
agree syncer-1 syncer-2 syncer-3 syncer-4
[ "$(finals syncer-1 | grep -c ' train ')" = 2 ] || fail "$(finals syncer-1)"
await trainer-1 '"event":"done"' 30
await trainer-2 '"event":"done"' 30
for round in 1 2; do
    expect_code $round trainer-1 ok
    expect_code $round trainer-2 ok
done
paid trainer-1 && paid trainer-2 || fail "a trainer was not paid"
[ "$(finals trainer-1)" = "$(finals syncer-1)" ] || fail "the trainer saw another run"
say "two homes, unreachable trainers: both accepted and paid"
