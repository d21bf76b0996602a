#!/bin/sh
# backup.sh: a damaged folder is named file by file and repaired; a node goes on from a copy of its folder.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; cat "$work/out" 2>/dev/null | tail -20; exit 1; }

"$rondo" local tests/end_to_end/tiny.lua --home "$work/home" --quiet --json >"$work/local" || fail "the run itself"
node=$work/home/nodes/syncer-1
"$rondo" node check --home "$work/home" --json >"$work/out" || fail "a sound home is found damaged"
grep -q '"ok":true' "$work/out" || fail "not ok"

# One block and one document with another byte, a document that is gone, what a broken write left, a model of other bytes, a stray file.
block=$(ls "$node/blocks" | head -1)
printf x >>"$node/blocks/$block"
first=$(ls "$node/documents" | head -1)
second=$(ls "$node/documents" | sed -n 2p)
printf x >>"$node/documents/$first"
rm "$node/documents/$second"
touch "$node/blocks/$block.77.part" "$node/documents/notes.txt"
model=$(find "$node/models" -type f | head -1)
printf x >>"$model"
"$rondo" node check syncer-1 --home "$work/home" >"$work/out" && fail "a damaged folder is found sound"
for path in "$node/blocks/$block" "$node/documents/$first" "$node/documents/$second" "$node/blocks/$block.77.part" \
    "$node/documents/notes.txt" "$model"; do
    grep -q "^  $path$" "$work/out" || fail "it does not name $path"
done
rm "$node/documents/notes.txt"
"$rondo" node check syncer-1 --home "$work/home" --repair >"$work/out" || [ $? -eq 1 ] || fail "repair"
[ ! -e "$node/blocks/$block" ] && [ ! -e "$node/documents/$first" ] && [ ! -e "$model" ] || fail "what is damaged is still there"
"$rondo" node check syncer-1 --home "$work/home" >"$work/out" || grep -q "decided round names it" "$work/out" ||
    fail "something else than what must be fetched is left"

# A copy, and the same again; then the node is only its copy.
"$rondo" node backup syncer-2 "$work/copy" --home "$work/home" --json >"$work/out" || fail "backup"
grep -q '"copied":{"blocks":[1-9]' "$work/out" || fail "nothing was copied"
"$rondo" node backup syncer-2 "$work/copy" --home "$work/home" --json >"$work/out" || fail "backup again"
grep -q '"copied":{"blocks":0,"documents":0}' "$work/out" || fail "the second copy copies what is there"
"$rondo" node backup syncer-3 "$work/copy" --home "$work/home" >"$work/out" 2>&1 && fail "two nodes in one copy"
grep -q "copy of another node" "$work/out" || fail "it does not say why"
[ "$(stat -c %a "$work/copy/key.json")" = 600 ] || fail "others may read the key"
rm -rf "$work/home/nodes/syncer-2"
cp -a "$work/copy" "$work/home/nodes/syncer-2"
"$rondo" node check syncer-2 --home "$work/home" >"$work/out" || fail "the copy is damaged"
rm -rf "$work/home/nodes/syncer-1"
run=$(sed -n 's/.*"run":"\([a-z0-9]*\)".*/\1/p' "$work/local" | tail -1)
"$rondo" audit "$run" --home "$work/home" --quiet --json >"$work/out" || fail "an audit of the restored home"
echo "damage is named and repaired, and a copy takes a folder's place"
