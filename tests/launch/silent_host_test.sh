#!/usr/bin/env bash
# A host falls silent, without a goodbye and without a reset: its link goes down. The other one soon says which rank it
# was. The hosts are network namespaces that this test makes; it is skipped (77) if they cannot be made.
# Labels: sanitized
. "$(dirname "$0")/../support/command_check.sh"
. "$(dirname "$0")/../support/hosts/two_hosts.sh"
a=sluice-silent-$$-a b=sluice-silent-$$-b
pids=()

start_rank() { # RANK NAMESPACE
    RANK=$1 WORLD_SIZE=2 MASTER_ADDR=10.98.0.1 MASTER_PORT=29500 SLUICE_JOB_TOKEN=silent-$$ UCX_NET_DEVICES=uplink \
        timeout 100 ip netns exec "$2" "$sluice" perf --op all_reduce -b 64K -e 64K -n 1000000 \
        >"$work/out$1" 2>"$work/err$1" </dev/null &
    pids+=($!)
}

connected_or_ended() { # the control connection is there, or never will be
    [ -n "$(ip netns exec $a ss -Htn state established 'sport = :29500')" ] || ended
}

falls_silent() { # WHOSE-NAMESPACE
    pids=()
    start_rank 0 $a
    start_rank 1 $b
    process=${pids[0]}
    comes_true connected_or_ended
    sleep 2 # messages are on their way
    ip -n "$1" link set uplink down
    ends 'rank 0'
    check 'rank 0 fails' yes "$([ $code -ne 0 ] && [ $code -ne 124 ] && echo yes)"
    check 'and says why' 1 "$(grep -c 'rank 1 is gone: its host does not answer' "$work/err0")"
    process=${pids[1]}
    ends 'rank 1'
    check 'so does rank 1' 1 "$(grep -c 'rank 0 is gone: its host does not answer' "$work/err1")"
    [ $failed = 0 ] || cat "$work/err0" "$work/err1"
}

trap remove_hosts_and_ranks EXIT
if ! make_hosts uplink 10.98.0.1/24 10.98.0.2/24 2>"$work/why"; then
    echo "SKIP: a host that falls silent: $(head -n 1 "$work/why")"
    exit 77
fi
comes_true are_up
falls_silent $b
[ $failed = 0 ] && echo 'a silent host is named by both sides'
exit $failed
