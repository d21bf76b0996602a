#!/bin/sh
# The model checks of the vote, the correction and the dispute (docs/model).
set -eu
command -v spin >/dev/null || { echo "spin is not installed"; exit 77; }
sh docs/model/run.sh quick
