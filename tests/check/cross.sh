#!/bin/sh
# The kernels give one digest by gcc and clang, by every instruction set of this machine, and by NEON and the plain C text under qemu.
set -eu
cd "$(dirname "$0")/../.."
exec sh tools/cross_check.sh --quick
