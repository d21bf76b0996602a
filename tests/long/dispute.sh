#!/bin/sh
# The dispute rule against every strategy (docs/model/dispute.py).
set -eu
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
python3 docs/model/dispute.py
