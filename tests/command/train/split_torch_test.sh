#!/usr/bin/env bash
# However a batch of masked text is split between ranks and micro-batches, losses and weights are those of one process
# in PyTorch that takes the mean over all targets of the batch; under every strategy.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
here=$(cd "$(dirname "$0")" && pwd)
need_test_python torch transformers safetensors
seq 1 3000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
steps=20

# The gradients of the keys' biases are 0 but for rounding; with a small epsilon AdamW would make whole steps of that.
train() { # OPTION...
    timeout 120 "$sluice" train --model bert --data "$work/text" --context 24 --lr 0.001 --epsilon 1e-4 \
        --eval-batches 0 --schedule one_ahead "$@" >"$work/out" 2>"$work/err" </dev/null
    check "$*" 0 $?
}

# The sequences of all steps, by their numbers, and the first weights.
train --batch $((4 * steps)) --steps 1 --lr 0 --first-batch "$work/batch.json" --save-weights "$work/first"
runs=()
for split in 1x1x4 1x2x2 1x4x1 2x1x2 2x2x1 4x1x1; do # ranks, micro-batches, sequences
    IFS=x read -r ranks micro_batches batch <<<"$split"
    for strategy in dp oss sdp fsdp; do
        run=$work/$split-$strategy
        train -n "$ranks" --micro-batches "$micro_batches" --batch "$batch" --strategy $strategy --steps $steps \
            --json "$run.json" --save-weights "$run"
        runs+=("$run")
        [ "$ranks" != 1 ] || break # where one rank has all, strategies do not differ
    done
done
[ $failed = 0 ] || exit 1
timeout 300 "$python" "$here/split_torch_test.py" "$work/first" "$work/batch.json" "${runs[@]}" 2>"$work/err"
check 'PyTorch trains alike' 0 $?
exit $failed
