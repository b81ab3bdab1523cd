#!/usr/bin/env bash
# What `sluice train --save` and `--resume` promise: a run that goes on has the losses and weights of one that was never
# stopped, to the bit, under any strategy, after SIGKILL too; Ctrl-C saves; what does not fit is said.
. "$(dirname "$0")/command_check.sh"
need_command train
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
common=(--data "$work/text" --context 32 --batch 2 --eval-batches 1 --warmup 5)

train() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 120 "$sluice" train "${common[@]}" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

refuses() { # words of the message, then OPTION...
    local words=$1
    shift
    train "$@"
    check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check "$* says why" yes "$(grep -qi -- "$words" "$work/err" && echo yes)"
}

hash_of() {
    grep -o '"weights_sha256": "[0-9a-f]*"' "$1"
}

losses_of() { # CSV...: step and loss of every step, the later file's where two have it
    cat "$@" | grep '^[0-9]' | cut -d, -f1,2 | sort -t, -k1,1n -u
}

# Ranks, strategy before, strategy after, precision, other OPTION...
goes_on() {
    local ranks=() before=$2 after=$3 what="$1 ranks, $2 to $3, ${*:4}"
    [ "$1" = 1 ] || ranks=(-n "$1")
    shift 3
    rm -rf "$work/run"
    train "${ranks[@]}" --strategy dp --steps 7 --json "$work/whole.json" --csv "$work/whole.csv" "$@"
    check "$what: uninterrupted" 0 $code
    train "${ranks[@]}" --strategy "$before" --steps 4 --save "$work/run" --csv "$work/first.csv" "$@"
    check "$what: saved" 0 $code
    train "${ranks[@]}" --strategy "$after" --steps 7 --resume "$work/run" --json "$work/b.json" \
        --csv "$work/second.csv" "$@"
    check "$what: resumed" 0 $code
    check "$what: equal losses" "$(losses_of "$work/whole.csv")" "$(losses_of "$work/first.csv" "$work/second.csv")"
    check "$what: equal weights" "$(hash_of "$work/whole.json")" "$(hash_of "$work/b.json")"
    check "$what: nothing to say" '' "$(grep -i warn "$work/err")"
}

other_worlds() { # in $work/run is a checkpoint of 2 ranks
    for ranks in 1 3; do
        train -n $ranks --steps 4 --resume "$work/run" --json "$work/n$ranks.json"
        check "$ranks ranks read it" 0 $code
        check "$ranks ranks say what changes" yes "$(grep -q 'ranks was 2 and is' "$work/err" && echo yes)"
    done
    check 'all have the same weights' "$(hash_of "$work/n1.json")" "$(hash_of "$work/n3.json")"
}

refusals() { # in $work/run is a checkpoint of step 4
    mkdir -p "$work/nothing"
    refuses 'there is no checkpoint in' --resume "$work/nothing"
    refuses 'there is no checkpoint in' --resume "$work/nowhere"
    refuses 'was saved with --size "nano", this run has "mini"' --resume "$work/run" --size mini
    refuses 'holds checkpoints of another run, up to step 4' --save "$work/run"
    refuses 'cannot make the folder' --save "$work/nowhere/at/all"
    refuses 'cannot write\|not a directory\|cannot make\|cannot read' --save "$work/text"
    train --steps 6 --resume "$work/run" --lr 0.5
    check 'another learning rate is warned about' yes "$(grep -q 'lr was 0.001 and is 0.5' "$work/err" && echo yes)"
    check 'and taken' 0 $code
    train --steps 4 --resume "$work/run"
    check 'nothing to train' yes "$(grep -q 'nothing to train' "$work/out" && echo yes)"
    check 'nothing to train is no error' 0 $code
    printf x >>"$work/run/step-000004/rank-0000.slc"
    refuses 'too long' --resume "$work/run" --steps 6
}

keeps_two() {
    rm -rf "$work/many"
    train --steps 7 --save "$work/many" --save-every 2
    check 'the last two stay' 'step-000006 step-000007' "$(cd "$work/many" && echo *)"
    SLUICE_CHECKPOINT_KEEP=x refuses 'CHECKPOINT_KEEP=x' --steps 1 --save "$work/none"
    check 'said before the first step' 0 "$(grep -c '^step' "$work/err")"
    SLUICE_CHECKPOINT_KEEP=0 train --steps 12 --resume "$work/many" --save "$work/many" --save-every 2
    check 'all stay' 'step-000006 step-000007 step-000008 step-000010 step-000012' "$(cd "$work/many" && echo *)"
}

