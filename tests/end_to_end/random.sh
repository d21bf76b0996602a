#!/bin/sh
# Some node is killed at a moment that nobody chose, ten times, and started again each time: nothing is signed twice, and the run ends
# with every contribution. A worker that is killed is replaced.
. "$(dirname "$0")/lib/network.sh"

run_file short -e 's/rounds = 3/rounds = 2/' -e 's/trainers = 3, syncers/trainers = 2, syncers/' -e 's/budget = "3000"/budget = "2000"/' \
    -e 's/inner_steps = 3/inner_steps = 40/' -e 's/round_ms = 60000/round_ms = 300000/'
prepare "$T/short.lua"
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
for name in trainer-1 trainer-2; do node trainer $name; done

# A number from 0 to N - 1; the seed is told, so that the same moments can be tried again.
seed=${RANDOM_SEED:-$(date +%s)}
draw() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    echo $((seed / 65536 % $1))
}
say "RANDOM_SEED=$seed"
await trainer-1 '"phase":"training","round":1'
sleep 0.5
for worker in $(pgrep -P "$(pid_of trainer-1)"); do kill -9 "$worker"; done # the node starts another and trains again
for _ in 1 2 3 4 5 6 7 8 9 10; do
    draw 20 >"$T/n"
    sleep "$(awk "BEGIN { print $(cat "$T/n") / 10 }")"
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    case $((seed / 65536 % 6)) in
    0 | 1 | 2 | 3) name=syncer-$((seed / 65536 % 6 + 1)) role=syncer ;;
    4) name=trainer-1 role=trainer ;;
    *) name=trainer-2 role=trainer ;;
    esac
    crash $name
    node $role $name
done
agree syncer-1 syncer-2 syncer-3 syncer-4
[ "$(finals syncer-1 | grep -c ' train ')" = 2 ] || [ "$(cat "$T"/finals-* | sort -u | grep -c ' train ')" = 2 ] || fail "$(cat "$T"/finals-*)"
expect_code 1 trainer-1 ok
say "killed ten times: $(cat "$T"/finals-* | sort -u | sed -n 's/^2 train //p')"
