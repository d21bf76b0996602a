# network.sh - starts the processes of a network by hand, from a home that `rondo local` prepared. For sourcing by the tests beside it.
#
#     . tests/end_to_end/lib/network.sh      stands in the root of the source; $T is a scratch folder, removed at the end
#     run_file NAME SED...        $T/NAME.lua: tests/end_to_end/tiny.lua changed
#     prepare RUNFILE             a home $H with keys, run document and escrows; sets RUN
#     ledger                      starts the ledger of $H; again on its port after a kill
#     node ROLE NAME [WORD...]    starts a node ("syncer" "syncer-1"); more words are options. PROGRAM: another program
#     crash NAME / stop NAME      SIGKILL / SIGTERM, and waits for it; crash_all: every process
#     log NAME                    its file of JSON events;  $T/log/NAME.err what it said to people
#     await NAME PATTERN [SECONDS (180) [COUNT]]     until COUNT lines of the log match; fails with the end of the log
#     finals NAME                 "round kind state" of each decided round
set -eu
cd "$(dirname "$0")/../.."
B=${RONDO_BUILD:-$PWD/build}
RONDO=$B/rondo
LIAR=$B/tests/rondo_liar
T=$(mktemp -d)
H=$T/home
mkdir -p "$T/log" "$T/pid"
trap 'end_all' EXIT
trap 'exit 1' INT TERM

end_all() {
    for file in "$T"/pid/*; do
        [ -f "$file" ] && kill -9 "$(cat "$file")" 2>/dev/null || true
    done
    if mountpoint -q "$T/small" 2>/dev/null; then umount -l "$T/small"; fi
    [ -n "${KEEP:-}" ] || rm -rf "$T"
}
fail() {
    echo "FAILED: $*"
    exit 1
}
say() { echo "  $*"; }

run_file() {
    name=$1
    shift
    sed "$@" tests/end_to_end/tiny.lua >"$T/$name.lua"
}

prepare() {
    : >"$T/prepare.err"
    "$RONDO" local "$1" --home "$H" --ledger-seed "${SEED:-faults}" --json >"$T/prepare.json" 2>"$T/prepare.err" &
    pid=$!
    echo $pid >"$T/pid/local"
    for _ in $(seq 600); do
        if grep -q '^run ' "$T/prepare.err"; then break; fi
        kill -0 $pid 2>/dev/null || fail "prepare: $(cat "$T/prepare.err")"
        sleep 0.05
    done
    kill -INT $pid
    wait $pid || true
    rm "$T/pid/local"
    RUN=$(sed -n 's/^run //p' "$T/prepare.err")
    [ -n "$RUN" ] || fail "prepare: $(cat "$T/prepare.err")"
}

log() { echo "$T/log/$1"; }

# launch NAME COMMAND...
launch() {
    name=$1
    shift
    "$@" >>"$T/log/$name" 2>>"$T/log/$name.err" &
    echo $! >"$T/pid/$name"
}

ledger() {
    launch ledger "$RONDO" ledger --home "$H" --port "${LEDGER_PORT:-0}" --json ${LEDGER_OPTION:-}
    await ledger '"ready"' 60
    LEDGER=$(sed -n 's/.*"endpoint":"\([^"]*\)".*/\1/p' "$T/log/ledger" | tail -1)
    LEDGER_PORT=${LEDGER##*:}
}

node() {
    role=$1 name=$2
    shift 2
    launch "$name" env "RONDO_LIE=${LIE:-}" "${PROGRAM:-$RONDO}" "$role" "$RUN" --home "${HOME_OF:-$H}" --name "$name" --ledger "$LEDGER" \
        --threads 1 --json ${PEER:+--peer "$PEER"} "$@"
}

sponsor() {
    node sponsor sponsor "$@"
    await sponsor '"ready"' 60
    PEER=$(sed -n 's/.*"endpoint":"\([^"]*\)".*/\1/p' "$T/log/sponsor" | tail -1)
}

pid_of() { cat "$T/pid/$1"; }
gone() {
    wait "$(pid_of "$1")" 2>/dev/null || true
    rm -f "$T/pid/$1"
}
crash() {
    kill -9 "$(pid_of "$1")" 2>/dev/null || true
    gone "$1"
}
stop() {
    kill -TERM "$(pid_of "$1")" 2>/dev/null || true
    gone "$1"
}

crash_all() {
    for file in "$T"/pid/*; do crash "$(basename "$file")"; done
}

# count NAME PATTERN: a number, also while the log comes into being
count() { cat "$T/log/$1" 2>/dev/null | grep -c -- "$2" || true; }
await() {
    for _ in $(seq $((${3:-180} * 20))); do
        [ "$(count "$1" "$2")" -lt "${4:-1}" ] || return 0
        sleep 0.05
    done
    echo "--- $1"
    tail -n 5 "$T/log/$1" "$T/log/$1.err"
    fail "$1 did not say $2 within ${3:-180} s"
}

finals() {
    sed -n 's/.*"event":"final".*"round":\([0-9]*\),"kind":"\([a-z]*\)".*"state":"\([0-9a-f]*\)".*/\1 \2 \3/p' "$T/log/$1" | sort -n | uniq
}

# All syncers named are over, have decided the same, and nobody signed twice.
agree() {
    for name in "$@"; do await "$name" '"event":"done"' 300; done
    for name in "$@"; do finals "$name" >"$T/finals-$name"; done
    for name in "$@"; do cmp -s "$T/finals-$1" "$T/finals-$name" || differ "$1" "$name"; done
    "$B/tests/rondo_statements" "$H" || fail "two statements of one key"
}
# A node that was away may not have told of rounds that others told it later, but of none otherwise than they did.
differ() {
    while read -r round kind state; do
        if grep -q "^$round " "$T/finals-$1" && ! grep -q "^$round $kind $state" "$T/finals-$1"; then
            fail "$1 and $2 decided round $round differently"
        fi
    done <"$T/finals-$2"
}

# What the records say, from the documents that syncer-1 keeps; canonical JSON, one line each.
record() { grep -h "\"round\":$1,\"run\":.*\"type\":\"record\"" "$H"/nodes/syncer-1/documents/* | head -1; }
did_of() { sed -n 's/.*"did":"\([^"]*\)".*/\1/p' "$T/log/$1" | head -1; }
# code_of ROUND NAME: the code of this trainer's contribution
code_of() { record "$1" | tr '{' '\n' | grep "\"did\":\"$(did_of "$2")\"" | sed -n 's/.*"code":"\([a-z_]*\)".*/\1/p' | head -1; }
expect_code() { [ "$(code_of "$1" "$2")" = "$3" ] || fail "$2 in round $1: '$(code_of "$1" "$2")', not $3: $(record "$1" | cut -c1-1500)"; }
# Whether any escrow paid this node.
paid() { grep -h '"event":"released"' "$T"/log/syncer-* | grep -q "$(did_of "$1")"; }
