#!/bin/sh
# Every command says how it is used, examples first; what is misspelt is answered with the nearest name and status 2.
set -eu
cd "$(dirname "$0")/../.."
rondo=${RONDO_BUILD:-build}/rondo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tests/expect.sh

"$rondo" --help | sed -n '/^Commands:/,/^$/s/^  \(.*[a-z]\)  .*/\1/p' | sed 's/  .*//' >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 15 ] || fail "rondo --help lists too few commands"
while read -r command; do
    # shellcheck disable=SC2086
    {
        expect 0 "^rondo $command: " $command --help
        [ "$(sed -n 3p "$work/out")" = "Examples:" ] || fail "$command --help does not begin with examples"
        sed -n 4p "$work/out" | grep -q "^  rondo $command" || fail "$command --help: the first example is of another command"
        grep -q "^Exit status: " "$work/out" || fail "$command --help tells no exit status"
        expect 2 "unknown option --hlep (did you mean --help?)" $command --hlep
        expect 0 "^rondo $command: " help $command
    }
done <"$work/commands"

expect 2 "did you mean script check?" scrpt check x
expect 2 "takes one of: check, describe, try" script
expect 0 "^  rondo script try " script --help
expect 0 "^  rondo data preview " help data
expect 2 "did you mean --steps?" script try chat_sft --step 3
expect 2 "needs a value" script try chat_sft --steps
expect 2 "a whole number from 2" script try chat_sft --steps many
expect 2 "it takes: FILE" data check
expect 2 "unexpected argument b" model inspect a b
expect 2 "did you mean man?" --generate mann
expect 0 "portable-f32-1 [0-9a-f]\{64\}$" --version

"$rondo" --generate man >"$work/man"
"$rondo" --generate complete-bash >"$work/complete"
while read -r command; do
    grep -q "^.SS \"rondo $command" "$work/man" || fail "the man page lacks $command"
    grep -q "\" $command \"\*)" "$work/complete" || fail "the completion lacks $command"
done <"$work/commands"
if command -v bash >/dev/null 2>&1; then
    bash -n "$work/complete" || fail "the completion is no bash"
    found=$(bash -c '. "$1"; COMP_WORDS=(rondo script tr); COMP_CWORD=2; _rondo; echo "${COMPREPLY[*]}"' bash "$work/complete")
    [ "$found" = try ] || fail "completing 'rondo script tr' gives: $found"
    found=$(bash -c '. "$1"; COMP_WORDS=(rondo script try f --ste); COMP_CWORD=4; _rondo; echo "${COMPREPLY[*]}"' bash "$work/complete")
    [ "$found" = --steps ] || fail "completing --ste gives: $found"
fi
