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
echo '{"hash": "00", "run": "none", "runfile": "other.lua", "version": 1}' >"$folder/home/run.json"
refused 3 "holds a run of other.lua" "$rondo" local tests/end_to_end/tiny.lua --home "$folder/home"
refused 2 "no path" "$rondo" key new --name ../evil --home "$folder/home"
refused 2 "no path" "$rondo" key show --name .. --home "$folder/home"
refused 2 "no path" "$rondo" trainer bafk --name a/b --home "$folder/home"
if [ -e "$folder/home/evil" ]; then
    echo "a key was written outside nodes/"
    exit 1
fi
