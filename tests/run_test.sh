#!/usr/bin/env bash
# What `sluice run` promises: the environment, the prefix, exit codes, the time that survivors get, and no orphans.
. "$(dirname "$0")/command_check.sh"

launch() { # CMD...: output in $work/out and $work/err, exit code in $code
    timeout 60 "$sluice" run "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

# Seconds to sleep that no other process of the machine sleeps, so that they mark a process of this test.
mark() { # WHOLE
    printf '%d.%05d%07d' "$1" $RANDOM $$
}

none_alive() {
    [ "$(alive "$1")" = 0 ]
}

some_alive() { # MARK, how many
    [ "$(alive "$1")" -ge "$2" ]
}

some_alive_or_ended() { # as some_alive, unless $pid has ended
    some_alive "$@" || ! kill -0 $pid 2>/dev/null
}

gone() { # waits until no process has the mark
    comes_true none_alive "$1"
    check "no orphan with mark $1" 0 "$(alive "$1")"
}

are_ready() { # how many ranks say so, unless $pid has ended
    [ "$(grep -c ready "$work/out")" = "$1" ] || ! kill -0 $pid 2>/dev/null
}

environment() {
    launch -n 3 -- sh -c 'echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR; echo $RANK >&2'
    check 'exit code' 0 $code
    check 'environment' '[0] 0/3 0/3 127.0.0.1,[1] 1/3 1/3 127.0.0.1,[2] 2/3 2/3 127.0.0.1' \
        "$(sort "$work/out" | paste -sd,)"
    check 'standard error stays apart' '[0] 0,[1] 1,[2] 2' "$(sort "$work/err" | paste -sd,)"
    launch -n 2 -- sh -c 'echo $MASTER_PORT $SLUICE_JOB_TOKEN'
    check 'port and token are the same' 1 "$(cut -d' ' -f2- "$work/out" | sort -u | wc -l)"
    check 'token is long' yes "$(awk 'NR == 1 {print length($3) == 32 ? "yes" : "no"}' "$work/out")"
    launch -n 1 --timeout 7.5 -- sh -c 'echo $SLUICE_COMM_TIMEOUT'
    check 'timeout is handed on' '[0] 7.5' "$(cat "$work/out")"
}

output() {
    launch -n 1 -- printf 'one\n\ntwo without an end'
    check 'lines' '[0] one,[0] ,[0] two without an end' "$(paste -sd, "$work/out")"
    launch -n 1 -- head -c 200000 /dev/zero
    check 'a long line is whole' 200000 "$(tr -cd '\000' <"$work/out" | wc -c)"
    launch -n 2 -- cat
    check 'standard input is empty' 0 $code
    timeout 20 "$sluice" run -n 1 -- echo text >/dev/full 2>"$work/err"
    check 'a full disk is an error' 1 $?
    check 'a full disk is named' 1 "$(grep -c 'output of rank 0 was lost: No space left' "$work/err")"
}

exit_codes() {
    launch -n 3 -- sh -c 'exit $((RANK == 1 ? 7 : 0))'
    check 'exit code of the rank that failed' 7 $code
    launch -n 2 -- sh -c 'test $RANK = 0 && kill -9 $$; sleep 0.2'
    check '128 + signal' 137 $code
    check 'the signal is named' 1 "$(grep -c 'rank 0 was killed by signal 9' "$work/err")"
    launch -n 1 -- ./no-such-program
    check 'no such program' 127 $code
    check 'it is named' 1 "$(grep -c 'cannot run ./no-such-program' "$work/err")"
    launch -n 0 -- true
    check 'a bad number of ranks' yes "$([ $code != 0 ] && echo yes)"
    launch -n 1
    check 'no command' yes "$([ $code != 0 ] && echo yes)"
    launch -n 1 sh -c 'exit 3' # without --, the command's options stay its own
    check 'options of the command' 3 $code
}

survivors() {
    local begin=$SECONDS stubborn late
    stubborn=$(mark 61) late=$(mark 62)
    launch -n 2 -- sh -c 'if [ $RANK = 0 ]; then exit 5; fi; sleep 0.3; echo I saw it; exit 6'
    check 'the first failure counts' 5 $code
    check 'a survivor can speak' '[1] I saw it' "$(cat "$work/out")"
    launch -n 2 -- sh -c 'if [ $RANK = 0 ]; then exit 5; fi; trap "" TERM; sleep $0 & wait; sleep $0' "$stubborn"
    check 'a stubborn survivor is ended' 5 $code
    check 'soon' yes "$([ $((SECONDS - begin)) -lt 60 ] && echo yes)"
    gone "$stubborn"
    launch --limit 0.5 -n 2 -- sleep "$late"
    check 'time limit' 124 $code
    gone "$late"
}

interrupts() {
    "$sluice" run -n 2 -- sh -c 'trap "echo stopping; exit 0" INT; echo ready; while :; do sleep 0.1; done' \
        >"$work/out" 2>"$work/err" &
    local pid=$! stubborn
    comes_true are_ready 2
    kill -INT $pid
    wait $pid
    check 'ranks that stop cleanly' 0 $?
    check 'both did' '[0] stopping,[1] stopping' "$(grep stopping "$work/out" | sort | paste -sd,)"
    stubborn=$(mark 63)
    "$sluice" run -n 2 -- sh -c 'trap "" INT TERM; echo ready; while :; do sleep $0; done' "$stubborn" \
        >"$work/out" 2>"$work/err" &
    pid=$!
    comes_true are_ready 2
    kill -INT $pid
    sleep 0.5
    kill -0 $pid
    check 'waits after the first' 0 $?
    kill -TERM $pid
    wait $pid
    check 'the second kills' 137 $?
    gone "$stubborn"
}

orphans() {
    # What a rank left behind, and what runs when the launcher itself is killed.
    local left_behind orphan
    left_behind=$(mark 64) orphan=$(mark 65)
    launch -n 2 -- sh -c 'sleep $0 & exit 0' "$left_behind"
    check 'left behind' 0 $code
    gone "$left_behind"
    "$sluice" run -n 2 -- sh -c 'sleep $0; true' "$orphan" >/dev/null 2>&1 &
    local pid=$!
    comes_true some_alive_or_ended "$orphan" 5 # the command, two shells, what they run
    check 'they run' yes "$(some_alive "$orphan" 5 && echo yes)"
    kill -KILL $pid
    wait $pid 2>/dev/null
    gone "$orphan"
}

for part in environment output exit_codes survivors interrupts orphans; do $part; done
[ $failed = 0 ] && echo "sluice run: all as promised"
exit $failed
