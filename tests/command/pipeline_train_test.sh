#!/usr/bin/env bash
# `sluice train --pipeline`: the weights, losses and evaluations of one rank with the same micro-batches, whatever the
# schedule and the cuts; a checkpoint of stages goes on without them; what a pipeline does not do yet is refused by name.
. "$(dirname "$0")/../support/command_check.sh"
. "$(dirname "$0")/../support/train_check.sh"

short=(--size nano --micro-batches 3 --steps 2)

numbers_of() { # FILE: what must not depend on the stages
    hash_of "$1"
    grep -E '"(evaluation_loss|final_loss)"' "$1"
}

equal_runs() {
    train "${short[@]}" -n 1 --tied split --json "$work/one.json"
    check 'one rank trains' 0 $code
    train "${short[@]}" -n 2 --pipeline 2 --json "$work/two.json"
    check 'two stages train' 0 $code
    check 'the start says so' yes "$(grep -q '^pipeline  *2 stages, schedule 1f1b, cuts auto$' "$work/out" && echo yes)"
    check 'two stages' "$(numbers_of "$work/one.json")" "$(numbers_of "$work/two.json")"
    train "${short[@]}" -n 3 --pipeline 3 --pipeline-schedule gpipe --pipeline-cuts h.1,head --json "$work/three.json"
    check 'three stages' "$(numbers_of "$work/one.json")" "$(numbers_of "$work/three.json")"
}

going_on() {
    train "${short[@]}" -n 2 --pipeline 2 --save "$work/stages"
    check 'stages are saved' 0 $code
    train "${short[@]}" -n 1 --tied split --resume "$work/stages" --steps 3 --json "$work/resumed.json"
    check 'one rank goes on' 0 $code
    check 'without a warning' no "$(grep -q 'does not go on as it would' "$work/err" && echo yes || echo no)"
    train "${short[@]}" -n 1 --tied split --steps 3 --json "$work/whole.json"
    check 'as if there had been one' "$(hash_of "$work/whole.json")" "$(hash_of "$work/resumed.json")"
}

refusals() {
    refuses 'give off, or from 2' --pipeline 1
    refuses 'goes with --pipeline P' --pipeline-cuts h.1
    refuses 'not built in this version' -n 2 --pipeline 2 --pipeline-schedule 2bw
    refuses 'not with --trace yet' -n 2 --pipeline 2 --trace "$work/trace"
    refuses 'start more ranks' -n 1 --pipeline 2
    refuses 'use tied split' -n 2 --pipeline 2 --tied joint
}

equal_runs
going_on
refusals
[ $failed = 0 ] && echo "sluice train --pipeline: all as promised"
exit $failed
