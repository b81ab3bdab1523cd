#!/usr/bin/env bash
# Two hosts join by the name of rank 0's host, whatever that name means on each of them, and send over the network that
# both are in, whatever else is there. The hosts are network namespaces that this test makes; it is skipped (77) if
# they cannot be made. `two_hosts_test.sh SLUICE all` has more cases, and makes a table of how long each one takes, from
# the start of the ranks to their end.
. "$(dirname "$0")/../support/command_check.sh"
table=${2:-}
. "$(dirname "$0")/../support/hosts/two_hosts.sh"
a=sluice-hosts-$$-a b=sluice-hosts-$$-b
pids=()

add_bridges() { # as hosts have them that run a container each: the same address on both
    local host
    for host in $a $b; do
        ip -n $host link add docker0 type bridge
        ip -n $host addr add 172.17.0.1/16 dev docker0
        ip -n $host link add inner type veth peer name outer
        ip -n $host link set inner master docker0
        ip -n $host link set docker0 up
        ip -n $host link set inner up
        ip -n $host link set outer up
    done
}

start_rank() { # RANK NAMESPACE ADDRESS LIMIT
    RANK=$1 WORLD_SIZE=2 MASTER_ADDR=$3 MASTER_PORT=29500 SLUICE_JOB_TOKEN=hosts-$$ SLUICE_COMM_JOIN_TIMEOUT=$4 \
        timeout 100 ip netns exec "$2" "$sluice" perf --op all_reduce -b 64K -e 64K -n 20 \
        >"$work/out$1" 2>"$work/err$1" </dev/null &
    pids+=($!)
}

name_hosts() { # A'S-FILE B'S-FILE
    printf '%b' "$1" >/etc/netns/$a/hosts
    printf '%b' "$2" >/etc/netns/$b/hosts
}

both_end() { # WHAT CODE
    local rank
    for rank in 0 1; do
        process=${pids[$rank]}
        ends "$1: rank $rank"
        check "$1: rank $rank's code" "$2" "$code"
    done
}

row() { # WHAT: its line of the table, since `began`
    [ "$table" = all ] || return
    awk -v what="$1" -v ms=$(($(date +%s%3N) - began)) 'BEGIN { printf "%-50s %5.1f s\n", what, ms / 1000 }'
}

join() { # WHAT ADDRESS: both ranks do the work
    pids=() began=$(date +%s%3N)
    start_rank 0 $a "$2" 20
    start_rank 1 $b "$2" 20
    both_end "$1" 0
    row "$1"
    [ $failed = 0 ] || cat "$work/err0" "$work/err1"
}

learns_late() { # WHAT HOST SECONDS: the hosts file of one of the two has the name only then
    name_hosts "$known" "$known"
    echo '127.0.0.1 localhost' >"/etc/netns/$2/hosts"
    pids=() began=$(date +%s%3N)
    start_rank 0 $a first 20
    start_rank 1 $b first 20
    sleep "$3"
    printf '%b' "$known" >>"/etc/netns/$2/hosts"
    both_end "$1" 0
    row "$1"
}

anew() { # B'S ADDRESS: the same two hosts, with a bridge that is there before their network
    ip netns del $a
    ip netns del $b
    ip netns add $a
    ip netns add $b
    add_bridges
    link_hosts eth0 10.99.0.1/24 "$1"
    comes_true are_up 2>/dev/null
}

trap remove_hosts_and_ranks EXIT
if ! { make_hosts eth0 10.99.0.1/24 10.99.0.2/24 && own_names; } 2>"$work/why"; then
    echo "SKIP: two hosts: $(head -n 1 "$work/why")"
    exit 77
fi
comes_true are_up

unset UCX_NET_DEVICES UCX_TLS
known='127.0.0.1 localhost\n10.99.0.1 first\n'
name_hosts '127.0.0.1 localhost\n127.0.1.1 first\n' "$known"
join 'the name is 127.0.1.1 on rank 0, as Debian has it' first
name_hosts '127.0.0.1 localhost\n127.0.0.1 first\n' "$known"
join 'the name is 127.0.0.1 on rank 0' first
name_hosts '::1 first\n10.99.0.1 first\n' "$known"
join 'the name is ::1 first on rank 0' first
name_hosts '127.0.0.1 localhost\n' "$known"
join 'rank 0 does not know its own name' first

if [ "$table" = all ]; then
    name_hosts '127.0.0.1 localhost\n127.0.0.1 first\n127.0.0.1 first\n' "$known"
    join 'the name is 127.0.0.1 twice on rank 0' first
    name_hosts '10.99.0.1 first\n127.0.1.1 first\n' "$known"
    join 'the real address comes first on rank 0' first
    name_hosts "$known" "$known"
    join 'both know the name' first
    join 'an address, no name' 10.99.0.1
    learns_late 'rank 0 learns its name after 2 s' $a 2
    learns_late 'rank 1 learns the name after 2 s' $b 2
fi

# A rank waits for a name that does not resolve yet.
learns_late 'the name comes later' $b 1

add_bridges
join 'each host has a bridge of one address' 10.99.0.1

# A rank that gives up says what was tried, and what the answer was.
name_hosts "$known" '127.0.0.1 localhost\n'
pids=()
start_rank 0 $a first 2
start_rank 1 $b first 2
both_end 'the name never comes' 1
check 'rank 1 says that it cannot resolve it' 1 "$(grep -c 'cannot resolve the name first' "$work/err1")"
check 'rank 0 says where it listens' 1 "$(grep -c 'rank 0 listens on port 29500 of .*10.99.0.1 (eth0)' "$work/err0")"
name_hosts "$known" "$known"
pids=()
start_rank 0 $a first 2
start_rank 1 $b 10.99.0.7 2
both_end 'a wrong address' 1
check 'rank 1 names the address' 1 "$(grep -c '; the last attempt: 10.99.0.7' "$work/err1")"
pids=()
start_rank 0 $a first:29500 2
start_rank 1 $b tcp://first 2
both_end 'a port in the name' 2
check 'rank 0 says what to set' 1 "$(grep -c 'set MASTER_ADDR=first and MASTER_PORT=29500' "$work/err0")"
check 'rank 1 says what to leave out' 1 "$(grep -c 'without tcp://' "$work/err1")"
if [ "$table" = all ]; then
    anew 10.99.0.2/24
    join 'a bridge of one address that was there first' 10.99.0.1
    anew 10.98.0.2/24
    ip -n $a route add 10.98.0.0/24 dev eth0
    ip -n $b route add 10.99.0.0/24 dev eth0
    join 'the same, and the hosts are in two subnets' 10.99.0.1
fi
[ $failed = 0 ] && echo 'two hosts join by name'
exit $failed
