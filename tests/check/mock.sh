#!/bin/sh
# Every shipped script against the reference vectors, run by the plain-Lua interpreter of the script API.
set -eu
luajit tests/script/mock/run.lua
