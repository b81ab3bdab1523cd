#!/usr/bin/env bash
# Faults of the network between hosts: firewalls, lost packets, slow links. Every rank ends within the limit, if it has
# to, and says between whom the network fails; what the network mends by itself changes no bit of the weights.
#
#   tests/launch/network_faults_test.sh SLUICE          some cases, with short limits
#   tests/launch/network_faults_test.sh SLUICE all      all cases, as a table: what each rank said, and after how long;
#                                                       a rank that ends later than 3 s after the limit counts as failed
#
# The hosts are network namespaces, which tests/support/hosts/wire.py joins; the script is skipped (77) if they cannot be
# made.
. "$(dirname "$0")/../support/command_check.sh"
table=${2:-}
wire=$(dirname "$0")/../support/hosts/wire.py
hosts=(sluice-faults-$$-0 sluice-faults-$$-1 sluice-faults-$$-2)
processes=() asked=0 ranks=2 since=0 wire_process=

kill_ranks() {
    local host pid
    for host in "${hosts[@]}"; do
        for pid in $(ip netns pids "$host" 2>/dev/null); do kill -KILL "$pid"; done
    done
    for process in "${processes[@]}"; do ends 'a rank that is killed'; done
}

remove() {
    local host
    kill_ranks
    [ -z "$wire_process" ] || { process=$wire_process; kill "$process"; ends wire; } 2>/dev/null
    for host in "${hosts[@]}"; do ip netns del "$host" 2>/dev/null; done
    rm -rf "$work"
}

wire_is_ready() {
    grep -q ready "$work/wire" || ended
}

make_hosts() {
    local host
    [ -w /dev/net/tun ] || { echo "there is no /dev/net/tun" >&2; return 1; }
    for host in "${hosts[@]}"; do ip netns add "$host" || return 1; done
    mkfifo "$work/faults" && : >"$work/wire"
    python3 "$wire" "${hosts[@]}" <"$work/faults" >"$work/wire" &
    wire_process=$! process=$!
    exec 7>"$work/faults"
    comes_true wire_is_ready
    grep -q ready "$work/wire"
}

are_set() {
    [ "$(grep -c ok "$work/wire")" -ge $asked ]
}

fault() { # LINE...: as wire.py has them; the time runs from here
    local line
    for line in "$@"; do
        echo "$line" >&7
        asked=$((asked + 1))
    done
    comes_true are_set
    since=${EPOCHREALTIME/[.,]/}
}

heal() {
    fault 'all all clear 0'
}

start() { # LIMIT JOIN-LIMIT ARGUMENT...: all ranks
    local limit=$1 join_limit=$2 rank
    shift 2
    processes=()
    since=${EPOCHREALTIME/[.,]/}
    for ((rank = 0; rank < ranks; rank++)); do
        rm -f "$work/end$rank" "$work/out$rank" "$work/err$rank"
        {
            RANK=$rank WORLD_SIZE=$ranks MASTER_ADDR=10.97.0.1 MASTER_PORT=29500 SLUICE_JOB_TOKEN=faults-$$ \
                SLUICE_COMM_TIMEOUT=$limit SLUICE_COMM_JOIN_TIMEOUT=$join_limit \
                timeout -k 1 400 ip netns exec "${hosts[$rank]}" "$sluice" "$@" \
                >"$work/out$rank" 2>"$work/err$rank" </dev/null 7>&-
            echo "$? ${EPOCHREALTIME/[.,]/}" >"$work/end$rank"
        } &
        processes+=($!)
    done
}

all_ended() {
    local rank
    for ((rank = 0; rank < ranks; rank++)); do [ -s "$work/end$rank" ] || return 1; done
}

