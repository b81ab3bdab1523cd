#!/usr/bin/env bash
# A rank on a GPU that dies, stops or goes silent while others train with it: every survivor names it and ends, though
# kernels wait for it, and nothing is left over. A few drawn moments; SLUICE_TEST_MOMENTS=40 tries as many.
# Labels: sanitized
. "$(dirname "$0")/../../support/command_check.sh"
. "$(dirname "$0")/../../support/gpu/several_gpus.sh"
moments=${SLUICE_TEST_MOMENTS:-3}
ranks=3
mark=$work/mark # in the command line of every rank

pid_of() { # RANK
    local pid
    for pid in $(pgrep -f -- "$mark"); do
        tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qx "RANK=$1" && echo "$pid"
    done
}

finds_victim() { # its process is $pid
    pid=$(pid_of "$victim" | tail -n 1)
    [ -n "$pid" ] || ended
}

has_trained() {
    ended || grep -q 'step  *[1-9]' "$work/err" "$work/out"
}

# RANK: it says which one was lost. The launcher does if the ranks have not all met: they say nothing then, or that.
names_victim() {
    grep "^\[$1\]" "$work/err" | grep -q "rank $victim" && return
    grep -q "rank $victim was killed" "$work/err" || return
    ! grep -hv -e 'while the world was being made' -e 'while ranks were joining' "$work/err" "$work/out" | grep -q '^\['
}

# SIGNAL: a drawn rank gets it at a drawn moment, of planning, training or saving.
lose_rank() {
    local victim=$((RANDOM % ranks)) pid rank began
    local options=(--steps 100000 --save "$mark" --save-every 3)
    rm -rf "$mark"
    begin "$work/out" "$work/err" setsid "$sluice" run -n "$ranks" -- "$sluice" train --device cuda "${data[@]}" \
        "${common[@]}" --strategy fsdp "${options[@]}" --timeout 5
    if [ $((RANDOM % 4)) != 0 ]; then comes_true has_trained; fi
    sleep "0.$((RANDOM % 10))"
    comes_true finds_victim # on a busy machine its process may not have begun
    began=$SECONDS
    [ -z "$pid" ] || kill "-$1" "$pid"
    ends "rank $victim gets SIG$1"
    echo "SIG$1 for rank $victim: over after $((SECONDS - began)) s"
    check "rank $victim gets SIG$1: it is a failure" yes "$([ $code != 0 ] && [ $code -lt 255 ] && echo yes)"
    for ((rank = 0; rank < ranks; rank++)); do
        [ $rank != $victim ] || continue
        check "rank $victim gets SIG$1: rank $rank names it" yes \
            "$(names_victim "$rank" && echo yes)"
    done
    kill -KILL -- "-$process" 2>/dev/null # a rank that was stopped
    comes_true nothing_left
    check 'nothing is left' 0 "$(alive "$mark")"
}

nothing_left() {
    [ "$(alive "$mark")" = 0 ]
}

for ((moment = 0; moment < moments; moment++)); do
    lose_rank KILL
    [ $((moment % 3)) != 2 ] || lose_rank STOP
done
[ $failed = 0 ] && echo "several GPUs: every loss is named"
exit $failed
