#!/bin/sh
# pretrain.sh: make the pocket model from nothing: first weights, corpora, and the run that trains it.
# usage: sh tools/pocket/pretrain.sh [--input-only]      --input-only stops when the input lies in build/pocket
#
#   build/pocket/start/           configuration, tokenizer, template, first weights
#   build/pocket/start.jsonl      0.6 M tokens of copying and recalling only: without them the full mix stays on a plateau
#   build/pocket/corpus.jsonl     14.3 M tokens of the full mix
set -eu
cd "$(dirname "$0")/../.."
folder=build/pocket

mkdir -p $folder/start
for file in config.json tokenizer.json tokenizer_config.json chat_template.jinja; do
    cp models/pocket/$file $folder/start/
done

# make FILE COMMAND...: the command's output, made once, whole or not at all.
make() {
    [ -f "$1" ] && return
    file=$1
    shift
    "$@" >"$file.part"
    mv "$file.part" "$file"
}
make $folder/start/model.safetensors luajit tools/pocket/init.lua 1
make $folder/start.jsonl luajit tools/pocket/corpus.lua 1 1800000 start
make $folder/corpus.jsonl luajit tools/pocket/corpus.lua 31 50500000 full
[ "${1:-}" = --input-only ] && exit 0

# adapter RESULT: the folder that a result names.
adapter() { sed 's/.*"adapter":"\([^"]*\)".*/\1/' "$1"; }

build/rondo fit scripts/runs/pocket_start.lua --home $folder/stage-1 --json >$folder/stage-1.json
mkdir -p $folder/stage
cp $folder/start/*.json $folder/start/*.jinja $folder/stage/
cp "$(adapter $folder/stage-1.json)/model.safetensors" $folder/stage/
build/rondo fit scripts/runs/pocket_pretrain.lua --home $folder/stage-2 --json >$folder/stage-2.json
echo "the model: $(adapter $folder/stage-2.json)/model.safetensors"