# Begins a long run and ends it with SIGNAL when it has saved something new, or for INT has trained a step.
stop_with() { # SIGNAL, RANKS, OPTION...
    local signal=$1 ranks=() process before
    [ "$2" = 1 ] || ranks=(-n "$2")
    shift 2
    before=$(latest)
    rm -f "$work/err"
    touch "$work/err"
    setsid "$sluice" train "${common[@]}" "${ranks[@]}" --steps 100000 --save "$work/cut" "$@" \
        >"$work/out" 2>"$work/err" </dev/null &
    process=$!
    for _ in $(seq 600); do
        [ "$(latest)" = "$before" ] || break
        [ "$signal" = INT ] && grep -q 'step 1/' "$work/err" && break
        kill -0 $process 2>/dev/null || break
        sleep 0.05
    done
    sleep "0.0$((RANDOM % 10))"
    if [ "$signal" = KILL ]; then kill -KILL -- "-$process"; else kill -"$signal" $process; fi
    wait $process 2>/dev/null
    code=$?
}

latest() { # step in $work/cut
    local folders=("$work"/cut/step-??????)
    [ -e "${folders[0]}" ] && echo $((10#${folders[-1]##*-}))
}

# What the folder says is what an uninterrupted run has after as many steps.
as_uninterrupted() { # RANKS
    local ranks=() step
    [ "$1" = 1 ] || ranks=(-n "$1")
    step=$(latest)
    train "${ranks[@]}" --steps $((step + 2)) --resume "$work/cut" --json "$work/a.json"
    check "resumed after step $step" 0 $code
    train "${ranks[@]}" --steps $((step + 2)) --json "$work/b.json"
    check "as never stopped at $step" "$(hash_of "$work/b.json")" "$(hash_of "$work/a.json")"
}

killed() {
    rm -rf "$work/cut"
    stop_with KILL 2 --save-every 1
    as_uninterrupted 2
    for _ in 1 2 3; do stop_with KILL 2 --save-every 1 --resume "$work/cut"; done
    as_uninterrupted 2
}

interrupted() {
    rm -rf "$work/cut"
    mkdir "$work/cut"
    stop_with INT 1
    check 'Ctrl-C: exit code' 130 $code
    check 'Ctrl-C saves' 1 "$(ls "$work/cut" | wc -l)"
    as_uninterrupted 1
}

# Said before the first step: a folder of the same name, another on each rank.
folder_apart() {
    mkdir -p "$work/apart/0" "$work/apart/1"
    timeout 120 "$sluice" run -n 2 -- bash -c 'cd "$0/$RANK" && exec "$@"' "$work/apart" "$sluice" train \
        "${common[@]}" --steps 2 --save out >"$work/out" 2>"$work/err" </dev/null
    code=$?
    check 'a folder that ranks do not share fails' yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check 'rank 1 says why' yes "$(grep -q 'rank 1 does not see' "$work/err" && echo yes)"
    check 'before the first step' 0 "$(grep -c 'step 1/' "$work/err")"
    check 'nothing is left' '' "$(ls -A "$work/apart/0/out")"
}

# On a disk that is full the run goes on and says at its end that nothing is saved.
full_disk() {
    mkdir -p "$work/small"
    mount -t tmpfs -o size=2m tmpfs "$work/small" 2>/dev/null ||
        { skip 'a full disk: this user may mount no small tmpfs'; return; }
    train --steps 3 --save "$work/small/run" --save-every 1 --csv "$work/full.csv"
    check 'a full disk fails' 1 $code
    check 'every step was trained' 4 "$(wc -l <"$work/full.csv")"
    check 'a full disk is named' yes "$(grep -qi 'no space left' "$work/err" && echo yes)"
    check 'nothing half done is left' 0 "$(ls "$work/small/run" | wc -l)"
    umount "$work/small"
}

goes_on 1 dp dp
goes_on 2 fsdp oss --micro-batches 2 --accumulate each
goes_on 1 auto auto --precision bf16 --dropout 0.1
goes_on 2 auto sdp --clip 1
other_worlds
refusals
keeps_two
killed
interrupted
folder_apart
full_disk
exit $failed
