#!/bin/sh
# The C files stand as .clang-format lays them out. clang-format 14 (Debian 12) sets the layout; other versions differ in small things.
set -eu
clang-format --version 2>/dev/null | grep -q 'version 14' || { echo "clang-format 14 is not installed"; exit 77; }
git ls-files 'native/*.[ch]' 'runtime/*.[ch]' 'tests/*.[ch]' | xargs clang-format --dry-run --Werror
