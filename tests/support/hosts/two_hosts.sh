# Two hosts for a script that sources this: the network namespaces $a and $b, which it names. If namespaces cannot be
# made, make_hosts fails, and ip says why.
# shellcheck shell=bash disable=SC2154

link_hosts() { # INTERFACE A'S-ADDRESS B'S-ADDRESS
    interface=$1
    ip -n "$a" link add "$1" type veth peer name "$1" netns "$b" &&
        ip -n "$a" addr add "$2" dev "$1" && ip -n "$b" addr add "$3" dev "$1" &&
        ip -n "$a" link set "$1" up && ip -n "$b" link set "$1" up &&
        ip -n "$a" link set lo up && ip -n "$b" link set lo up
}

make_hosts() { # INTERFACE A'S-ADDRESS B'S-ADDRESS
    ip netns add "$a" && ip netns add "$b" && link_hosts "$@"
}

own_names() { # each host's names are those of its file /etc/netns/HOST/hosts alone
    mkdir -p "/etc/netns/$a" "/etc/netns/$b" &&
        echo 'hosts: files' | tee "/etc/netns/$a/nsswitch.conf" >"/etc/netns/$b/nsswitch.conf"
}

are_up() { # UCX takes no link that is down, and a new one takes a moment
    local host
    for host in "$a" "$b"; do ip -n "$host" link show "$interface" | grep -q 'state UP' || return 1; done
}

remove_hosts() {
    local host
    for host in "$a" "$b"; do ip netns del "$host" 2>/dev/null; done
    rm -rf "/etc/netns/$a" "/etc/netns/$b"
}

# The end of a script whose ranks are ${pids[@]}.
remove_hosts_and_ranks() {
    local pid
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    remove_hosts
    rm -rf "$work"
}
