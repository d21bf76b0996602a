#!/bin/sh
# The simulator from many seeds, and binary32 functions over every argument.
set -eu
"$RONDO_BUILD/rondo" simulate --seeds 2000
if [ -x "$RONDO_BUILD/bench/functions" ]; then
    "$RONDO_BUILD/bench/functions" --full
else
    echo "functions over every argument: left out, the build found no MPFR (apt-get install libmpfr-dev, then configure again)"
fi
