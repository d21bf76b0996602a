#!/bin/sh
# Model files that are cut short or lie are refused in one line that names the file and the place.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

# copy NAME: a pocket model to spoil, in $model.
copy() {
    model=$work/$1
    mkdir "$model"
    cp models/pocket/*.json models/pocket/*.jinja models/pocket/*.safetensors "$model"
}

expect 0 "^parameters    918656$" model inspect models/pocket
expect 0 '"architecture":"LlamaForCausalLM"' model inspect models/pocket --json

copy cut
head -c 1000000 models/pocket/model.safetensors >"$model/model.safetensors"
expect 3 "cut/model.safetensors: model.layers.*in 9[0-9]* bytes of data (is the file whole?)" model inspect "$model"
head -c 100 models/pocket/model.safetensors >"$model/model.safetensors"
expect 3 "cut/model.safetensors: " model inspect "$model"
copy header
printf '\377\377\377\377\377\377\377\177' | dd of="$model/model.safetensors" conv=notrunc status=none
expect 3 "a header of 9223372036854775807 bytes" model inspect "$model"
copy shape
sed 's/"shape":\[1024,128\]/"shape":[1024,129]/' models/pocket/model.safetensors >"$model/model.safetensors"
expect 3 "model.embed_tokens.weight: .*528384 bytes" model inspect "$model"
copy config
sed -i 's/"hidden_size": 128/"hidden_size": 256/' "$model/config.json"
expect 3 "131072 values in the file, 262144 in the model" sample --model "$model" --prompt hi
copy json
echo '{' >"$model/config.json"
expect 3 "json/config.json: line" model inspect "$model"
copy tokenizer
head -c 1000 models/pocket/tokenizer.json >"$model/tokenizer.json"
expect 3 "tokenizer.json: " model inspect "$model"
copy other
sed -i 's/LlamaForCausalLM/BertModel/' "$model/config.json"
expect 3 "no model script knows the architecture BertModel" sample --model "$model" --prompt hi
copy bare
rm "$model/model.safetensors"
expect 3 "hold no tensor model.embed_tokens.weight" sample --model "$model" --prompt hi

printf 'GGUF\003\000\000\000' >"$work/short.gguf"
expect 3 "short.gguf: the file ends inside its header" model inspect "$work/short.gguf"
printf 'GGUF\003\000\000\000\377\377\377\377\377\377\377\177\000\000\000\000\000\000\000\000' >"$work/many.gguf"
expect 3 "many.gguf: " model inspect "$work/many.gguf"
head -c 1000 /dev/zero >"$work/zero.gguf"
expect 3 "zero.gguf: not a GGUF file" model inspect "$work/zero.gguf"
expect 3 "absent/config.json: cannot open" model inspect "$work/absent"
