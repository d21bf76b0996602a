#!/bin/sh
# Every rule that can be removed from the round machines: the simulator finds each within 2000 seeds.
set -eu
sh tests/simulation/mutations.sh
