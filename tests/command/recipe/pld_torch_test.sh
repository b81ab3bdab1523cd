#!/usr/bin/env bash
# 50 steps of AdamW that leave layers out have PyTorch's losses, of a GPT-2 and of a BERT with norms before its branches.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
here=$(cd "$(dirname "$0")" && pwd)
need_test_python torch transformers
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"

train() { # OPTION...
    timeout 120 "$sluice" train --data "$work/text" --context 32 --batch 4 --eval-batches 0 --schedule one_ahead "$@" \
        >"$work/out" 2>"$work/err" </dev/null
    check "$*" 0 $?
}

alike() { # MODEL-OPTION...
    rm -rf "$work/init"
    mkdir "$work/init"
    train "$@" --steps 1 --lr 0 --save-weights "$work/init"
    train --weights "$work/init" --steps 50 --lr 0.001 --pld '0.4,0.05' --json "$work/run.json" \
        --first-batch "$work/first.json" --first-batches 50
    [ $failed = 0 ] || exit 1
    timeout 300 "$python" -B "$here/pld_torch_test.py" "$work" 2>"$work/err"
    check "PyTorch trains alike: $*" 0 $?
}

alike --model gpt2
alike --model bert --norm before
exit $failed
