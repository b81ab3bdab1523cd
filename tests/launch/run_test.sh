#!/usr/bin/env bash
# `sluice run` keeps its promises: the environment, the prefix, exit codes, the time that survivors get, and no orphans.
# Most of this test waits.
# Labels: sanitized
. "$(dirname "$0")/../support/command_check.sh"

launch() { # CMD...: output in $work/out and $work/err, exit code in $code
    timeout -k 10 60 "$sluice" run "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

launch -n 1 -- echo works
check 'a command is run' '[0] works' "$(cat "$work/out")"
[ $failed = 0 ] || exit 1 # the rest would wait for what never comes

# mark makes a number of seconds that no other process of the machine sleeps, so that it marks a process of this test.
mark() { # WHOLE
    printf '%d.%05d%07d' "$1" $RANDOM $$
}

none_alive() {
    [ "$(alive "$1")" = 0 ]
}

some_alive() { # MARK, how many
    [ "$(alive "$1")" -ge "$2" ]
}

some_alive_or_ended() { # as some_alive, unless $process has ended
    some_alive "$@" || ended
}

gone() { # waits until no process has the mark
    comes_true none_alive "$1"
    check "no orphan with mark $1" 0 "$(alive "$1")"
}

are_ready() { # how many ranks say so, unless $process has ended
    [ "$(grep -c ready "$work/out")" = "$1" ] || ended
}

interrupted() { # SIGNAL: sends it when two ranks are ready; before that it might be lost
    comes_true are_ready 2
    check "two ranks are ready for SIG$1" 2 "$(grep -c ready "$work/out")"
    kill -"$1" $process
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
    check 'a full disk is named' 1 "$(grep -c 'output of the ranks was lost: No space left' "$work/err")"
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

have_ended() { # how many children of $process
    [ "$(ps -o state= --ppid "$process" | grep -c Z)" = "$1" ] || ended
}

# A launcher that looks late sees both ends at once. The other rank has only heard of the one that was killed.
seen_late() {
    begin "$work/out" "$work/err" "$sluice" run -n 2 -- sh -c 'echo ready; until [ -e "$0" ]; do sleep 0.05; done
        [ $RANK = 0 ] || kill -KILL $$; sleep 0.1; exit 1' "$work/begin"
    comes_true are_ready 2
    kill -STOP $process
    touch "$work/begin"
    comes_true have_ended 2
    kill -CONT $process
    ends 'a launcher that was stopped'
    check 'the rank that was killed is the first failure' 137 $code
    check 'it is told first' 1 "$(grep -c 'rank 1 was killed by signal 9 (Killed); rank 0 ended' "$work/err")"
}

survivors() {
    local stubborn late
    stubborn=$(mark 61) late=$(mark 62)
    launch -n 2 -- sh -c 'if [ $RANK = 0 ]; then exit 5; fi; sleep 0.3; echo I saw it; exit 6'
    check 'the first failure counts' 5 $code
    check 'a survivor can speak' '[1] I saw it' "$(cat "$work/out")"
    launch -n 2 -- sh -c 'if [ $RANK = 0 ]; then exit 5; fi; trap "" TERM; sleep $0 & wait; sleep $0' "$stubborn"
    check 'a stubborn survivor is ended' 5 $code
    gone "$stubborn"
    launch --limit 0.5 -n 2 -- sleep "$late"
    check 'time limit' 124 $code
    gone "$late"
}

interrupts() {
    local stubborn
    begin "$work/out" "$work/err" "$sluice" run -n 2 -- \
        sh -c 'trap "echo stopping; exit 0" INT; echo ready; while :; do sleep 0.1; done'
    interrupted INT
    ends 'ranks that stop cleanly'
    check 'ranks that stop cleanly' 0 $code
    check 'both did' '[0] stopping,[1] stopping' "$(grep stopping "$work/out" | sort | paste -sd,)"
    stubborn=$(mark 63)
    begin "$work/out" "$work/err" "$sluice" run -n 2 -- \
        sh -c 'trap "" INT TERM; echo ready; while :; do sleep $0; done' "$stubborn"
    interrupted INT
    comes_true said_or_ended 'once more kills them' "$work/err"
    check 'it waits after the first' no "$(ended && echo yes || echo no)"
    kill -TERM $process
    ends 'ranks that stop for no signal'
    check 'the second kills' 137 $code
    gone "$stubborn"
}

orphans() {
    # A process that a rank left running is ended, and so is all that runs when the launcher itself is killed.
    local left_behind orphan
    left_behind=$(mark 64) orphan=$(mark 65)
    launch -n 2 -- sh -c 'sleep $0 & exit 0' "$left_behind"
    check 'left behind' 0 $code
    gone "$left_behind"
    begin /dev/null /dev/null "$sluice" run -n 2 -- sh -c 'sleep $0; true' "$orphan"
    comes_true some_alive_or_ended "$orphan" 5 # the command, two shells, what they run
    check 'they run' yes "$(some_alive "$orphan" 5 && echo yes)"
    kill -KILL $process
    ends 'a launcher that is killed'
    gone "$orphan"
}

# A reader that is there and never reads: the test itself holds the pipe open. Begins the job in the background.
stalled() { # CMD...: process in $process; read from &7
    [ -p "$work/pipe" ] || mkfifo "$work/pipe"
    exec 7<>"$work/pipe"
    : >"$work/err" # not by the shell below, at some later time: says() reads it
    "$sluice" run "$@" >"$work/pipe" 2>"$work/err" </dev/null 7<&- &
    process=$!
}

appears() { # FILE
    comes_true [ -e "$1" ]
    check "$1 appears" yes "$([ -e "$1" ] && echo yes)"
}

says() { # WORDS: of the launcher
    comes_true grep -q "$1" "$work/err"
    check "it says: $1" yes "$(grep -q "$1" "$work/err" && echo yes)"
}

stalled_readers() {
    stalled --limit 2 -n 1 -- yes
    ends 'limit'
    check 'a time limit counts while nobody reads' 124 $code
    check 'what is lost is named' 1 "$(grep -c 'output of the ranks was lost: nobody read it' "$work/err")"
    exec 7<&-

    stalled -n 2 -- sh -c 'if [ $RANK = 0 ]; then sleep 1; exit 5; fi; exec yes 66.25'
    says 'rank 1 was killed by signal 15'
    check 'the launcher waits for its reader' 0 "$(kill -0 $process; echo $?)"
    cat <&7 >"$work/out" &
    local reader=$!
    ends 'a failure'
    check 'the failure is the result' 5 $code
    check 'its reader gets all' '[1] 66.25' "$(sort -u "$work/out")"
    kill $reader
    exec 7<&-

    # Output is stuck, a rank waits in its write, and yet it saves when it is asked to stop.
    stalled -n 1 -- bash -c 'trap "touch $0/saved; exit 0" INT; touch $0/ready; while :; do echo 0123456789; done' "$work"
    appears "$work/ready"
    sleep 1
    kill -INT $process
    ends 'Ctrl-C'
    check 'a rank whose output is stuck saves' yes "$([ -e "$work/saved" ] && echo yes)"
    exec 7<&-

    stalled -n 2 -- bash -c 'trap "" INT TERM; touch "$0.$RANK"; while :; do echo 67.25; done' "$work/deaf"
    appears "$work/deaf.0"
    appears "$work/deaf.1"
    sleep 1
    kill -INT $process
    says 'once more kills them'
    kill -INT $process
    ends 'a second Ctrl-C'
    check 'a second one kills while output is stuck' 137 $code
    gone "$work/deaf"
    exec 7<&-

    # Both outputs are stuck: nothing can be said, and it ends all the same.
    mkfifo "$work/pipe2"
    exec 8<>"$work/pipe2"
    stalled -n 1 -- sh -c 'yes >&2 & touch "$0"; exec yes' "$work/begun"
    "$sluice" run -n 1 -- sh -c 'yes >&2 & touch "$0.too"; exec yes' "$work/begun" >"$work/pipe" 2>"$work/pipe2" \
        </dev/null 7<&- 8<&- &
    local second=$!
    appears "$work/begun"
    appears "$work/begun.too"
    sleep 1
    kill -INT $process $second
    sleep 0.5
    kill -INT $process $second 2>/dev/null
    ends 'the first'
    process=$second
    ends 'both outputs stuck'
    exec 7<&- 8<&-
}

slow_readers() {
    "$sluice" run -n 1 -- seq 200000 2>"$work/err" | (sleep 2; tail -n 1) >"$work/out"
    check 'a slow reader gets all' '[0] 200000' "$(cat "$work/out")"
    # Somebody else made the output non-blocking.
    python3 -c 'import os, sys, time; r, w = os.pipe(); os.set_blocking(w, False)
if not os.fork(): os.close(r); os.dup2(w, 1); os.execv(sys.argv[1], [sys.argv[1], "run", "-n", "1", "--", "seq", "100000"])
os.close(w); time.sleep(1); sys.stdout.write(open(r).read().splitlines()[-1])' "$sluice" >"$work/out"
    check 'a non-blocking output' '[0] 100000' "$(cat "$work/out")"
    # A rank that writes much does not keep the others silent.
    "$sluice" run --limit 60 -n 3 -- sh -c 'if [ $RANK = 2 ]; then echo here; fi; exec yes' 2>"$work/err" |
        grep -m 1 here >"$work/out"
    check 'every rank has its turn' '[2] here' "$(cat "$work/out")"
}

closed_readers() {
    rm -f "$work"/saved*
    timeout -k 10 60 "$sluice" run -n 2 -- bash -c 'trap "touch $0/saved.$RANK; exit 0" TERM; while :; do echo line; sleep 0.1; done' \
        "$work" 2>"$work/err" </dev/null | head -n 1 >"$work/out"
    check 'exit code of SIGPIPE' 141 "${PIPESTATUS[0]}"
    check 'both ranks save' "$work/saved.0 $work/saved.1" "$(echo "$work"/saved*)"
    check 'it says why they stop' 1 "$(grep -c 'nobody reads the output any more: the ranks are told to stop' "$work/err")"
    # Two ranks are asked to stop: one leaves at once, and the other takes longer than survivors of a failure have.
    rm -f "$work"/saved*
    timeout -k 10 100 "$sluice" run -n 2 -- bash -c 'if [ $RANK = 1 ]; then while :; do echo line; sleep 0.1; done; fi
        trap "sleep 5; touch $0/saved; exit 0" TERM; while :; do sleep 0.1; done' "$work" 2>"$work/err" </dev/null |
        head -n 1 >"$work/out"
    check 'one who saves has time' yes "$([ -e "$work/saved" ] && echo yes)"
    # A rank's programs end by signals as they would without the launcher: SIGPIPE ends `yes`.
    launch -n 1 -- bash -c 'yes | head -n 1; echo ${PIPESTATUS[0]}'
    check 'SIGPIPE of a rank' '[0] y,[0] 141' "$(paste -sd, "$work/out")"
}

# A child inherits what its parent had ignored.
ignored_signals() {
    timeout -k 10 100 env --ignore-signal=CHLD "$sluice" run -n 2 -- sh -c 'exit $((3 * RANK))' \
        >"$work/out" 2>"$work/err" </dev/null
    check 'SIGCHLD was ignored: the code of the rank that failed' 3 $?
    check 'SIGCHLD was ignored: it is named' 1 "$(grep -c 'rank 1 ended with exit code 3' "$work/err")"
    timeout -k 10 100 env --ignore-signal=CHLD "$sluice" run -n 2 -- bash -c 'sh -c "exit 5"; echo $?' \
        >"$work/out" 2>"$work/err" </dev/null
    check 'SIGCHLD was ignored: ranks know the codes of their own' '[0] 5,[1] 5' "$(sort "$work/out" | paste -sd,)"
}

ignored_child_signal() {
    timeout -k 10 100 env --ignore-signal=CHLD "$sluice" run --limit 0.5 -n 2 -- sleep 50 >"$work/out" 2>"$work/err" </dev/null
    check 'SIGCHLD was ignored: the time limit' 124 $?
    env --ignore-signal=CHLD "$sluice" --help=markdown >/dev/null 2>"$work/err"
    check 'SIGCHLD was ignored: pages, which children print' 0 $?
    has_command train || return 0
    timeout -k 10 100 env --ignore-signal=CHLD "$sluice" train -n 2 --steps 1 --schedule one_ahead \
        --data "$(dirname "$0")/run_test.sh" --context 16 --eval-batches 0 >"$work/out" 2>"$work/err" </dev/null
    check 'SIGCHLD was ignored: training' 0 $?
}

# If the launcher is the first process of a container, it becomes the parent of all processes that others leave behind.
first_process() {
    local user=()
    [ "$(id -u)" = 0 ] || user=(--user --map-root-user)
    if ! unshare "${user[@]}" --pid --fork --mount-proc true 2>"$work/err"; then
        skip "sluice run as process 1: $(head -n 1 "$work/err")"
        return
    fi
    timeout -k 10 100 unshare "${user[@]}" --pid --fork --kill-child --mount-proc "$sluice" run -n 1 -- bash -c '
        for _ in 1 2 3; do (setsid true &); done
        sleep 0.3
        left() { grep -lsE "^State:.*zombie" /proc/[0-9]*/status | wc -l; }
        for _ in {1..400}; do [ "$(left)" = 0 ] && break; sleep 0.05; done
        echo "process $PPID, $(left) zombies"; exit 3' >"$work/out" 2>"$work/err" </dev/null
    check 'process 1: the code of its rank' 3 $?
    check 'process 1: it reaps strangers' '[0] process 1, 0 zombies' "$(cat "$work/out")"
}

descriptors() {
    (ulimit -n 24 && launch -n 12 -- true; exit $code)
    check 'too few descriptors' 1 $?
    check 'the hard limit is named' 1 "$(grep -c '12 ranks need 40 open files and the hard limit is 24' "$work/err")"
    (ulimit -Sn 24 && launch -n 12 -- sh -c 'ulimit -n'; exit $code)
    check 'the soft limit is raised' 0 $?
    check 'and the ranks have their own' '24' "$(cut -d' ' -f2 "$work/out" | sort -u)"
    launch -n 4096 -- true
    check 'too many ranks' yes "$([ $code != 0 ] && grep -q '4095' "$work/err" && echo yes)"
    launch -n 1 --port 65536 -- true
    check 'no such port' yes "$([ $code != 0 ] && grep -q '65535' "$work/err" && echo yes)"
    launch -n 2 --port 65535 -- sh -c 'echo $MASTER_PORT'
    check 'the last port' 65535 "$(cut -d' ' -f2 "$work/out" | sort -u)"
}

parts=(environment output exit_codes seen_late survivors interrupts orphans stalled_readers slow_readers closed_readers ignored_signals
    ignored_child_signal first_process descriptors)
for part in "${parts[@]}"; do $part; done
[ $failed = 0 ] && echo "sluice run: all as promised"
exit $failed
