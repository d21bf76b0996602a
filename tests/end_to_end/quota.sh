#!/bin/sh
# Blocks of rounds that are over are dropped: by a syncer and a trainer with a quota while the run goes on, by `rondo node gc` from a stopped
# folder, and not from one that is pinned. A syncer that dropped them and is killed goes on, and all decide the same. On a full disk, a node with
# a quota makes its own room. What a home has dropped is told to who wants to recompute it.
. "$(dirname "$0")/lib/network.sh"

run_file long -e 's/rounds = 3/rounds = 7/' -e 's/trainers = 3, syncers/trainers = 2, syncers/' -e 's/budget = "3000"/budget = "7000"/'
prepare "$T/long.lua"
ledger
sponsor
node syncer syncer-1
node syncer syncer-2 --quota 1
node syncer syncer-3
node syncer syncer-4
node trainer trainer-1 --quota 1
node trainer trainer-2
await syncer-2 '"event":"collected","role":"syncer".*"dropped_bytes":[1-9]' 300
crash syncer-2
node syncer syncer-2 --quota 1
await trainer-1 '"event":"collected".*"dropped_bytes":[1-9]' 300
agree syncer-1 syncer-2 syncer-3 syncer-4

mkdir "$T/small"
if mount -t tmpfs -o size=48m none "$T/small" 2>/dev/null; then
    stop syncer-4
    mv "$H/nodes/syncer-4" "$T/small/"
    ln -s "$T/small/syncer-4" "$H/nodes/syncer-4"
    dd if=/dev/zero of="$T/small/ballast" bs=4096 2>/dev/null || true
    before=$(find "$T/small/syncer-4/blocks" -type f | wc -l)
    said=$(count syncer-4 '"event":"done"')
    node syncer syncer-4 --quota 1
    await syncer-4 '"event":"done"' 60 $((said + 1))
    [ "$(find "$T/small/syncer-4/blocks" -type f | wc -l)" -lt "$before" ] || fail "nothing made room"
    say "a full disk: room was made at the start"
fi
for name in syncer-1 syncer-2 syncer-3 syncer-4 trainer-1 trainer-2 sponsor; do stop $name; done

blocks() { find "$H/nodes/$1/blocks" -type f | wc -l; }
gc() {
    "$RONDO" node gc "$RUN" --home "$H" --name "$1" --json >"$T/gc" || fail "gc: $(cat "$T/gc")"
}
before=$(blocks syncer-1)
[ "$(blocks syncer-2)" -lt "$before" ] || fail "a quota dropped nothing"
"$RONDO" node pin "$RUN" --home "$H" --name syncer-1 --quiet >/dev/null || fail "pin"
gc syncer-1
[ "$(blocks syncer-1)" = "$before" ] && grep -q '"pinned":true' "$T/gc" || fail "a pinned run was collected: $(cat "$T/gc")"
"$RONDO" node pin "$RUN" --home "$H" --name syncer-1 --off --quiet >/dev/null || fail "pin --off"
gc syncer-1
[ "$(blocks syncer-1)" -lt "$before" ] || fail "gc dropped nothing: $(cat "$T/gc")"
# syncer-3 kept everything: the whole run can still be audited with it.
"$RONDO" audit "$RUN" --home "$H" --quiet --json >"$T/audit" || fail "audit: $(cat "$T/audit")"
say "of $before blocks syncer-2 holds $(blocks syncer-2); the run went on, and can be audited"

mkdir -p "$T/alone/nodes"
cp -r "$H/nodes/syncer-2" "$T/alone/nodes/"
cp -r "$H/ledger" "$T/alone/"
status=0
"$RONDO" replay "$RUN" 1 --home "$T/alone" --quiet >"$T/replay" 2>&1 || status=$?
[ $status != 0 ] && grep -q 'no node of this home has block b.*syncer-2 dropped rounds up to.*without --quota' "$T/replay" ||
    fail "replay of what was dropped: status $status, $(cat "$T/replay")"
say "$(cat "$T/replay")"
