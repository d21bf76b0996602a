#!/bin/sh
# adapters.sh: a run trains an rsLoRA with DoRA's magnitudes on named targets, another goes on from the adapter it wrote, and what they
# wrote is merged into a folder and into GGUF files of each type: one model in every form. Adapters that do not fit are refused.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
[ -f models/pocket/model.safetensors ] || { echo "skipped: no models/pocket/model.safetensors"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

# run NAME ADAPTER [SED]: tiny.lua with this adapter, as a run file.
run() {
    sed "s|adapter = {[^}]*}|adapter = { $2 }|; s|rounds = 3|rounds = 1|; s|budget = \"3000\"|budget = \"1000\"|; ${3:-}" tests/end_to_end/tiny.lua >"$work/$1.lua"
}
# number FIELD < JSON: the first number under that name.
number() { sed "s/.*\"$1\":\([-0-9.e]*\).*/\1/"; }

# --- a DoRA of its own, then a run on the network that goes on from it

run first 'kind = "dora", rank = 4, alpha = 3, scaling = "root", targets = { "q_proj", "mlp.down_proj" }, loraplus_lr_ratio = 2, rank_pattern = { ["mlp.down_proj"] = 2, ["layers.0.self_attn.q_proj"] = 8 }, alpha_pattern = { q_proj = 5 }'
"$rondo" fit "$work/first.lua" --home "$work/first" --quiet --json >"$work/fit" || fail "the first run"
adapter=$(find "$work/first/runs" -name adapter -type d)
grep -q '"use_rslora": true' "$adapter/adapter_config.json" || fail "no rsLoRA was written"
grep -q '"model.layers.0.self_attn.q_proj": 8' "$adapter/adapter_config.json" || fail "no rank_pattern was written"
grep -q 'q_proj.lora_magnitude_vector' "$adapter/adapter_model.safetensors" || fail "no magnitudes were written"
! grep -q k_proj "$adapter/adapter_model.safetensors" || fail "k_proj is no target"

run second "start = \"$adapter\""
"$rondo" local "$work/second.lua" --home "$work/second" --ledger-seed adapters --quiet --json >"$work/local" || fail "the run that goes on"
after=$(sed 's/.*"after"://' "$work/fit" | number loss)
before=$(sed 's/.*"before"://; s/"after".*//' "$work/local" | number loss)
[ "$after" = "$before" ] || fail "the first run ended at $after, the second began at $before"
grep -q '"replay":{"checked":\([1-9][0-9]*\),"matched":\1}' "$work/local" || { cat "$work/local"; fail "replay"; }
second=$(find "$work/second/runs" -name adapter -type d)
cmp -s "$adapter/adapter_model.safetensors" "$second/adapter_model.safetensors" && fail "the second run changed nothing"

# --- the adapter, the state and the merged folder are one model

expect 0 merged model merge "$work/merged" --model models/pocket --adapter "$second"
for from in "--home $work/second" "--model models/pocket --adapter $second" "--model $work/merged"; do
    # shellcheck disable=SC2086
    "$rondo" sample $from --messages models/pocket/tools/held_out.jsonl --max-tokens 12 --quiet >"$work/text$((n = ${n:-0} + 1))"
    cmp "$work/text1" "$work/text$n" || fail "$from says something else"
done

# --- whole modules beside factors: the embedding, which is the head, too, and norms

run whole 'kind = "lora", rank = 4, alpha = 8, modules_to_save = { "embed_tokens", "model.norm", "0.input_layernorm" }'
"$rondo" fit "$work/whole.lua" --home "$work/whole" --quiet --json >"$work/fit" || fail "the run with whole modules"
whole=$(find "$work/whole/runs" -name adapter -type d)
grep -q '"model.embed_tokens"' "$whole/adapter_config.json" || fail "no modules_to_save was written"
grep -q 'base_model.model.lm_head.weight' "$whole/adapter_model.safetensors" || fail "the head was not written"
run whole_on "start = \"$whole\""
"$rondo" fit "$work/whole_on.lua" --home "$work/whole_on" --quiet --json >"$work/fit_on" || fail "the run that goes on with whole modules"
after=$(sed 's/.*"after"://' "$work/fit" | number loss)
before=$(sed 's/.*"before"://; s/"after".*//' "$work/fit_on" | number loss)
[ "$after" = "$before" ] || fail "whole modules: the first run ended at $after, the second began at $before"
expect 0 merged model merge "$work/whole_merged" --model models/pocket --adapter "$whole"
for from in "--model models/pocket --adapter $whole" "--model $work/whole_merged"; do
    # shellcheck disable=SC2086
    "$rondo" sample $from --messages models/pocket/tools/held_out.jsonl --max-tokens 12 --quiet >"$work/whole_text$((m = ${m:-0} + 1))"
    cmp "$work/whole_text1" "$work/whole_text$m" || fail "$from says something else"
done
run bad 'kind = "lora", rank = 4, alpha = 8, modules_to_save = { "lm_head" }'
expect 3 "its embedding model.embed_tokens.weight" fit "$work/bad.lua" --home "$work/bad"

# --- GGUF

printf '{"text": "the cat sat on the mat, and the dog sat by the door until the rain was over"}\n' >"$work/text.jsonl"
plain='s|models/pocket/tools/held_out.jsonl|'$work'/text.jsonl|; s|models/pocket|tests/golden/tiny.gguf|; s|shards = 4|shards = 1|; s|448|64|; s|context = 448|context = 64|; s|0.003|0.01|; s|network = .*|network = {},|'
run gguf 'kind = "dora", rank = 4, alpha = 8' "$plain"
"$rondo" fit "$work/gguf.lua" --home "$work/gguf" --quiet --json >"$work/fit" || fail "the run on a GGUF file"
adapter=$(find "$work/gguf/runs" -name adapter -type d)
told() { "$rondo" sample "$@" --prompt "the cat" --max-tokens 1 --json --quiet | sed 's/.*"logprobs":\[\([-0-9.]*\).*/\1/'; }
logprob=$(told --model tests/golden/tiny.gguf --adapter "$adapter")
for type in f16 q8_0 q4_0; do
    expect 0 merged.gguf model merge "$work/merged.gguf" --model tests/golden/tiny.gguf --adapter "$adapter" --type "$type"
    expect 0 "^types .*$type 15" model inspect "$work/merged.gguf"
    got=$(told --model "$work/merged.gguf")
    echo "$logprob $got $type" | awk '{ d = $1 - $2; if (d < 0) d = -d; exit d > ($3 == "q4_0" ? 0.5 : 0.05) }' || fail "$type: $got, the adapter has $logprob"
done
expect 3 "llama.cpp reads no magnitudes" model merge "$work/adapter.gguf" --only --model tests/golden/tiny.gguf --adapter "$adapter"
run gguf_whole 'kind = "lora", rank = 4, alpha = 8, modules_to_save = { "embed_tokens", "norm", "q_proj" }, targets = { "down_proj" }' "$plain"
"$rondo" fit "$work/gguf_whole.lua" --home "$work/gguf_whole" --quiet --json >"$work/fit" || fail "the run with whole modules on a GGUF file"
whole=$(find "$work/gguf_whole/runs" -name adapter -type d)
logprob=$(told --model tests/golden/tiny.gguf --adapter "$whole")
expect 0 merged.gguf model merge "$work/merged.gguf" --model tests/golden/tiny.gguf --adapter "$whole" --type f16
got=$(told --model "$work/merged.gguf")
echo "$logprob $got" | awk '{ d = $1 - $2; if (d < 0) d = -d; exit d > 0.05 }' || fail "whole modules in GGUF: $got, the adapter has $logprob"
expect 3 "llama.cpp reads no whole modules" model merge "$work/adapter.gguf" --only --model tests/golden/tiny.gguf --adapter "$whole"
run lora 'kind = "lora", rank = 4, alpha = 3, scaling = "root"' "$plain"
"$rondo" fit "$work/lora.lua" --home "$work/lora" --quiet >/dev/null || fail "the run of an rsLoRA"
expect 0 adapter.gguf model merge "$work/adapter.gguf" --only --model tests/golden/tiny.gguf --adapter "$(find "$work/lora/runs" -name adapter -type d)"

# --- what does not fit

refuses() {
    run bad "$2, start = \"$adapter\"" "${3:-$plain}"
    expect 3 "$1" fit "$work/bad.lua" --home "$work/bad"
}
refuses 'adapter.start: .*rank is 4, the run.s 8.*set adapter.rank = 4' 'kind = "dora", rank = 8, alpha = 16'
refuses 'adapter.start: .*scaled by 2, the run.s by 4.*set adapter.alpha = 8' 'kind = "dora", rank = 4, alpha = 16'
refuses 'adapter.start: .*DoRA.*set adapter.kind = "dora"' 'kind = "lora", rank = 4, alpha = 8'
refuses 'down_proj.lora_A.weight: .*no such adapter' 'kind = "dora", rank = 4, alpha = 8, targets = { "q_proj" }'
refuses 'target qproj' 'kind = "dora", rank = 4, alpha = 8, targets = { "qproj" }'
refuses 'lora_A.weight: .*another model' 'kind = "dora"' 's|nothing|nothing|'
sed -i 's/"bias": "none"/"bias": "all"/' "$adapter/adapter_config.json"
refuses 'adapter_config.json: an adapter with bias' 'kind = "dora"'
rm "$adapter/adapter_model.safetensors"
sed -i 's/"bias": "all"/"bias": "none"/' "$adapter/adapter_config.json"
refuses 'adapter_model.safetensors' 'kind = "dora"'
