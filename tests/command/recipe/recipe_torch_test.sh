#!/usr/bin/env bash
# Runs with a schedule, the optimizer's numbers, rates by layer and smoothed labels have PyTorch's losses and weights,
# AdamW's in 30 and 50 steps and SGD's in 50; rates are those of the transformers that is here, which makes
# tests/golden/lr_schedules.json anew.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
here=$(cd "$(dirname "$0")" && pwd)
need_test_python torch transformers.optimization
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"

timeout 300 "$python" "$here/../../golden/make_lr_schedules.py" --compare >"$work/out" 2>"$work/err"
check "transformers' schedules are those of tests/golden/lr_schedules.json" 0 $?

train() { # OPTION...
    timeout 120 "$sluice" train -n 2 --data "$work/text" --context 32 --batch 4 --eval-batches 0 --schedule one_ahead "$@" \
        >"$work/out" 2>"$work/err" </dev/null
    check "$*" 0 $?
}

alike() { # OPTION...: PyTorch with the same options
    rm -rf "$work/trained"
    mkdir "$work/trained"
    train --weights "$work/init" "$@" --lr-schedule cosine --warmup 6 --strategy fsdp --json "$work/run.json" \
        --save-weights "$work/trained"
    [ $failed = 0 ] || exit 1
    timeout 300 "$python" "$here/recipe_torch_test.py" "$work" 2>"$work/err"
    check "PyTorch trains alike: $*" 0 $?
}

mkdir "$work/init"
train --steps 1 --lr 0 --save-weights "$work/init"
alike --steps 30 --lr 0.003 --lr-min 0.0003 --weight-decay 0.3 --beta1 0.85 --beta2 0.95 --epsilon 1e-6 \
    --label-smoothing 0.1
alike --steps 50 --lr 0.003 --layer-decay 0.65 --weight-decay 0.1
sgd=(--optimizer sgd --steps 50 --lr 0.05 --lr-min 0.005)
alike "${sgd[@]}" --momentum 0
alike "${sgd[@]}" --weight-decay 0.1
alike "${sgd[@]}" --dampening 0.5 --weight-decay 0.01
alike "${sgd[@]}" --momentum 0.95 --nesterov --weight-decay 0.01
exit $failed
