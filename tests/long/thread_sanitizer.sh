#!/bin/sh
# The unit tests and the fuzz corpora built with ThreadSanitizer.
set -eu
sh tests/sanitized.sh tsan
