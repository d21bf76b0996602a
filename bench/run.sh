#!/bin/sh
# run.sh: install the peers of the bench, build, and run every part against them.
# usage: sh bench/run.sh [OPTION...] [PART...]        options and parts as `rondo bench` takes them: --json, --pairs 9, gemm step ...
#
# The peers come once, from the package index that pip is set up for, into build/bench-venv:
#   torch transformers peft numpy   PyTorch's training step and generation
#   scipy-openblas32                a current OpenBLAS as a shared library
#   tokenizers tiktoken             tokenizers in Rust
#   gguf llama-cpp-python           llama.cpp; the second by hand, as it takes a quarter of an hour
# and from Debian, where root can install: libmpfr-dev, for the exact values of the elementary functions; nginx-light and curl.
# What cannot be had is told here, and once more by its rows, which say `absent`; it never changes the exit status.
set -eu
cd "$(dirname "$0")/.."

venv=build/bench-venv
absent=

# without NAME WHY: a peer that this run has to do without.
without() {
    absent="$absent
bench: without $1: $2"
}

# pip_peer MODULE PACKAGE...: installs the first of the packages that can be had, unless python can import the module.
pip_peer() {
    module=$1
    shift
    "$venv/bin/python" -c "import $module" 2>/dev/null && return
    for package; do
        echo "bench: installing $package" >&2
        "$venv/bin/python" -m pip install -q "$package" >&2 && return
    done
    without "$module" "pip cannot install $* (needs a network, or a package index pip knows)"
}

if ! [ -f /usr/include/mpfr.h ]; then
    if [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends libmpfr-dev >&2 ||
            without mpfr "apt-get cannot install libmpfr-dev"
    else
        without mpfr "only root can install it; run: apt-get install libmpfr-dev"
    fi
fi
if ! command -v nginx >/dev/null || ! command -v curl >/dev/null; then
    if [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends nginx-light curl >&2 ||
            without "curl from nginx" "apt-get cannot install nginx-light and curl"
    else
        without "curl from nginx" "only root can install them; run: apt-get install nginx-light curl"
    fi
fi
sh tools/setup.sh >&2
if [ ! -x "$venv/bin/python" ] && ! python3 -m venv "$venv" >&2; then
    without "torch, transformers, peft, numpy, openblas" "python3 cannot make $venv; apt-get install python3-venv"
fi
if [ -x "$venv/bin/python" ]; then
    pip_peer torch 'torch==2.13.0+cpu' torch # the second brings the libraries of a GPU along
    pip_peer transformers transformers
    pip_peer peft peft
    pip_peer numpy numpy
    pip_peer scipy_openblas32 scipy-openblas32
    pip_peer tokenizers tokenizers
    pip_peer tiktoken tiktoken
    pip_peer gguf gguf
    "$venv/bin/python" -c "import llama_cpp" 2>/dev/null ||
        without llama_cpp "it is built from source, for a quarter of an hour: $venv/bin/python -m pip install llama-cpp-python"
    RONDO_BENCH_PYTHON=$PWD/$venv/bin/python
    export RONDO_BENCH_PYTHON
    RONDO_OPENBLAS=$("$venv/bin/python" -c 'import glob, os, scipy_openblas32 as blas
print(glob.glob(os.path.join(os.path.dirname(blas.__file__), "lib", "*openblas*.so*"))[0])' 2>/dev/null) && export RONDO_OPENBLAS
fi
[ -z "$absent" ] || echo "${absent#?}" >&2

status=0
build/rondo bench "$@" || status=$?
# How exact the functions are is a program of its own, for its need of MPFR.
case " $* " in
*" functions "*) exact=1 ;;
*" aggregate "* | *" codec "* | *" decode "* | *" gemm "* | *" hash "* | *" network "* | *" step "* | *" tokenize "*) exact=0 ;;
*) exact=1 ;;
esac
case " $* " in *" --json "*) json=--json ;; *) json= ;; esac
if [ "$exact" = 1 ] && [ -x build/bench/functions ]; then
    # shellcheck disable=SC2086
    build/bench/functions $json || status=$?
elif [ "$exact" = 1 ]; then
    echo "bench: without the errors of the functions: build/bench/functions was not built (libmpfr-dev is missing?)" >&2
fi
[ -z "$absent" ] || echo "${absent#?}" >&2
exit "$status"
