#!/usr/bin/env bash
# Two ranks that read different files under one path are refused before the first step, with rank and file named: one bit
# of a tensor, an epsilon, a checkpoint of another seed, the data's last byte, the tokenizer; under dp, where replicas
# would differ, and fsdp, where a model of two halves would train.
# shellcheck source=../../support/command_check.sh
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
golden=$(cd "$(dirname "$0")/../../golden" && pwd)

# Each rank works in a folder of its own, as on hosts without a shared disk.
apart() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 120 "$sluice" run -n 2 -- bash -c "cd \"$work/rank\$RANK\" && exec \"\$@\"" sh "$sluice" train --context 32 \
        --batch 1 --eval-batches 0 --schedule one_ahead "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

both() { # the same files on both ranks
    rm -rf "$work/rank0" "$work/rank1"
    mkdir -p "$work/rank0"
    cp -r "$work/text" "$work/weights" "$work/save" "$work/rank0"
    cp -r "$work/rank0" "$work/rank1"
}

refused() { # WHAT WORDS OPTION...: by both strategies
    local what=$1 words=$2 strategy
    for strategy in dp fsdp; do
        apart --steps 4 --strategy $strategy "${@:3}"
        check "$what, $strategy: exit code" 2 $code
        check "$what, $strategy: named" yes "$(grep -q "rank 1 has another $words" "$work/err" && echo yes)"
        check "$what, $strategy: before the first step" '' "$(grep 'step 1' "$work/out")"
    done
}

seq 1 3000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
for folder in save other; do
    "$sluice" train --data "$work/text" --context 32 --batch 1 --steps 1 --eval-batches 0 --schedule one_ahead -n 2 \
        --seed ${#folder} --save "$work/$folder" >"$work/out" 2>"$work/err"
    check "a checkpoint in $folder" 0 $?
done
"$sluice" train --data "$work/text" --tokenizer "$golden/tokenizer_bpe" --context 32 --batch 1 --steps 1 \
    --eval-batches 0 --schedule one_ahead --save-weights "$work/weights" >"$work/out" 2>"$work/err"
check 'weights' 0 $?

both
apart --steps 2 --data text --weights weights
check 'equal files train' 0 $code
apart --steps 2 --seed 4 --data text --resume save
check 'equal checkpoints go on' 0 $code

both
printf '\x01' | dd of="$work/rank1/weights/model.safetensors" bs=1 seek=$(($(stat -c %s "$work/weights/model.safetensors") - 9)) \
    conv=notrunc status=none
refused 'one byte of a tensor' weights/model.safetensors --data text --weights weights

both
sed -i 's/"layer_norm_epsilon": [^,]*/"layer_norm_epsilon": 1e-06/' "$work/rank1/weights/config.json"
refused 'an epsilon' 'configuration in weights (config.json)' --data text --weights weights

both
rm -r "$work/rank1/save"
cp -r "$work/other" "$work/rank1/save"
for SLUICE_ENGINE_CHECK in off on; do
    export SLUICE_ENGINE_CHECK
    refused "a checkpoint of another seed, check $SLUICE_ENGINE_CHECK" 'checkpoint save/step-' --seed 4 --data text --resume save
done
unset SLUICE_ENGINE_CHECK

# A rank that does not see the newest checkpoint is named, and nobody is told to remove that one.
unseen() { # WHAT WORDS
    apart --steps 4 --seed 4 --data text --resume save
    check "$1: exit code" 2 $code
    check "$1: named" yes "$(grep -q "$2" "$work/err" && echo yes)"
    check "$1: nothing is to be removed" 0 "$(grep -c 'or remove' "$work/err")"
}
both
cp -r "$work/save/step-000001" "$work/rank0/save/step-000002"
unseen 'rank 1 has an older one' 'that rank 1 finds is save/step-000001, and rank 0 finds save/step-000002'
both
cp -r "$work/save/step-000001" "$work/rank1/save/step-000002"
unseen 'rank 0 has an older one' 'that rank 1 finds is save/step-000002, and rank 0 finds save/step-000001'
both
for rank in 0 1; do cp -r "$work/save/step-000001" "$work/rank$rank/save/step-000002"; done
rm "$work/rank1/save/step-000002/rank-0001.slc"
unseen 'rank 1 lacks a file' 'rank 1 does not see what other ranks do: cannot read save/step-000002/rank-0001.slc'

both
printf 'x' | dd of="$work/rank1/text" bs=1 seek=$(($(stat -c %s "$work/text") - 1)) conv=notrunc status=none
refused 'the last byte of the data' '--data' --data text

both
sed -i 's/"A": 33/"A": 34/; s/"B": 34/"B": 33/' "$work/rank1/weights/tokenizer.json" # two tokens change places
refused 'the tokenizer' 'tokenizer for --data\|--data' --data text --weights weights
exit $failed