# WHAT CODE LIMIT: waits for all ranks. In a table each has its seconds since the fault; LIMIT 0: they take what they take.
all_end() {
    local rank code end tenths
    until comes_true all_ended; do
        if [ "$3" = 0 ]; then continue; fi
        check "$1: all ranks end" yes no
        kill_ranks
    done
    for process in "${processes[@]}"; do ends 'a rank that has said its end'; done
    for ((rank = 0; rank < ranks; rank++)); do
        read -r code end <"$work/end$rank"
        check "$1: rank $rank's code" "$2" "$code"
        [ "$code" = "$2" ] || cat "$work/err$rank"
        [ "$table" = all ] || continue
        tenths=$(((end - since) / 100000))
        printf '%-44s rank %d: code %d after %3d.%d s: %s\n' "$1" $rank "$code" $((tenths / 10)) $((tenths % 10)) \
            "$(tail -n 1 "$work/err$rank")"
        [ "$3" = 0 ] || [ $tenths -le $(($3 * 10 + 30)) ] || check "$1: rank $rank ends" "within $(($3 + 3)) s" later
    done
}

says() { # WHAT RANK WORDS
    [ "$(grep -c -- "$3" "$work/err$2")" != 0 ] ||
        check "$1: rank $2 says" "$3" "$(tail -n 1 "$work/err$2")"
}

firewall() { # WHAT FAULT JOIN-LIMIT ANSWER FROM TO: only rank 0's port is open; the one that cannot connect is named
    heal
    fault "$5 $6 $2 1-29499" "$5 $6 $2 29501-65535"
    start 8 "$3" perf --op all_reduce -b 64K -e 64K -n 2
    all_end "$1" 1 "$3"
    says "$1" 0 "connecting to rank .*: port [0-9]* of 10.97.0.[12] $4"
    says "$1" 1 "connecting to rank .*: port [0-9]* of 10.97.0.[12] $4"
}

no_rank_0() { # WHAT FAULT JOIN-LIMIT ANSWER: not even rank 0's port is open
    heal
    fault "all all $2 1-65535"
    start 8 "$3" perf --op all_reduce -b 64K -e 64K -n 2
    all_end "$1" 1 "$3"
    says "$1" 0 'missing: 1; rank 0 listens on port 29500'
    says "$1" 1 "10.97.0.1:29500 .*$4"
}

open_range() {
    heal
    fault 'all all syn 1-29499' 'all all syn 29501-39999' 'all all syn 40010-65535'
    UCX_TCP_PORT_RANGE=40000-40009 start 8 20 perf --op all_reduce -b 64K -e 64K -n 2
    all_end 'only MASTER_PORT and UCX_TCP_PORT_RANGE open' 0 0
}

cut_while_joining() { # WHAT FROM TO LIMIT
    heal
    fault "$2 $3 size 600"
    start "$4" "$4" perf --op all_reduce -b 64K -e 64K -n 2
    all_end "$1" 1 "$4"
    says "$1" 0 'rank 0 \(with\|and\) rank 1\|rank 1 \(with\|and\) rank 0\|rank 1 is gone'
    says "$1" 1 'rank 0 \(with\|and\) rank 1\|rank 1 \(with\|and\) rank 0\|rank 0 is gone'
}

trains_or_ended() {
    grep -q '^step ' "$work/err0" 2>/dev/null || all_ended
}

cut_while_training() { # WHAT FROM TO LIMIT PAIR ARGUMENT...
    local what=$1 from=$2 to=$3 limit=$4 pair=$5 rank
    shift 5
    heal
    start "$limit" 20 train --size nano --schedule one_ahead --data "$work/book.txt" --steps 100000 "$@"
    comes_true trains_or_ended
    fault "$from $to size 600"
    all_end "$what" 1 "$limit"
    for ((rank = 0; rank < ranks; rank++)); do says "$what" $rank "$pair"; done
    rm -rf "$work/run"
}

slow() { # WHAT LIMIT BLOCK: a block takes longer than the limit
    heal
    fault 'all all rate 1000000'
    start "$2" 20 perf --op all_reduce -b "$3" -e "$3" --block "$3" -n 1 -w 0
    all_end "$1" 0 0
}

weights() { # RANK
    sed -n 's/.*sha256 *\([0-9a-f]\{64\}\).*/\1/p' "$work/out$1"
}

