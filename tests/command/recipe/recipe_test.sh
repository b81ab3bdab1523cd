#!/usr/bin/env bash
# Training as papers do it: schedules of the learning rate, the optimizer's numbers and label smoothing give the same
# bits for every strategy and budget, go on where they were when a run is resumed, act for every optimizer, are written
# down, and are refused if they do not fit together.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
recipe=(--layer-decay 0.75 --weight-decay 0.1 --beta1 0.8 --beta2 0.95 --epsilon 1e-7 --label-smoothing 0.1 --lr 0.002)

train() { # OPTION...: output in $work/out and $work/err, results in $work/run.json, exit code in $code
    rm -f "$work/run.json"
    timeout 120 "$sluice" train --data "$work/text" --context 32 --batch 2 --eval-batches 1 --schedule one_ahead \
        --json "$work/run.json" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

value() { # KEY: of the last run; an empty line where there is no result
    python3 - "$work/run.json" "$1" 2>>"$work/err" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
key = sys.argv[2]
print(json.dumps(run["settings"][key] if key in run["settings"] else run[key]))
PY
}

weights() { # OPTION...: trains; the hash of what it ends with
    train "$@"
    [ $code = 0 ] || { echo "exit code $code: $(tail -n 1 "$work/err")"; return; }
    sed -n 's/.*"weights_sha256": \("[0-9a-f]*"\).*/\1/p' "$work/run.json"
}

schedules=('linear --lr-min 0.0001' 'inverse_sqrt --lr-timescale 3' 'wsd --lr-decay 5')

# Equal bits: strategies, a budget, and runs that were stopped in the middle of the warm-up and of the decay.
equal_bits() {
    local schedule one
    for schedule in "${schedules[@]}"; do
        # shellcheck disable=SC2206 # options are words
        one=(-n 2 --steps 12 --warmup 4 "${recipe[@]}" --lr-schedule $schedule)
        case $schedule in linear* | wsd*) one+=(--lr-horizon 12) ;; esac
        local whole
        whole=$(weights "${one[@]}" --strategy dp)
        check "$schedule: a run ends with weights" 66 ${#whole}
        rm -rf "$work/run"
        train "${one[@]}" --strategy sdp --steps 2 --save "$work/run"
        check "$schedule: a part" 0 $code
        train "${one[@]}" --strategy fsdp --steps 9 --save "$work/run" --resume "$work/run"
        check "$schedule: goes on in the warm-up" 0 $code
        check "$schedule: as the run that it goes on from" 0 "$(grep -c 'does not go on as it would' "$work/err")"
        check "$schedule: and in the decay" "$whole" "$(weights "${one[@]}" --strategy oss --resume "$work/run")"
    done
    check 'a budget' "$whole" "$(weights "${one[@]}" --budget 92% --schedule "$(default_schedule)")"
    [ "$whole" != "$(weights "${one[@]}" --label-smoothing 0)" ] || check 'smoothing acts' different same
    [ "$whole" != "$(weights "${one[@]}" --layer-decay 0.76)" ] || check 'rates by layer act' different same
}

rates_of() { # OPTION...: the learning rates as they are in CSV, on one line
    train --csv "$work/run.csv" "$@"
    awk -F, 'NR > 1 {print $3}' "$work/run.csv" | paste -sd' '
}

rates() {
    check 'linear' '0.0005 0.001 0.001 0.000775 0.00055 0.000325' \
        "$(rates_of --steps 6 --warmup 2 --lr-schedule linear --lr-min 0.0001)"
    check 'the schedule has words' \
        'learning rate 0.001 after a warm-up over 2 steps, then linear to 0.0001 at step 6;' \
        "$(cat "$work/out" "$work/err" | grep -o 'learning rate [^;]*;')"
    check 'wsd' '0.001 0.001 0.001 0.001 0.001 0.0005' "$(rates_of --steps 6 --lr-schedule wsd --lr-decay 2)"
    check 'JSON has them too' '[0.001, 0.001, 0.001, 0.001, 0.001, 0.0005]' "$(value learning_rates)"
    check 'and the horizon that follows from --steps' 6 "$(value lr_horizon)"
    train --steps 2
    check 'without one there is the rate alone' 'learning rate 0.001;' \
        "$(cat "$work/out" "$work/err" | grep -o 'learning rate [^;]*;')"
    check 'not --lr-min before the horizon' '0.001 0.0008 0.0006 0.0004 0.0004' \
        "$(rates_of --steps 5 --lr-schedule linear --lr-horizon 3 --lr-min 0.0004)"
}

# A step takes 64 tokens, then 128: the schedule goes on with the tokens that were seen.
tokens() {
    local over=(--lr-over tokens --lr-schedule linear --lr-horizon 640 --save "$work/tokens")
    check 'tokens' '0.0005 0.001 0.001 0.000875' "$(rates_of --warmup 128 "${over[@]}" --steps 4)"
    check 'another batch' '0.00075 0.0005 0.00025' \
        "$(rates_of --warmup 128 "${over[@]}" --resume "$work/tokens" --steps 7 --batch 4)"
    check 'the batch is warned about' 1 "$(grep -c 'batch was 2 and is 4' "$work/err")"
}

# Batches that grow: equal bits under strategies and after a stop in the middle, and as one sequence after the other.
growth() {
    local grow=(-n 2 --micro-batches 3 --micro-batches-from 1 --micro-batches-over 4 --steps 7 --warmup-again 2
        --warmup-again-at 3)
    local whole parts
    whole=$(weights "${grow[@]}" --strategy dp)
    check 'a run that grows ends with weights' 66 ${#whole}
    check 'says how' 1 "$(cat "$work/out" "$work/err" | grep -c 'of up to 384 tokens, growing from 1 to 3 micro-batches over 4 steps')"
    for strategy in oss sdp fsdp auto; do
        check "growing, $strategy" "$whole" "$(weights "${grow[@]}" --strategy "$strategy" --schedule "$(default_schedule)")"
    done
    rm -rf "$work/run"
    train "${grow[@]}" --steps 3 --save "$work/run"
    check 'a run that grows stops' 0 $code
    parts=$(weights "${grow[@]}" --strategy fsdp --resume "$work/run")
    check 'and goes on' "$whole" "$parts"
    check 'with nothing to warn of' 0 "$(grep -c 'does not go on as it would' "$work/err")"
    # Two ranks with 1, 1, 2, 2, 3 micro-batches take the sequences of one rank with 2, 2, 4, 4, 6.
    train "${grow[@]}" --steps 5 --accumulate each --csv "$work/one.csv"
    train -n 1 --micro-batches 6 --micro-batches-from 2 --micro-batches-over 4 --steps 5 --warmup-again 2 \
        --warmup-again-at 3 --accumulate each --csv "$work/two.csv"
    check 'tokens seen' '128 256 512 768 1152' "$(awk -F, 'NR > 1 {print $14}' "$work/one.csv" | paste -sd' ')"
    check 'rates follow the sequences' '0.0005 0.0005 0.001 0.001 0.0015' \
        "$(rates_of -n 2 --micro-batches 3 --micro-batches-from 1 --micro-batches-over 4 --steps 5 --lr-rule linear --lr-batch 8)"
    check 'or their root' '0.001 0.002 0.002' \
        "$(rates_of --micro-batches 4 --micro-batches-from 1 --micro-batches-over 1 --steps 3 --lr-rule sqrt --lr-batch 2)"
    check 'over tokens' '0.00025 0.0005 0.001 0.001' "$(rates_of --micro-batches 2 --micro-batches-from 1 \
        --micro-batches-over 2 --steps 4 --lr-over tokens --warmup 256)"
}

# Evaluations are plain, so with --lr 0 they do not know of smoothing; training does.
smoothing() {
    train --steps 2 --lr 0
    local plain trained smoothing
    plain=$(value evaluation_loss) trained=$(value losses)
    train --steps 2 --lr 0 --label-smoothing 0.3
    check 'evaluations are without smoothing' "$plain" "$(value evaluation_loss)"
    [ "$trained" != "$(value losses)" ] || check 'training is with it' different same
    if ! timeout 60 "$sluice" train --model vit --steps 1 --schedule one_ahead >"$work/out" 2>"$work/err"; then
        skip "smoothing of classes: $(tail -n 1 "$work/err")"
        return
    fi
    for smoothing in 0 0.3; do
        timeout 60 "$sluice" train --model vit --steps 2 --lr 0 --label-smoothing $smoothing --schedule one_ahead \
            --json "$work/run.json" >"$work/out" 2>"$work/err"
        check "vit with $smoothing" 0 $?
        value losses >>"$work/losses"
        value evaluation_loss >>"$work/evaluations"
    done
    check 'classes are smoothed' 2 "$(sort -u "$work/losses" | wc -l)"
    check 'but not in evaluations' 1 "$(sort -u "$work/evaluations" | wc -l)"
}

# Every optimizer has the four numbers; its own, when they are given, change nothing.
optimizers() {
    local optimizer plain other epsilon option
    for optimizer in adamw lamb onebit_adam onebit_lamb zero_one_adam; do
        local one=(--steps 5 --optimizer "$optimizer" --lr-schedule cosine)
        epsilon=1e-8
        case $optimizer in
        onebit* | zero*) one+=(--strategy onebit --freeze-step 3) ;;
        *) one+=(--strategy dp) ;;
        esac
        case $optimizer in *lamb) epsilon=1e-6 ;; esac
        plain=$(weights "${one[@]}")
        check "$optimizer trains" 66 ${#plain}
        check "$optimizer: its own numbers" "$plain" \
            "$(weights "${one[@]}" --weight-decay 0.01 --beta1 0.9 --beta2 0.999 --epsilon $epsilon --label-smoothing 0)"
        check "$optimizer: epsilon is written down" "$(python3 -c "print($epsilon)")" "$(value epsilon)"
        for option in '--weight-decay 0.5' '--beta1 0.5' '--beta2 0.9' '--epsilon 0.01'; do
            # shellcheck disable=SC2086,SC2090 # options are words
            other=$(weights "${one[@]}" $option)
            check "$optimizer: $option is taken" 66 ${#other}
            [ "$plain" != "$other" ] || check "$optimizer: $option acts" different same
        done
    done
}

# A run that goes on in the compressed phase, where 0/1 Adam takes local steps at several rates.
compressed_resumes() {
    local optimizer whole
    for optimizer in onebit_adam onebit_lamb zero_one_adam; do
        local one=(-n 2 --strategy onebit --optimizer "$optimizer" --freeze-step 4 --warmup 3
            --lr-schedule linear --lr-min 0.0001 --lr-horizon 12 --onebit "local_step_scaler=2,var_update_scaler=2")
        rm -rf "$work/run" "$work/whole"
        # Saving ends local steps with an exchange, so the whole run saves where the others end.
        whole=$(weights "${one[@]}" --steps 12 --save "$work/whole" --save-every 9)
        check "$optimizer ends with weights" 66 ${#whole}
        train "${one[@]}" --steps 2 --save "$work/run"
        train "${one[@]}" --steps 9 --save "$work/run" --resume "$work/run"
        check "$optimizer goes on" 0 $code
        check "$optimizer: nothing to warn of" 0 "$(grep -c 'does not go on as it would' "$work/err")"
        check "$optimizer: the weights of a whole run" "$whole" "$(weights "${one[@]}" --steps 12 --resume "$work/run")"
    done
}

resumed() {
    rm -rf "$work/run"
    train --steps 4 --lr-schedule cosine --lr-min 0.0001 --save "$work/run"
    train --steps 8 --lr-schedule cosine --lr-min 0.0001 --save "$work/run" --resume "$work/run"
    check 'a longer run has another horizon, which is another recipe' '2 1' \
        "$code $(grep -c 'another recipe: lr-horizon was 4 and is 8; give --lr-horizon 4, or --new-recipe' "$work/err")"
    train --steps 8 --lr-schedule cosine --lr-min 0.0001 --lr-horizon 4 --resume "$work/run"
    check 'and is told how to go on' '0 0' "$code $(grep -c 'does not go on as it would' "$work/err")"
    train --steps 9 --lr-schedule linear --beta2 0.95 --label-smoothing 0.1 --lr-horizon 9 --new-recipe \
        --resume "$work/run"
    check 'another recipe is taken when it is asked for' 0 $code
    check 'another schedule' 1 "$(grep -c 'lr-schedule was "cosine" and is "linear"' "$work/err")"
    check 'another beta2' 1 "$(grep -c 'beta2 was 0.999 and is 0.95' "$work/err")"
    check 'another smoothing' 1 "$(grep -c 'label-smoothing was 0.0 and is 0.1' "$work/err")"
    local other
    # shellcheck disable=SC2089 # quotes are those of the answer
    for other in '--lr 0.1: lr was 0.001 and is 0.1; give --lr 0.001' '--layer-decay 0.5: layer-decay was 1.0 and is 0.5' \
        '--lr-schedule linear: lr-schedule was "cosine" and is "linear"; give --lr-schedule cosine' \
        '--micro-batches 2: micro-batches was 1 and is 2; give --micro-batches 1'; do
        # shellcheck disable=SC2086,SC2090 # options are words
        train --steps 6 --lr-horizon 4 --lr-schedule cosine --lr-min 0.0001 --resume "$work/run" ${other%%:*}
        check "$other" '2 1' "$code $(grep -c -e "another recipe: ${other#*: }" "$work/err")"
    done
    # Two ranks with one micro-batch each make the steps of one rank with two.
    rm -rf "$work/run"
    train --steps 3 --micro-batches 2 --save "$work/run"
    train -n 2 --steps 5 --micro-batches 1 --resume "$work/run"
    check 'steps of as many sequences are the same recipe' 0 $code
    train -n 2 --steps 5 --micro-batches 2 --resume "$work/run"
    check 'and so are other ranks' 0 $code
    train -n 2 --steps 5 --micro-batches 3 --resume "$work/run"
    check 'others are not' '2 1' "$code $(grep -c 'another recipe: micro-batches was 2 and is 3' "$work/err")"
}

ranks_differ() {
    local options
    for options in '--lr-schedule cosine' '--beta1 0' '--weight-decay 0.1' '--layer-decay 0.1'; do
        # shellcheck disable=SC2016 # for the ranks' shell
        timeout 60 "$sluice" run -n 2 -- sh -c '
            if [ $RANK = 1 ]; then set -- $1; else set --; fi
            exec "$0" train --steps 3 --eval-batches 1 --schedule one_ahead "$@"' "$sluice" "$options" >"$work/out" 2>"$work/err"
        check "$options of one rank" 2 $?
        check "$options: who differs" yes \
            "$(grep -q "rank 1 has another ${options%% *} than rank 0" "$work/err" && echo yes)"
    done
}

refuses() { # words of the message, then OPTION...
    local words=$1
    shift
    train "$@"
    check "$*: exit code" 2 $code
    check "$* says why" yes "$(grep -q -e "$words" "$work/err" && echo yes)"
}

refusals() {
    refuses 'is above --lr' --lr-schedule cosine --lr-min 1
    refuses 'never falls' --lr-min 0.0001
    refuses 'has no end' --lr-horizon 10
    refuses 'only the schedule wsd' --lr-schedule cosine --lr-decay 9
    refuses 'only the schedule inverse_sqrt' --lr-schedule cosine --lr-timescale 9
    refuses 'nothing is left in which the rate could fall' --lr-schedule cosine --steps 10 --warmup 10
    refuses 'give 6 at most' --lr-schedule wsd --steps 10 --warmup 4 --lr-decay 7
    refuses '--steps goes on' --lr-schedule linear --steps 10 --lr-horizon 9
    refuses 'give it, as --lr-horizon' --lr-schedule cosine --lr-over tokens
    refuses 'use constant,linear' --lr-schedule step
    refuses 'use steps,tokens' --lr-over epochs
    refuses 'give a number from 0 to 0.999' --label-smoothing 1
    refuses 'give a number from 0 to 0.9999999' --beta1 1
    refuses 'give a number from 1e-30' --epsilon 0
    refuses 'give a number from 0' --weight-decay -0.1
    refuses 'give a number from 0.001 to 1' --layer-decay 0
    refuses 'it has one rate for all layers' --layer-decay 0.9 --optimizer onebit_adam
    refuses '--micro-batches-from: give --micro-batches-over too' --micro-batches-from 1
    refuses 'is above --micro-batches 2' --micro-batches 2 --micro-batches-from 3 --micro-batches-over 5
    refuses 'give --lr-batch too' --lr-rule sqrt
    refuses 'give --lr-rule linear or sqrt too' --lr-batch 3
    refuses 'give --warmup-again-at too' --warmup-again 3
    refuses 'give --freeze-step or --freeze-change' --optimizer onebit_adam --lr-over tokens --warmup 1e4
    train --steps 3 --lr-over tokens --warmup 63
    check 'less than a step' 2 $code
    check 'is said in tokens' 1 "$(grep -c 'a step takes 64 tokens' "$work/err")"
    train --steps 3 --warmup 9
    check 'a run that ends in its warm-up' '0 1' "$code $(grep -c 'before the learning rate has come to --lr' "$work/err")"
    train -n 2 --steps 8 --warmup 6 --optimizer onebit_adam --freeze-step 5
    check 'a freeze inside the warm-up' '0 1' "$code $(grep -c 'lies inside the learning rate' "$work/err")"
}

sweep() {
    local one=(-n 2 --data "$work/text" --context 32 --batch 2 --schedule one_ahead --repeat 1 -o "$work/bench")
    timeout 120 "$sluice" bench "${one[@]}" --steps 4 --strategy dp,fsdp "${recipe[@]}" --lr-schedule wsd --warmup 1 \
        >"$work/out" 2>"$work/err" </dev/null
    check 'bench takes them, and its weights are equal' 0 $?
    check 'and writes them down' 2 "$(grep -c '"lr_schedule": "wsd"' "$work/bench/results.json")"
    timeout 120 "$sluice" bench "${one[@]}" --overwrite --steps 24 --strategy dp --budget none,auto:1 --lr-schedule cosine --warmup 12 \
        >"$work/out" 2>"$work/err" </dev/null
    check 'the short run that finds budgets needs no room for the warm-up' 0 $?
    timeout 120 "$sluice" profile -n 2 --data "$work/text" --context 32 --batch 2 --lr-schedule cosine --warmup 12 \
        -o "$work/profile.json" >"$work/out" 2>"$work/err" </dev/null
    check 'nor does one that measures a profile' '0 0' "$? $(grep -c -e --warmup "$work/err")"
}

equal_bits
rates
tokens
growth
smoothing
optimizers
compressed_resumes
resumed
ranks_differ
refusals
sweep
exit $failed
