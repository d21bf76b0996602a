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

# An index or a server that fails once is asked again; one that is silent is not waited for without end.
apt() {
    apt-get -q -o Acquire::Retries=3 -o Acquire::http::Timeout=60 -o Acquire::https::Timeout=60 -o DPkg::Lock::Timeout=120 "$@" >&2
}
install() {
    for pause in 5 20 60 0; do
        # shellcheck disable=SC2086
        apt update && apt install -y --no-install-recommends $missing && return
        [ "$pause" = 0 ] || echo "setup: the packages could not be had, trying again in $pause s" >&2
        sleep "$pause"
    done
    echo "setup: the packages could not be had; see above, then run it again" >&2
    return 1
}
if [ -n "$missing" ]; then
    echo "installing:$missing" >&2
    if [ "$(id -u)" != 0 ]; then
        echo "setup: these packages are missing and only root can install them; run: apt-get install$missing" >&2
        exit 1
    fi
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    install
fi
if command -v ccache >/dev/null 2>&1; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache
fi
cmake --preset "$preset" >&2
folder=build
[ "$preset" = release ] || folder=build-$preset
cmake --build "$folder" -j "$(nproc)" >&2
echo "built $folder/rondo" >&2