trained_the_same() { # WHAT FAULT...: the faults come before the first step; "down" means for a second in the middle
    local what=$1 rank
    shift
    heal
    [ "$*" = down ] || [ $# = 0 ] || fault "$@"
    start 60 60 train --size nano --schedule one_ahead --data "$work/book.txt" --steps 30 --seed 3 --verbose
    if [ "$*" = down ]; then
        comes_true trains_or_ended
        fault 'all all down 1'
        sleep 1
        fault 'all all down 0'
    fi
    all_end "$what" 0 0
    [ $# != 0 ] || expected=$(weights 0)
    check "$what: the run says its weights" 64 ${#expected}
    check "$what: rank 0's weights" "$expected" "$(weights 0)"
}

some_cases() {
    no_rank_0 'refused, all ports' refuse 2 'nobody listens'
    firewall 'dropped, all but MASTER_PORT' syn 5 'lets nothing through' all all
    open_range
    cut_while_joining 'large packets lost while joining' 0 1 4
    built_with train || return
    ranks=3
    cut_while_training 'large packets lost from 1 to 2' 1 2 3 'between rank 1 and rank 2\|rank [12] is gone'
    ranks=2
    trained_the_same 'no fault'
    trained_the_same 'loss, duplicates, flips, disorder' 'all all loss 0.01' 'all all duplicate 0.01' \
        'all all flip 0.01' 'all all jitter 2'
    slow 'slow link' 2 1M
}

all_cases() {
    local way from to pair='between rank [01] and rank [01]\|rank [01] is gone\|rank [01] died: its connection was closed'
    no_rank_0 'SYN dropped, all ports' syn 6 'lets nothing through'
    no_rank_0 'SYN refused, all ports' refuse 6 'nobody listens'
    for way in 'all all' '0 1' '1 0'; do
        read -r from to <<<"$way"
        firewall "SYN dropped but MASTER_PORT, $from > $to" syn 6 'lets nothing through' "$from" "$to"
        firewall "SYN refused but MASTER_PORT, $from > $to" refuse 6 'refuses' "$from" "$to"
    done
    open_range
    for way in 'all all' '0 1' '1 0'; do
        read -r from to <<<"$way"
        cut_while_joining "joining, large packets lost $from > $to" "$from" "$to" 8
        cut_while_training "training, large packets lost $from > $to" "$from" "$to" 8 "$pair"
        cut_while_training "saving, large packets lost $from > $to" "$from" "$to" 8 "$pair" --save "$work/run" \
            --save-every 1
        cut_while_training "evaluating, large packets lost $from > $to" "$from" "$to" 8 "$pair" --eval-every 1
    done
    ranks=3
    for way in '1 2' '2 1' '0 2'; do
        read -r from to <<<"$way"
        cut_while_training "3 ranks, large packets lost $from > $to" "$from" "$to" 8 \
            "between rank $from and rank $to\|rank [012] is gone"
    done
    ranks=2
    slow '1 Mbit/s, limit 8 s, blocks of 4 MiB' 8 4M
    trained_the_same 'no fault'
    trained_the_same 'delay 5 ms' 'all all delay 5'
    trained_the_same 'delay 2 ms, jitter 4 ms' 'all all delay 2' 'all all jitter 4'
    trained_the_same 'loss 1 %' 'all all loss 0.01'
    trained_the_same 'loss 5 %, one way' '0 1 loss 0.05'
    trained_the_same 'duplicates 5 %' 'all all duplicate 0.05'
    trained_the_same 'flips 1 %' 'all all flip 0.01'
    trained_the_same 'all of these' 'all all loss 0.01' 'all all duplicate 0.02' 'all all flip 0.01' 'all all jitter 2'
    trained_the_same 'link down for 1 s' down
}

trap remove EXIT
if ! make_hosts 2>"$work/why"; then
    echo "SKIP: faults of the network: $(head -n 1 "$work/why")"
    exit 77
fi
unset UCX_NET_DEVICES UCX_TLS SLUICE_COMM_HOST_ID
for i in $(seq 400); do echo "The quick brown fox number $i counts to $((i * 7))."; done >"$work/book.txt"
if [ "$table" = all ]; then all_cases; else some_cases; fi
[ $failed = 0 ] && echo 'a network that fails is named, and one that stumbles changes nothing'
exit $failed
