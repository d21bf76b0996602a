#!/bin/sh
# The tokenizer that models/pocket ships is the one its generator makes.
set -eu
luajit tools/pocket/train_tokenizer.lua | cmp - models/pocket/tokenizer.json
