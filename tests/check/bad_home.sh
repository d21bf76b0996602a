#!/bin/sh
# A home that holds another run, and names of nodes that would leave it, are refused with one clear line.
set -u
rondo=${RONDO_BUILD:-build}/rondo
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# refused STATUS WORDS COMMAND...: the command ends with the status and its message holds the words.
refused() {
    want=$1 words=$2
    shift 2
    status=0
    "$@" >"$folder/out" 2>"$folder/err" </dev/null || status=$?
    if [ "$status" -ne "$want" ] || ! grep -q -- "$words" "$folder/err"; then
        echo "$*: status $status, wanted $want and \"$words\":"
        cat "$folder/err"
        exit 1
    fi
}

mkdir "$folder/home"
echo '{"hash": "00", "run": "bafk2bzacebe4x2yndbrxu7jbydg4dkcbqcc5g6hvykufbgy3j26pe2oaqqoyo", "runfile": "other.lua", "version": 1}' >"$folder/home/run.json"
refused 3 "holds a run of other.lua" "$rondo" local tests/end_to_end/tiny.lua --home "$folder/home"
echo '{"hash": "00", "run": "bafk' >"$folder/home/run.json"
refused 3 "run.json: it is damaged" "$rondo" local tests/end_to_end/tiny.lua --home "$folder/home"
refused 2 "no path" "$rondo" key new --name ../evil --home "$folder/home"
refused 2 "no path" "$rondo" key show --name .. --home "$folder/home"
refused 2 "no path" "$rondo" trainer bafk --name a/b --home "$folder/home"
refused 3 "rondo key new" "$rondo" trainer bafk --home "$folder/home" --peer http://127.0.0.1:1
refused 3 "is not a content id" "$rondo" audit bafk --home "$folder/home"
unknown=bafk2bzacebe4x2yndbrxu7jbydg4dkcbqcc5g6hvykufbgy3j26pe2oaqqoyo
"$rondo" key new --name syncer-1 --home "$folder/home" >"$folder/out" 2>&1
refused 3 "does not know the run (name a node of the run to fetch it from: --peer URL" "$rondo" syncer "$unknown" --name syncer-1 --home "$folder/home"

# A home that is a file.
echo >"$folder/file"
refused 3 "a folder is needed" "$rondo" local tests/end_to_end/tiny.lua --home "$folder/file"
if "$rondo" doctor --home "$folder/file" >"$folder/out" 2>&1 || ! grep -q "FAIL  home .*a folder is needed" "$folder/out"; then
    cat "$folder/out"
    exit 1
fi

# A home of somebody else is not an empty one: nobody is told to make new keys for it.
if other="setpriv --reuid=65534 --regid=65534 --clear-groups" && $other "$rondo" --version >"$folder/out" 2>&1; then
    mkdir -p "$folder/other/nodes"
    refused 4 "this user may not look into it" $other "$rondo" status --home "$folder/other"
    refused 4 "this user may not look into it" $other "$rondo" run list --home "$folder/other"
    refused 4 "this user may not look into it" $other "$rondo" audit "$unknown" --home "$folder/other"
    refused 4 "Permission denied" $other "$rondo" key show --name syncer-1 --home "$folder/other"
fi

# A node that cannot be read is listed, not left out.
mkdir -p "$folder/damaged/nodes/syncer-1"
head -c 4096 /dev/urandom >"$folder/damaged/nodes/syncer-1/node.db"
if "$rondo" run list --home "$folder/damaged" >"$folder/out" 2>&1 || ! grep -q "^syncer-1 .*DAMAGED: " "$folder/out"; then
    cat "$folder/out"
    exit 1
fi

# A place is told once.
"$rondo" sync bafk2bzacebe4x2yndbrxu7jbydg4dkcbqcc5g6hvykufbgy3j26pe2oaqqoyo --peer http://127.0.0.1:1 --home "$folder/sync" >"$folder/out" 2>&1
if [ "$(grep -o "http://127.0.0.1:1" "$folder/out" | wc -l)" -ne 1 ]; then
    cat "$folder/out"
    exit 1
fi
if [ -e "$folder/home/evil" ]; then
    echo "a key was written outside nodes/"
    exit 1
fi
