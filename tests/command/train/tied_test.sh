#!/usr/bin/env bash
# `--tied split` keeps its promises: weights that no strategy, schedule or budget changes, a loss within rounding of
# joint's, checkpoints from which either way goes on; no effect if no table is shared.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
awk 'BEGIN { for (r = 0; r < 200; r++) { for (c = 0; c < 64; c++) printf "%d,", r * c % 256; print r % 10 } }' \
    >"$work/images"

train() { # OPTION...: output in $work/out and $work/err, results in $work/run.json, exit code in $code
    local data=(--data "$work/text" --context 32)
    [[ $* != *vit* ]] || data=(--data "$work/images")
    rm -f "$work/run.json"
    timeout 100 "$sluice" train "${data[@]}" --batch 2 --steps 5 --eval-batches 1 --schedule one_ahead \
        --json "$work/run.json" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    check "train $*" 0 $code
}

value_of() { # NAME: of the last run
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$work/run.json" | head -n 1
}

near() { # A B: less than a thousandth apart
    awk -v a="$1" -v b="$2" 'BEGIN { d = a > b ? a - b : b - a; if (a > 0 && d <= 1e-3 * a) print "yes" }'
}

# RANKS, STRATEGY, SCHEDULE (several with commas), then OPTION...: runs split under each, and compares it with joint.
agrees() {
    local ranks=$1 ways joint loss held_out split='' way
    IFS=, read -ra ways <<<"$2"
    shift 2
    train -n "$ranks" --tied joint --strategy sdp --schedule one_ahead "$@"
    joint=$(value_of weights_sha256) loss=$(value_of final_loss) held_out=$(value_of evaluation_loss)
    check "$ranks ranks, $*: joint is recorded" joint "$(value_of tied)"
    for way in "${ways[@]}"; do
        train -n "$ranks" --tied split --strategy "${way% *}" --schedule "${way#* }" "$@"
        : "${split:=$(value_of weights_sha256)}"
        check "$ranks ranks, $way, $*: equal weights" "$split" "$(value_of weights_sha256)"
        check "$ranks ranks, $way, $*: split is recorded" split "$(value_of tied)"
        check "$ranks ranks, $way, $*: peak as planned" "$(value_of planned_bytes)" "$(value_of peak_bytes)"
    done
    check "$ranks ranks, $*: the loss is joint's but for rounding" yes "$(near "$loss" "$(value_of final_loss)")"
    check "$ranks ranks, $*: held out too" yes "$(near "$held_out" "$(value_of evaluation_loss)")"
    [ "$ranks" = 1 ] || check "$ranks ranks, $*: it is another sum" yes "$([ "$split" != "$joint" ] && echo yes)"
}

goes_on() { # how it was saved, how it goes on
    local saved=$1 now=$2 whole
    rm -rf "$work/saved"
    train -n 2 --tied "$saved" --strategy fsdp --steps 3 --save "$work/saved"
    train -n 2 --tied "$now" --strategy oss --steps 6 --resume "$work/saved"
    if [ "$saved" = "$now" ]; then
        whole=$(value_of weights_sha256)
        check "$saved goes on: nothing to say" '' "$(grep -i warn "$work/err")"
        train -n 2 --tied "$saved" --strategy sdp --steps 6
        check "$saved goes on: equal weights" "$whole" "$(value_of weights_sha256)"
    else
        check "$saved goes on as $now: it is said" yes \
            "$(grep -q "tied was \"$saved\" and is \"$now\"" "$work/err" && echo yes)"
        check "$saved goes on as $now: all steps" 3 "$(value_of steps_before)"
    fi
}

nothing_shared() {
    local joint
    train --model vit --tied joint
    joint=$(value_of weights_sha256)
    train --model vit --tied split
    check 'images: nothing changes' "$joint" "$(value_of weights_sha256)"
}

refused() {
    timeout 20 "$sluice" train --tied nonsense >"$work/out" 2>"$work/err"
    check 'nonsense is refused' 2 $?
    check 'and why' yes "$(grep -q -- '--tied nonsense: unknown; use joint,split' "$work/err" && echo yes)"
}

agrees 1 'dp serial,fsdp one_ahead'
agrees 2 "dp serial,sdp one_ahead,fsdp priority,random:5 random,auto $(default_schedule)"
agrees 2 'dp bucketed,fsdp greedy' --micro-batches 3 --clip 0.5
agrees 2 'oss priority,fsdp one_ahead' --micro-batches 2 --accumulate each --precision bf16
agrees 3 'sdp priority,auto one_ahead' --model bert --precision bf16 --wire fp32
goes_on split split
goes_on split joint
goes_on joint split
nothing_shared
refused
[ $failed = 0 ] && echo "sluice train --tied split: all as promised"
exit $failed
