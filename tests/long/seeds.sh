#!/bin/sh
# The simulator from many seeds, and binary32 functions over every argument.
set -eu
RONDO_SEEDS=2000 "$RONDO_BUILD/tests/simulation_test"
RONDO_EXHAUSTIVE=1 "$RONDO_BUILD/tests/numerics_test"
