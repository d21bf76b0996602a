#!/bin/sh
# Standard streams that are closed or full, and texts that are no UTF-8: nothing breaks off, nothing is lost in silence.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

# Without standard streams a program's first files take their numbers, which libuv ends a process for.
status=0
"$rondo" sync bafk2bzacebe4x2yndbrxu7jbydg4dkcbqcc5g6hvykufbgy3j26pe2oaqqoyo --peer http://127.0.0.1:1 --home "$work/none" \
    <&- >&- 2>&- || status=$?
[ "$status" -ge 3 ] && [ "$status" -le 4 ] || fail "closed streams: status $status"

# A result that does not fit on the disk is no success.
"$rondo" key new --name a --home "$work/home" >"$work/out"
for command in "key show --name a --home $work/home" "key show --name a --home $work/home --json" --help --version; do
    status=0
    # shellcheck disable=SC2086
    "$rondo" $command >/dev/full 2>"$work/err" || status=$?
    [ "$status" -eq 4 ] && grep -q "cannot write to standard output" "$work/err" || fail "$command on a full disk: status $status"
done

# What a script says is shown in one line and told in JSON, whatever its bytes.
printf 'check(false, "\\255 \\27[2J %%s", "\\194\\155")\n' >"$work/bytes.lua"
expect 3 ':1: ?  \[2J ?? *$' script check "$work/bytes.lua"
expect 3 '"message":"?  \[2J ??"' script check "$work/bytes.lua" --json
printf 'return { spec = { name = "\\255" } }\n' >"$work/name.lua"
expect 3 "holds text that is not UTF-8" run check "$work/name.lua"
name=$(printf '%s/n\377' "$work")
for command in "run check $name" "run list --home $name --json" "data check $name --json"; do
    # shellcheck disable=SC2086
    expect 2 "is not UTF-8" $command
done
status=0
RONDO_HOME=$name "$rondo" run list 2>"$work/err" || status=$?
[ "$status" -eq 2 ] || fail "RONDO_HOME that is not UTF-8: status $status"
expect 2 "more than 2048 bytes" run list --home "$(head -c 3000 /dev/zero | tr '\0' /)"

# What lies here is wrong before the ledger is asked.
start=$(date +%s)
expect 3 "there is no run file nothing" run create nothing --name a --home "$work/home" --ledger http://127.0.0.1:1
[ $(($(date +%s) - start)) -lt 20 ] || fail "run create asked the ledger first"
