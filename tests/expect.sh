# expect.sh: for tests that run the program; sourced with $rondo and $work set.
#
#     expect 3 'shape.lua@[0-9a-f]*:2: ' script check shape.lua
#
# STATUS and PATTERN are what must come; a status above 1 must say so in one line on standard error.

fail() {
    echo "FAILED: $*"
    exit 1
}

expect() {
    wanted=$1 pattern=$2 status=0
    shift 2
    timeout 300 "$rondo" "$@" >"$work/out" 2>"$work/err" || status=$?
    cat "$work/out" "$work/err" >"$work/both"
    [ "$status" -eq "$wanted" ] || { cat "$work/both"; fail "rondo $*: status $status, $wanted was expected"; }
    grep -q -- "$pattern" "$work/both" || { cat "$work/both"; fail "rondo $*: nothing like: $pattern"; }
    [ "$status" -le 2 ] || [ "$(wc -l <"$work/err")" -eq 1 ] || { cat "$work/err"; fail "rondo $*: more than one line"; }
}
