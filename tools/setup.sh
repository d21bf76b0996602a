#!/bin/sh
# setup.sh: install what is missing (Debian packages of tools/packages.txt) and build build/rondo.
# usage: sh tools/setup.sh [preset]          preset: release (default), debug, asan, tsan, fuzz
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}

missing=
for package in $(cat tools/packages.txt); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ "$preset" = fuzz ]; then
    for package in clang libclang-rt-14-dev; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
    done
fi
if [ -n "$missing" ]; then
    echo "installing:$missing" >&2
    if [ "$(id -u)" != 0 ]; then
        echo "setup: these packages are missing and only root can install them; run: apt-get install$missing" >&2
        exit 1
    fi
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    apt-get update -q >&2
    # shellcheck disable=SC2086
    apt-get install -y -q --no-install-recommends $missing >&2
fi
if command -v ccache >/dev/null 2>&1; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache
fi
cmake --preset "$preset" >&2
folder=build
[ "$preset" = release ] || folder=build-$preset
cmake --build "$folder" -j "$(nproc)" >&2
echo "built $folder/rondo" >&2
