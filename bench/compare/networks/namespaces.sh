#!/usr/bin/env bash
# Ranks on a network of their own: each in a network namespace, joined by veth (two) or a bridge (more), every egress
# shaped by a token bucket. `--help` says the rest. Everything lives in a mount namespace of its own, and the kernel
# takes the networks down with the last process in it: nothing is left behind, even by kill -9, and names cannot clash.
set -euo pipefail

usage() {
    cat <<'TEXT'
bench/compare/networks/namespaces.sh -n N --rate RATE [OPTION...] -- COMMAND [ARGUMENT...]

Starts COMMAND once in each of N network namespaces by `sluice run`, which passes output and signals on and ends all when
one fails; the exit code is that of the first that failed. RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
MASTER_PORT and SLUICE_JOB_TOKEN are set. The interface is net0 (GLOO_SOCKET_IFNAME and UCX_NET_DEVICES say so unless
they are set), rank R's address 10.77.0.(R+1). Ranks reach nothing outside.

  -n N            ranks, 1 to 250 (default 2)
  --rate RATE     of each direction of each link, as tc writes it: 1gbit, 500mbit; "none": not shaped (default 1gbit)
  --burst SIZE    of the token bucket (default 128kb); a large one hides bubbles in a pipeline
  --delay TIME    added to each link's egress, as 50us (netem; not every kernel has it)
  --port PORT     MASTER_PORT (default 29500)
  --output DIR    write DIR/RANK.out and DIR/RANK.err instead of passing lines on with "[RANK] " in front
  --only R        pass on the output of rank R alone, without prefix
  -h, --help      this text

Needs root, iproute2 (Debian: apt-get install iproute2) and the built command (SLUICE=PATH of another one).

Examples:
  bench/compare/networks/namespaces.sh -n 2 --rate 1gbit -- build/release/bench/sluice perf --op all_gather -b 64M -e 64M
  bench/compare/networks/namespaces.sh -n 4 --rate 4gbit -- build/release/bench/sluice train --size mini --steps 20
  bench/compare/networks/namespaces.sh -n 2 --rate none -- ip address
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
for tool in ip:iproute2 tc:iproute2 unshare:util-linux; do
    command -v "${tool%:*}" >/dev/null || die "${tool%:*} is missing (Debian: apt-get install ${tool#*:})"
done
sluice=${SLUICE:-$(realpath "$(dirname "$0")/../../..")/build/release/bench/sluice}
[ -x "$sluice" ] || die "$sluice is not there: run ./dev build, or set SLUICE"

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

# Each rank gets the environment of a rank that is alone on its host, in the place of that of `sluice run`, and then
# enters its namespace.
# shellcheck disable=SC2016 # variables are those of the ranks
enter='
output=$1 only=$2
shift 2
export LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.77.0.1
export UCX_NET_DEVICES=${UCX_NET_DEVICES:-net0} GLOO_SOCKET_IFNAME=${GLOO_SOCKET_IFNAME:-net0}
if [ -n "$output" ]; then
    exec >"$output/$RANK.out" 2>"$output/$RANK.err"
elif [ "$only" = "$RANK" ]; then
    exec >&3 2>&4
elif [ -n "$only" ]; then
    exec >/dev/null 2>&1
fi
exec 3>&- 4>&-
exec ip netns exec "rank$RANK" "$@"
'

[ -z "$output" ] || mkdir -p "$output"
make_network
exec 3>&1 4>&2
exec "$sluice" run -n "$ranks" --port "$port" -- bash -c "$enter" enter "$output" "$only" "${command[@]}"
