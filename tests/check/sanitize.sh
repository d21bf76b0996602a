#!/bin/sh
# The unit tests and the fuzz corpora once more, built with AddressSanitizer and UndefinedBehaviorSanitizer.
set -eu
RONDO_SEEDS=4
export RONDO_SEEDS
sh tests/sanitized.sh asan
