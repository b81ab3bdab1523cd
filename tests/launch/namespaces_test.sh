#!/usr/bin/env bash
# bench/compare/networks/namespaces.sh keeps its promises: the environment, a network of their own that `sluice` finds, exit
# codes, signals, and nothing left behind. Skipped (77) if namespaces cannot be made.
# shellcheck disable=SC2016 # variables are those of the ranks
. "$(dirname "$0")/../support/command_check.sh"
export SLUICE=$1
script=$(dirname "$0")/../../bench/compare/networks/namespaces.sh

launch() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 60 "$script" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

are_ready() { # how many ranks say so, unless $process has ended
    [ "$(grep -c ready "$work/out")" = "$1" ] || ended
}

environment() {
    launch -n 3 -- sh -c 'echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT; echo err >&2'
    check 'exit code' 0 $code
    check 'environment' '[0] 0/3 0/1 10.77.0.1 29500,[1] 1/3 0/1 10.77.0.1 29500,[2] 2/3 0/1 10.77.0.1 29500' \
        "$(sort "$work/out" | paste -sd,)"
    check 'standard error apart' '[0] err,[1] err,[2] err' "$(sort "$work/err" | paste -sd,)"
    launch -n 2 --only 1 --port 30000 -- sh -c 'echo $RANK $MASTER_PORT'
    check 'one rank alone' '1 30000' "$(cat "$work/out")"
    launch -n 2 --output "$work/files" -- sh -c 'echo $RANK; echo error $RANK >&2'
    check 'files' '0,error 0,1,error 1' "$(cd "$work/files" && cat 0.out 0.err 1.out 1.err | paste -sd,)"
}

# The script runs in a clone with the release build's command, as the documents have it.
in_a_clone() {
    mkdir -p "$work/clone/bench/compare/networks" "$work/clone/build/release/bench"
    cp "$script" "$work/clone/bench/compare/networks"
    ln -s "$sluice" "$work/clone/build/release/bench/sluice"
    (cd "$work/clone" && unset SLUICE && timeout 60 bench/compare/networks/namespaces.sh -n 1 -- sh -c 'echo $RANK') \
        >"$work/out" 2>"$work/err" </dev/null
    check 'in a clone: exit code' 0 $?
    check 'in a clone: it runs' '[0] 0' "$(cat "$work/out")"
}

network() {
    launch -n 2 --rate 1gbit -- "$sluice" perf --op reduce_scatter_all_gather -b 1M -e 1M -n 2
    check 'two ranks' 0 $code
    check 'over messages' 1 "$(grep -c 'path messages' "$work/out")"
    launch -n 3 --rate 1gbit -- "$sluice" perf --op all_reduce -b 1M -e 1M -n 2
    check 'three ranks' 0 $code
}

endings() {
    local mark=namespaces-test-$$-$RANDOM
    launch -n 2 -- bash -c 'if [ $RANK = 1 ]; then exit 7; fi; exec -a $0 sleep 50' "$mark-b"
    check 'code of the first that failed' 7 $code
    check 'none survives a failure' 0 "$(alive "$mark-b")"
    begin "$work/out" "$work/err" "$script" -n 2 -- bash -c 'echo ready; exec -a $0 sleep 50' "$mark-c"
    comes_true are_ready 2
    kill -TERM $process
    ends 'SIGTERM'
    check 'SIGTERM' 143 $code
    check 'none survives SIGTERM' 0 "$(alive "$mark-c")"
}

refusals() {
    local option
    for option in '-n 0 -- true' '-n 2' '--rate quick -- true' '--pigeon -- true' '--only 2 -- true' '-- /no/such'; do
        # shellcheck disable=SC2086
        launch $option
        check "$option fails" yes "$([ $code -ne 0 ] && [ $code -lt 124 ] && echo yes)"
        check "$option says why" yes "$([ -s "$work/err" ] && echo yes)"
    done
}

if ! "$script" -n 2 -- true >"$work/out" 2>"$work/err"; then
    skip "all of it: $(head -n 1 "$work/err")"
    exit 77
fi
environment
in_a_clone
network
endings
refusals
[ $failed = 0 ] && echo "namespaces.sh: all as promised"
exit $failed
