#!/usr/bin/env bash
# Stochastic depth: its draws are the same under every strategy, budget and recomputation, in stages and after a stop;
# evaluations leave nothing out; a run has it in its recipe, and another share is another recipe.
. "$(dirname "$0")/../../support/command_check.sh"
. "$(dirname "$0")/../../support/train_check.sh"
drop=(--drop-path 0.5 --dropout 0.1 --micro-batches 3 --steps 4)

weights_of() { # OPTION...: what a run ends with
    train --json "$work/run.json" "$@"
    [ $code = 0 ] || { echo "exit code $code: $(tail -n 1 "$work/err")"; return; }
    hash_of "$work/run.json"
}

equal_bits() {
    local whole
    whole=$(weights_of -n 2 "${drop[@]}" --strategy dp)
    for strategy in oss sdp fsdp; do
        check "$strategy" "$whole" "$(weights_of -n 2 "${drop[@]}" --strategy $strategy)"
    done
    check 'recomputation' "$whole" "$(weights_of -n 2 "${drop[@]}" --strategy sdp --recompute all)"
    check 'a budget' "$whole" "$(weights_of -n 2 "${drop[@]}" --budget 92% --schedule "$(default_schedule)")"
    rm -rf "$work/run"
    train -n 2 "${drop[@]}" --steps 2 --save "$work/run"
    check 'a run that goes on' "$whole" "$(weights_of -n 2 "${drop[@]}" --strategy fsdp --resume "$work/run")"
    train -n 2 "${drop[@]}" --drop-path 0.25 --resume "$work/run"
    check 'another share is another recipe' '2 1' \
        "$code $(grep -c 'another recipe: drop-path was 0.5 and is 0.25; give --drop-path 0.5' "$work/err")"
    [ "$whole" != "$(weights_of -n 2 "${drop[@]}" --drop-path 0)" ] || check 'it acts' different same
    printf '{"version": 1, "branches": {"drop_path": 0.5}}' >"$work/recipe.json"
    check 'a recipe has it' "$whole" "$(weights_of -n 2 "${drop[@]:2}" --recipe "$work/recipe.json")"
    check 'and a result' 1 "$(grep -A1 '"branches"' "$work/run.json" | grep -c '"drop_path": 0.5')"
    check 'two stages are one rank' "$(weights_of -n 1 "${drop[@]}" --tied split)" "$(weights_of -n 2 "${drop[@]}" --pipeline 2)"
}

losses() { # OPTION...: of training, and of the evaluation, of a run that moves no weight
    train --steps 2 --lr 0 --json "$work/run.json" "$@"
    python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
print(json.dumps(run["losses"]), round(run["evaluation_loss"], 5))' "$work/run.json"
}

evaluations() {
    command -v python3 >/dev/null || { skip 'evaluations: python3 is not installed'; return; }
    local plain dropped
    plain=$(losses) dropped=$(losses --drop-path 0.9)
    check 'evaluations leave nothing out' "${plain##* }" "${dropped##* }"
    [ "${plain% *}" != "${dropped% *}" ] || check 'training does' different same
}

equal_bits
evaluations
refuses 'give a number from 0 to 0.99' --drop-path 1
exit $failed
