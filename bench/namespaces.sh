#!/usr/bin/env bash
# Ranks on a network of their own: each in a network namespace, joined by veth (two) or a bridge (more), every egress
# shaped by a token bucket. `--help` says the rest. All of it lives in a mount namespace that ends with this script, so
# no network is left behind even by kill -9, and names cannot clash.
# shellcheck disable=SC2317 # some functions are reached only by traps
set -euo pipefail

usage() {
    cat <<'TEXT'
bench/namespaces.sh -n N --rate RATE [OPTION...] -- COMMAND [ARGUMENT...]

Starts COMMAND once in each of N network namespaces, with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
MASTER_PORT and SLUICE_JOB_TOKEN set. The interface is net0 (GLOO_SOCKET_IFNAME and UCX_NET_DEVICES say so unless they
are set), rank R's address 10.77.0.(R+1). Ranks reach nothing outside. When one fails, the others get 3 s to speak, then
are ended; the exit code is that of the first that failed. SIGINT, SIGTERM and SIGHUP are passed on; the second one
kills.

  -n N            ranks, 1 to 250 (default 2)
  --rate RATE     of each direction of each link, as tc writes it: 1gbit, 500mbit; "none": not shaped (default 1gbit)
  --burst SIZE    of the token bucket (default 128kb); a large one hides bubbles in a pipeline
  --delay TIME    added to each link's egress, as 50us (netem; not every kernel has it)
  --port PORT     MASTER_PORT (default 29500)
  --output DIR    write DIR/RANK.out and DIR/RANK.err instead of passing lines on with "[RANK] " in front
  --only R        pass on the output of rank R alone, without prefix
  -h, --help      this text

Needs root and iproute2 (Debian: apt-get install iproute2).

Examples:
  bench/namespaces.sh -n 2 --rate 1gbit -- build/release/bench/sluice perf --op all_gather -b 64M -e 64M
  bench/namespaces.sh -n 4 --rate 4gbit -- build/release/bench/sluice train --size mini --steps 20
  bench/namespaces.sh -n 2 --rate none -- ip address
TEXT
}

die() { # TEXT
    echo "namespaces: $1" >&2
    exit 2
}

# ---- Options ----

ranks=2 rate=1gbit burst=128kb delay='' port=29500 output='' only=''
arguments=("$@")
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    --) shift; break ;;
    -n | --rate | --burst | --delay | --port | --output | --only)
        [ $# -gt 1 ] || die "$1 needs a value"
        case $1 in
        -n) ranks=$2 ;;
        --rate) rate=$2 ;;
        --burst) burst=$2 ;;
        --delay) delay=$2 ;;
        --port) port=$2 ;;
        --output) output=$2 ;;
        --only) only=$2 ;;
        esac
        shift 2
        ;;
    *) die "\"$1\" is no option; the command comes after -- (see --help)" ;;
    esac
done
command=("$@")

