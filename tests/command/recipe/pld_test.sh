#!/usr/bin/env bash
# Progressive layer dropping gives the same bits for every exact strategy and schedule, a budget, recomputation, either
# lane of updates, one rank or two, and after a stop and resume; a layer that is left out sends nothing; a recipe's file
# says the same; what cannot be is refused by name.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"

train() { # OPTION...: output in $work/out and $work/err, results in $work/run.json, exit code in $code
    rm -f "$work/run.json"
    timeout 120 "$sluice" train --data "$work/text" --context 32 --batch 2 --eval-batches 1 --schedule one_ahead \
        --lr 0.002 --clip 1 --json "$work/run.json" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

weights() { # OPTION...: trains; the hash of what it ends with
    train "$@"
    [ $code = 0 ] || { echo "exit code $code: $(tail -n 1 "$work/err")"; return; }
    sed -n 's/.*"weights_sha256": \("[0-9a-f]*"\).*/\1/p' "$work/run.json"
}

# shellcheck disable=SC2054 # the comma belongs to the value
drops=(--pld 0.3,0.5 --steps 10 --micro-batches 2)

equal_bits() {
    local whole strategy
    whole=$(weights -n 2 "${drops[@]}" --strategy dp)
    check 'a run ends with weights' 66 ${#whole}
    [ "$whole" != "$(weights -n 2 --steps 10 --micro-batches 2 --strategy dp)" ] || check 'dropping acts' different same
    [ "$whole" != "$(weights -n 2 "${drops[@]}" --pld-compat)" ] || check 'compat acts' different same
    [ "$whole" != "$(weights -n 2 "${drops[@]}" --seed 2)" ] || check 'the seed acts' different same
    for strategy in oss fsdp random:4; do
        check "$strategy" "$whole" "$(weights -n 2 "${drops[@]}" --strategy $strategy)"
    done
    check 'a budget' "$whole" "$(weights -n 2 "${drops[@]}" --budget 90% --schedule "$(default_schedule)")"
    check 'recomputation' "$whole" "$(weights -n 2 "${drops[@]}" --strategy sdp --recompute all)"
    check 'updates on the compute threads' "$whole" \
        "$(SLUICE_PLAN_UPDATES=compute weights -n 2 "${drops[@]}" --strategy oss)"
    check 'under the check of lives' "$whole" \
        "$(SLUICE_ENGINE_CHECK=on weights -n 2 "${drops[@]}" --strategy sdp --recompute all)"
    rm -rf "$work/run"
    train -n 2 "${drops[@]}" --strategy sdp --steps 4 --save "$work/run"
    check 'a part' 0 $code
    check 'a resumed run' "$whole" "$(weights -n 2 "${drops[@]}" --strategy fsdp --resume "$work/run")"
    train -n 2 "${drops[@]}" --pld 0.3,0.6 --resume "$work/run"
    check 'another recipe on resume' 1 \
        "$(grep -c 'saved with another recipe: pld was "0.3,0.5" and is "0.3,0.6"; give --pld 0.3,0.5' "$work/err")"
    printf '{"version": 1, "steps": 10, "depth": {"pld": "0.3,0.5"}, "batch": {"micro_batches": 2}}' >"$work/recipe"
    check 'a recipe' "$whole" "$(weights -n 2 --recipe "$work/recipe" --strategy dp)"
    check 'a BERT with norms before its branches' \
        "$(weights -n 2 "${drops[@]}" --model bert --norm before --strategy dp)" \
        "$(weights -n 2 "${drops[@]}" --model bert --norm before --strategy fsdp --recompute all)"
    check 'LAMB' "$(weights -n 2 "${drops[@]}" --clip 0 --optimizer lamb --strategy dp)" \
        "$(weights -n 2 "${drops[@]}" --clip 0 --optimizer lamb --strategy fsdp)"
    check 'dropout and bf16 beside it' \
        "$(weights -n 2 "${drops[@]}" --dropout 0.1 --drop-path 0.1 --precision bf16 --strategy dp)" \
        "$(weights -n 2 "${drops[@]}" --dropout 0.1 --drop-path 0.1 --precision bf16 --strategy fsdp)"
}

# Under dp and without late operations each layer that is left out takes the same bytes from a step.
bytes() {
    train -n 2 --pld 0.2,0.3 --steps 24 --strategy dp --schedule serial --csv "$work/run.csv"
    check 'bytes: exit code' 0 $code
    check 'each step sends what its layers do' fits "$(python3 - "$work/run.csv" <<'PY'
import csv, sys
sent = [int(row["bytes_sent"]) for row in csv.DictReader(open(sys.argv[1]))]
whole = max(sent)
fewer = sorted({whole - s for s in sent} - {0})
print("fits" if len(fewer) > 1 and all(f % fewer[0] == 0 for f in fewer) else sent)
PY
)"
}

words() {
    train --pld 0.5 --steps 2
    check 'the line of training' 1 "$(grep -c 'of all 4 layers at first and of 3.25 in the mean later' "$work/out")"
}

refuses() { # WORDS OPTION...
    local words=$1
    shift
    train "$@"
    check "$*: exit code" 2 $code
    grep -q -- "$words" "$work/err" || check "$*: the message" "$words" "$(tail -n 1 "$work/err")"
}

refusals() {
    refuses 'theta is 0; it must be above 0 and at most 1' --pld 0
    refuses 'theta is 1.5; it must be above 0' --pld 1.5
    refuses 'gamma is -1; give a number above 0, at most 1e6' --pld 0.5,-1
    refuses 'gamma is 1e+07; give a number above 0, at most 1e6' --pld 0.5,1e7
    refuses 'give THETA or THETA,GAMMA' --pld half
    refuses 'give --pld THETA too' --pld-compat
    refuses 'not for a bert whose norms come after the branches' --pld 0.5 --model bert
    refuses 'a layer whose branches are left out still changes it; give --norm before' --pld 0.5 --model bert --norm after
    refuses 'not with --pld yet' --pld 0.5 --pipeline 2 -n 2
    refuses 'exchanges all layers as one, so that none can be left out' --pld 0.5 --optimizer onebit_lamb --onebit-compat -n 2
    refuses 'cannot convert between the precisions' --pld 0.5 --layer-precision h.0=bf16
}

# Phases of compressed optimizers, with all units under onebit.
compressed() {
    local optimizer whole phases='var_update_scaler=2,local_step_scaler=3,local_step_clipper=4'
    for optimizer in onebit_adam onebit_lamb zero_one_adam; do
        local run=(-n 2 "${drops[@]}" --strategy onebit --clip 0 --steps 14 --freeze-step 4 --optimizer "$optimizer"
            --onebit "$phases")
        whole=$(weights "${run[@]}" --schedule serial)
        check "$optimizer: a run ends with weights" 66 ${#whole}
        [ "$whole" != "$(weights "${run[@]}" --pld 1)" ] || check "$optimizer: dropping acts" different same
        check "$optimizer: another schedule" "$whole" "$(weights "${run[@]}")"
        rm -rf "$work/run"
        train "${run[@]}" --steps 9 --save "$work/run"
        check "$optimizer: a part" 0 $code
        check "$optimizer: a resumed run" "$(weights "${run[@]}" --save "$work/other" --save-every 9)" \
            "$(weights "${run[@]}" --resume "$work/run")"
        rm -rf "$work/other"
    done
}

equal_bits
bytes
compressed
words
refusals
exit $failed
