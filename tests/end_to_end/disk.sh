#!/bin/sh
# A full disk: one syncer and one trainer whose folders lie on a small file system that fills up in the middle of the run. They stop, or
# wait, with a clear message and lose nothing; when there is space they go on, and nobody signs twice.
. "$(dirname "$0")/lib/network.sh"

mkdir "$T/small"
mount -t tmpfs -o size=24m none "$T/small" 2>/dev/null || { echo "no right to mount a file system"; exit 77; }
run_file short -e 's/rounds = 3/rounds = 2/' -e 's/trainers = 3, syncers/trainers = 2, syncers/' -e 's/budget = "3000"/budget = "2000"/'
prepare "$T/short.lua"
mkdir "$T/small/nodes"
for name in syncer-1 trainer-1; do
    mv "$H/nodes/$name" "$T/small/nodes/"
    ln -s "$T/small/nodes/$name" "$H/nodes/$name"
done
ledger
sponsor
for name in syncer-1 syncer-2 syncer-3 syncer-4; do node syncer $name; done
for name in trainer-1 trainer-2; do node trainer $name; done
await syncer-1 '"phase":"training","round":1'
dd if=/dev/zero of="$T/small/ballast" bs=4096 2>/dev/null || true
for _ in $(seq 400); do
    kill -0 "$(pid_of syncer-1)" 2>/dev/null || break
    sleep 0.05
done
if kill -0 "$(pid_of syncer-1)" 2>/dev/null; then fail "the syncer goes on without a disk"; fi
status=0
wait "$(pid_of syncer-1)" || status=$?
[ $status = 4 ] || fail "status $status"
grep -q -i "full\|no space" "$T/log/syncer-1.err" || fail "no clear message: $(cat "$T/log/syncer-1.err")"
say "$(tail -n 1 "$T/log/syncer-1.err" | cut -c1-200)"
gone syncer-1
sleep 1
rm "$T/small/ballast"
node syncer syncer-1
kill -0 "$(pid_of trainer-1)" 2>/dev/null || { gone trainer-1; node trainer trainer-1; }
agree syncer-1 syncer-2 syncer-3 syncer-4
finals syncer-1 | grep -q '^2 train' || fail "$(finals syncer-1)"
say "went on when there was space"