whole() { # TEXT LEAST MOST
    [[ $1 =~ ^[0-9]{1,5}$ ]] && [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]
}
whole "$ranks" 1 250 || die "-n $ranks: give a number of ranks from 1 to 250"
whole "$port" 1 65535 || die "--port $port: give a port from 1 to 65535"
[ -z "$only" ] || whole "$only" 0 $((ranks - 1)) || die "--only $only: there are ranks 0 to $((ranks - 1))"
[ ${#command[@]} -gt 0 ] || die "no command: it comes after -- (see --help)"
[ "$(id -u)" = 0 ] || die "network namespaces need root: run it as root or with sudo"
for tool in ip:iproute2 tc:iproute2 unshare:util-linux setpriv:util-linux; do
    command -v "${tool%:*}" >/dev/null || die "${tool%:*} is missing (Debian: apt-get install ${tool#*:})"
done

# ---- A mount namespace of its own ----

if [ "${NAMESPACES_INSIDE:-}" != $$ ]; then # exec keeps the process's number
    mkdir -p /run/netns
    NAMESPACES_INSIDE=$$ exec unshare --mount --propagation private -- bash "$0" "${arguments[@]}"
fi
unset NAMESPACES_INSIDE
mount -t tmpfs namespaces /run/netns || die "cannot mount: are capabilities missing?"

# ---- The network ----

shape() { # NAMESPACE INTERFACE
    if [ "$rate" != none ]; then
        tc -n "$1" qdisc add dev "$2" root handle 1: tbf rate "$rate" burst "$burst" latency 50ms
    fi
    if [ -n "$delay" ]; then
        local parent=root
        [ "$rate" = none ] || parent='parent 1:1'
        # shellcheck disable=SC2086
        tc -n "$1" qdisc add dev "$2" $parent netem delay "$delay" limit 100000 ||
            die "--delay: this kernel has no netem, or does not know \"$delay\""
    fi
}

add_rank() { # RANK
    ip netns add "rank$1"
    ip -n "rank$1" link set lo up
}

join_pair() {
    ip link add net0 netns rank0 type veth peer name net0 netns rank1
}

join_bridge() {
    local rank
    ip netns add switch
    ip -n switch link add bridge type bridge
    ip -n switch link set bridge up
    for ((rank = 0; rank < ranks; rank++)); do
        ip link add net0 netns "rank$rank" type veth peer name "port$rank" netns switch
        ip -n switch link set "port$rank" master bridge up
        if [ "$rate" != none ]; then # what several send to one rank shares its link
            tc -n switch qdisc add dev "port$rank" root tbf rate "$rate" burst "$burst" latency 50ms
        fi
    done
}

wait_for_link() { # RANK: a new interface takes a moment, and UCX takes none that is down
    local try
    for ((try = 0; try < 100; try++)); do
        [[ $(ip -n "rank$1" link show net0) != *"state UP"* ]] || return 0
        sleep 0.05
    done
    die "the link of rank $1 does not come up"
}

make_network() {
    local rank
    for ((rank = 0; rank < ranks; rank++)); do add_rank $rank; done
    if [ "$ranks" = 2 ]; then join_pair; else join_bridge; fi
    for ((rank = 0; rank < ranks; rank++)); do
        ip -n "rank$rank" address add "10.77.0.$((rank + 1))/24" dev net0
        ip -n "rank$rank" link set net0 up
        shape "rank$rank" net0
    done
    for ((rank = 0; rank < ranks; rank++)); do wait_for_link $rank; done
}

# ---- The ranks ----

work=$(mktemp -d)
pids=() passing=() ender='' code=0 signals=0

signal_ranks() { # SIGNAL: to every process in the namespaces, and to no other
    local rank found
    for ((rank = 0; rank < ranks; rank++)); do
        found=$(ip netns pids "rank$rank" 2>/dev/null) || continue
        # shellcheck disable=SC2086
        [ -z "$found" ] || kill -s "$1" $found 2>/dev/null || true
    done
}

pass_on() { # RANK
    local file=$work/$1
    mkfifo "$file.out" "$file.err"
    if [ -n "$output" ]; then
        cat "$file.out" >"$output/$1.out" &
        passing+=($!)
        cat "$file.err" >"$output/$1.err" &
    elif [ -z "$only" ]; then
        sed -u "s/^/[$1] /" "$file.out" &
        passing+=($!)
        sed -u "s/^/[$1] /" "$file.err" >&2 &
    elif [ "$only" = "$1" ]; then
        cat "$file.out" &
        passing+=($!)
        cat "$file.err" >&2 &
    else
        cat "$file.out" >/dev/null &
        passing+=($!)
        cat "$file.err" >/dev/null &
    fi
    passing+=($!)
}

start_rank() { # RANK
    pass_on "$1"
    (
        trap - INT TERM HUP EXIT
        export RANK=$1 WORLD_SIZE=$ranks LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.77.0.1 MASTER_PORT=$port
        export SLUICE_JOB_TOKEN=$token UCX_NET_DEVICES=${UCX_NET_DEVICES:-net0}
        export GLOO_SOCKET_IFNAME=${GLOO_SOCKET_IFNAME:-net0}
        exec setsid setpriv --pdeathsig KILL ip netns exec "rank$1" "${command[@]}"
    ) >"$work/$1.out" 2>"$work/$1.err" </dev/null &
    pids+=($!)
}

on_signal() { # NAME NUMBER
    signals=$((signals + 1))
    [ "$code" != 0 ] || code=$((128 + $2))
    if [ "$signals" -gt 1 ]; then signal_ranks KILL; else signal_ranks "$1"; fi
}

end_soon() { # the others may say first what they saw
    (
        trap - INT HUP EXIT
        trap 'kill $!; exit' TERM
        sleep 3 &
        wait
        signal_ranks TERM
        sleep 2 &
        wait
        signal_ranks KILL
    ) >/dev/null 2>&1 &
    ender=$!
}

wait_for_ranks() {
    local left=$ranks finished result
    while [ "$left" -gt 0 ]; do
        finished='' result=0
        wait -n -p finished "${pids[@]}" || result=$?
        [ -n "${finished:-}" ] || continue # a signal came
        left=$((left - 1))
        local rank rest=()
        for rank in "${pids[@]}"; do [ "$rank" = "$finished" ] || rest+=("$rank"); done
        pids=("${rest[@]}")
        [ $result = 0 ] || [ -n "$ender" ] || end_soon
        [ $result = 0 ] || [ $code != 0 ] || code=$result
    done
}

clean_up() {
    local rank pid
    trap '' INT TERM HUP
    set +e
    [ -z "$ender" ] || kill "$ender" 2>/dev/null
    signal_ranks KILL
    for pid in "${passing[@]}"; do wait "$pid"; done
    for ((rank = 0; rank < ranks; rank++)); do ip netns delete "rank$rank"; done 2>/dev/null
    ip netns delete switch 2>/dev/null
    rm -rf "$work"
}

trap clean_up EXIT
trap 'on_signal INT 2' INT
trap 'on_signal TERM 15' TERM
trap 'on_signal HUP 1' HUP
[ -z "$output" ] || mkdir -p "$output"
make_network
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
for ((rank = 0; rank < ranks; rank++)); do start_rank $rank; done
wait_for_ranks
exit "$code"
