#!/bin/sh
# Rules whose removal the simulator must notice, a few that it finds within seconds; all of them: tests/simulation/mutations.sh.
set -eu
command -v pkg-config >/dev/null || { echo "pkg-config is not installed"; exit 77; }
RONDO_SEEDS=300 sh tests/simulation/mutations.sh unjudged quorum jump_back twice kept_lie few
