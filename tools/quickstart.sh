#!/bin/sh
# quickstart.sh: install what is missing, build, and train the pocket model in rounds on this machine.
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh
exec build/rondo local scripts/runs/quickstart.lua --home build/quickstart "$@"
