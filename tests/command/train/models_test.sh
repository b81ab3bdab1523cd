#!/usr/bin/env bash
# The bundled models run from the command line: each learns from real data, in both types; weights are equal to the bit
# whatever the strategy, in bf16 too; saved weights evaluate like the trained model, and can be trained on.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train

train() { # OPTION...: results in $work/run.json
    rm -f "$work/run.json"
    timeout 100 "$sluice" train --eval-batches 0 --schedule one_ahead --json "$work/run.json" "$@" >"$work/out" 2>"$work/err" </dev/null
    check "train $*" 0 $?
}

hash_of_run() {
    grep -o '"weights_sha256": "[0-9a-f]*"' "$work/run.json"
}

losses() { # the mean of the first three and of the last three
    tr -d '\n' <"$work/run.json" | sed 's/.*"losses": \[\([^]]*\)\].*/\1/' | tr -d ' ' | tr ',' '\n' | awk '
        {loss[NR] = $1} END {printf "%.6f %.6f\n", (loss[1] + loss[2] + loss[3]) / 3,
                             (loss[NR] + loss[NR - 1] + loss[NR - 2]) / 3}'
}

learns() { # least ratio of first to last loss, OPTION...
    local least=$1
    shift
    train "$@"
    check "$* learns" yes "$(losses | awk -v least="$least" '{print ($1 >= least * $2) ? "yes" : "no: " $0}')"
}

each_model_learns() {
    local precision
    for precision in fp32 bf16; do
        learns 1.4 --steps 40 --context 64 --precision $precision
        learns 1.4 --model bert --steps 40 --context 64 --precision $precision
    done
    learns 1.2 --steps 40 --context 64 --dropout 0.1 --optimizer lamb --lr 0.01
}

# Two ranks, three micro-batches, some layers of another type. gpt2_equality_test.sh does it for GPT-2, in all schedules.
strategies_change_no_bit() {
    local first options strategy
    for options in '--precision bf16 --layer-precision h.1=fp32,h.2=fp32 --clip 1' \
        '--model bert --precision bf16 --dropout 0.2 --recompute all' '--model vit --precision bf16 --optimizer lamb' \
        '--model beit --dropout 0.2' '--model beit --head tokens --precision bf16 --accumulate each'; do
        first=
        case $options in *vit* | *beit*) ;; *) options="$options --context 32" ;; esac
        for strategy in dp oss sdp fsdp random:7; do
            case "$strategy $options" in random*' vit '*) strategy+=" --schedule $(default_schedule)" ;; esac
            # shellcheck disable=SC2086 # options are words
            train -n 2 --steps 4 --batch 2 --micro-batches 3 $options --strategy $strategy
            first=${first:-$(hash_of_run)}
            check "equal weights: $strategy $options" "$first" "$(hash_of_run)"
        done
    done
}

# In a text of one letter every sequence is the same, so a loss depends on the weights alone.
same_sequences() {
    head -c 20000 /dev/zero | tr '\0' a >"$work/letters"
    letters=(--data "$work/letters" --context 32 --batch 2)
}

loss_of_step() { # NUMBER
    tr -d '\n' <"$work/run.json" | sed 's/.*"losses": \[\([^]]*\)\].*/\1/' | tr -d ' ' | cut -d, -f"$1"
}

# 33 letters as tokens: their 32 targets are those of a sequence of the training.
letter_inputs() {
    python3 - "$work/inputs" <<'PY'
import json, struct, sys
row = lambda begin: {"dtype": "I64", "shape": [1, 33], "data_offsets": [begin, begin + 264]}
header = json.dumps({"input_ids": row(0), "labels": row(264)}).encode()
tokens = struct.pack("<33q", *[ord("a")] * 33)
open(sys.argv[1], "wb").write(struct.pack("<Q", len(header)) + header + tokens + tokens)
PY
}

# A run that begins with the saved weights has the first loss of the run that goes on, and `sluice eval` gives it too.
saved_weights_load() {
    local trained goes_on
    same_sequences
    train --steps 4 "${letters[@]}" --lr 0.0001
    goes_on=$(loss_of_step 4)
    train --steps 3 "${letters[@]}" --lr 0.0001 --save-weights "$work/weights"
    check 'both files' 'config.json model.safetensors sluice.json' "$(cd "$work/weights" && echo *)"
    trained=$(hash_of_run)
    check 'the steps do something' yes "$([ "$(loss_of_step 3)" != "$goes_on" ] && echo yes)"
    train --steps 1 "${letters[@]}" --weights "$work/weights" --lr 0
    check 'the same weights' "$trained" "$(hash_of_run)"
    check 'loss of the first step' "$goes_on" "$(loss_of_step 1)"
    if command -v python3 >/dev/null; then
        letter_inputs
        timeout 60 "$sluice" eval --weights "$work/weights" --inputs "$work/inputs" --json "$work/eval.json" \
            >"$work/out" 2>"$work/err" </dev/null
        check 'what was saved is evaluated' 0 $?
        check 'as what was trained' yes "$(sed -n 's/.*"loss": *\([0-9.e+-]*\).*/\1/p' "$work/eval.json" |
            awk -v want="$goes_on" '{d = $1 - want; if (d < 0) d = -d; print d <= 1e-5 * want ? "yes" : $1 " " want}')"
    else
        skip 'sluice eval on weights that were saved: python3 is not installed'
    fi
    timeout 60 "$sluice" train --steps 1 --weights "$work" >"$work/out" 2>"$work/err" </dev/null
    check 'a folder without weights' 1 "$(grep -c config.json "$work/err")"
    head -c 2000 "$work/weights/model.safetensors" >"$work/weights/cut" && mv "$work/weights/cut" \
        "$work/weights/model.safetensors"
    timeout 60 "$sluice" train --steps 1 --weights "$work/weights" >"$work/out" 2>"$work/err" </dev/null
    check 'a truncated file' 1 "$(grep -c model.safetensors "$work/err")"
}

refuses() { # words of the message, command, OPTION...
    local words=$1
    shift
    timeout 60 "$sluice" "$@" >"$work/out" 2>"$work/err" </dev/null
    local code=$?
    check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check "$* says why" yes "$(grep -q -- "$words" "$work/err" && echo yes)"
}

# Nothing that was asked for is passed over in silence.
options_that_do_not_fit() {
    train --steps 1 --context 32 --model bert --save-weights "$work/bert"
    refuses 'a model of the family bert' train --weights "$work/bert" --model "gpt2"
    refuses 'a model of the family bert' train --weights "$work/bert" --model vit
    refuses 'leave --size out' train --weights "$work/bert" --size mini
    refuses 'with --save' train --steps 1 --save-every 5
    refuses 'only sluice train' bench --steps 2 --save-weights "$work/none"
    refuses 'only sluice train' profile --save "$work/none" -o "$work/none.json"
    refuses 'size is the model' train --model vit --context 8
    refuses 'no head that answers with classes' train --model gpt2 --head classes
    refuses 'from 1 to 4294967295' train --batch 0
    train --steps 1 --context 32 --weights "$work/bert" --model bert
}

each_model_learns
options_that_do_not_fit
strategies_change_no_bit
saved_weights_load
exit $failed
