#!/usr/bin/env bash
# `sluice train` keeps its promises: results that are whole, equal ranks and repeated runs that are equal, a clean stop,
# and a clear line for everything that it cannot do.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
. "$(dirname "$0")/../../support/train_check.sh"

refusals() {
    refuses 'unknown' --device abacus
    refuses 'device "cuda"' --device cuda --tied split
    refuses 'not built in this version' --precision fp16
    refuses 'unknown' --model resnet
    refuses 'classes' --head classes
    refuses 'embed.wte.weight' --precision bf16 --layer-precision head=fp32
    refuses 'where LAYER is embed' --layer-precision h.9=bf16
    refuses 'where LAYER is embed' --layer-precision head
    refuses 'no such file' --weights "$work/nowhere"
    refuses 'needs a compressed optimizer' --strategy onebit --optimizer adamw
    refuses 'needs a compressed optimizer' --lossy onebit --optimizer lamb
    refuses 'use none,onebit' --lossy twobit
    refuses 'have a freeze' --freeze-step 5
    refuses 'have a freeze' --strategy dp --lossy onebit --onebit-compat
    refuses 'give one of them' --strategy onebit --freeze-step 5 --freeze-change 0.1
    refuses 'give --freeze-step' --optimizer zero_one_adam --freeze-change 0.1
    refuses 'KEY being one of' --strategy onebit --onebit speed=9
    refuses 'a number from 0 to 1' --strategy onebit --onebit coefficient_beta=2
    refuses 'accumulate last' --strategy onebit --accumulate each
    refuses 'unknown' --schedule tomorrow
    refuses 'nano, mini, small' --size huge
    refuses 'whole number' --batch 0
    refuses 'whole number' --steps 1.5
    refuses 'whole number' --steps many
    refuses 'context of 128' --context 129
    refuses 'budget' --budget 12parsecs
    refuses 'block' --block -1
    refuses 'adamw' --optimizer lion
    refuses 'clip 0' --optimizer lamb --clip 1
    refuses 'no such file' --data "$work/nowhere"
    refuses 'follows no option' 17
    : >"$work/empty"
    refuses 'empty' --data "$work/empty"
    mkdir -p "$work/folder"
    refuses 'no regular file' --data "$work/folder"
    refuses 'budget' --budget 64KiB
    refuses 'strategy' --strategy nonsense
    echo short >"$work/short"
    timeout 20 "$sluice" train --data "$work/short" >"$work/out" 2>"$work/err"
    check 'a short text fails' 2 $?
    check 'a short text is named' 1 "$(grep -c 'too short' "$work/err")"
}

results() {
    train --steps 4 --json "$work/a.json" --csv "$work/a.csv" --eval-every 2
    check 'exit code' 0 $code
    check 'a line a step, and a heading' 5 "$(wc -l <"$work/a.csv")"
    check 'fields of a step' 18 "$(awk -F, 'NR == 3 {print NF}' "$work/a.csv")"
    check 'evaluated after step 2' yes "$(awk -F, 'NR == 3 && $10 > 0 {print "yes"}' "$work/a.csv")"
    for key in model world strategy schedule precision budget_bytes peak_bytes rss_bytes predicted_step_s step_s \
        step_min_s step_mean_s exposed_s tokens_per_s losses weights_sha256 environment optimizer freeze_step warm_up compressed \
        elapsed_s train_s final_loss; do
        check "JSON has $key" yes "$(grep -q "\"$key\":" "$work/a.json" && echo yes)"
    done
    train --steps 4 --json - --eval-every 2
    check 'the same again, on standard output' "$(hash_of "$work/a.json")" "$(hash_of "$work/out")"
    train --steps 4 --no-hash --json "$work/c.json" --eval-every 2
    check 'without the hash' 1 "$(grep -c '"weights_sha256": null' "$work/c.json")"
    check 'nothing else changes' "$(grep '"evaluation_loss"' "$work/a.json")" "$(grep '"evaluation_loss"' "$work/c.json")"
    train --steps 4 --seed 2 --json "$work/b.json"
    check 'another seed, other weights' no "$([ "$(hash_of "$work/a.json")" = "$(hash_of "$work/b.json")" ] || echo no)"
    check 'nothing half done is left' '' "$(find "$work" -name '*.part')"
}

full_disks() {
    refuses 'cannot write' --steps 1 --json "$work/nowhere/a.json"
    refuses 'no space left' --steps 1 --json /dev/full
    refuses 'no space left' --steps 1 --csv /dev/full
    timeout 60 "$sluice" train "${common[@]}" --steps 1 >/dev/full 2>"$work/err" </dev/null
    check 'a summary that is lost is an error' 1 $?
    check 'and it says so' 1 "$(grep -ci 'no space left' "$work/err")"
    echo before >"$work/kept.json"
    refuses 'no such file' --json "$work/kept.json" --data "$work/nowhere"
    check 'a failed run keeps old results' before "$(cat "$work/kept.json")"
}

ranks() {
    for strategy in dp fsdp; do
        train -n 2 --steps 3 --strategy $strategy --micro-batches 2 --json "$work/$strategy.json"
        check "two ranks, $strategy" 0 $code
    done
    check 'equal weights' "$(hash_of "$work/dp.json")" "$(hash_of "$work/fsdp.json")"
    timeout 60 "$sluice" run -n 2 -- "$sluice" train --data "$work/text" --context 32 -n 3 >"$work/out" 2>"$work/err"
    code=$?
    check '-n against the launcher fails' yes "$([ $code -ne 0 ] && echo yes)"
    check '-n against the launcher is named' yes "$(grep -q 'launcher started 2' "$work/err" && echo yes)"
}

# SIGNAL, RANKS: starts a long run and stops it after its first step.
stop() {
    local ranks=()
    [ "$2" = 1 ] || ranks=(-n "$2")
    rm -f "$work/stop.json" "$work/stop.csv"
    begin "$work/out" "$work/err" "$sluice" train "${ranks[@]}" "${common[@]}" --steps 1000000 \
        --json "$work/stop.json" --csv "$work/stop.csv"
    comes_true said_or_ended 'step 1/' "$work/err"
    kill -"$1" $process 2>/dev/null
    ends "training after SIG$1 on $2 ranks"
    check "exit code after SIG$1 on $2 ranks" 130 $code
    check 'results say so' 1 "$(grep -c '"interrupted": true' "$work/stop.json")"
    check 'metrics are there' yes "$([ "$(wc -l <"$work/stop.csv")" -gt 1 ] && echo yes)"
}

# An option that one rank alone has is an error of all ranks, told once, and no rank waits for another.
ranks_differ() {
    local options
    for options in '--steps 5' '--seed 2' '--lr 0.1' '--warmup 3' '--eval-every 1' "--save $work/one" \
        "--save-weights $work/one" "--trace $work/one" '--precision bf16' '--dropout 0.1' '--model vit' \
        '--optimizer onebit_adam'; do
        # shellcheck disable=SC2016 # for the ranks' shell
        timeout 60 "$sluice" run -n 2 -- sh -c '
            if [ $RANK = 1 ]; then set -- $1; else set -- $2; fi
            exec "$0" train --steps 3 --eval-batches 1 --schedule one_ahead "$@"' "$sluice" "$options" '' >"$work/out" 2>"$work/err"
        check "$options of one rank" 2 $?
        check "$options: who differs, once" 1 "$(grep -c "rank 1 has another ${options%% *} than rank 0" "$work/err")"
    done
}

# A run that plans again with measured times stays within its budget and has the same weights as one that does not.
adaptive() {
    train -n 2 --steps 6 --strategy dp --json "$work/plain.json"
    train -n 2 --steps 6 --budget 90% --schedule "$(default_schedule)" --verbose --json "$work/adaptive.json"
    check 'an adaptive run' 0 $code
    check 'equal weights' "$(hash_of "$work/plain.json")" "$(hash_of "$work/adaptive.json")"
    check 'a prediction' 1 "$(grep -c '"predicted_step_s": [0-9]' "$work/adaptive.json")"
    check 'no prediction without measuring' 1 "$(grep -c '"predicted_step_s": null' "$work/plain.json")"
    check 'what came of it' 1 "$(grep -cE '^predicted [0-9.]+ ms, measured [0-9.]+ ms \([-+]' "$work/out")"
    check 'is written' 1 "$(grep -c '"anew_s": [0-9]' "$work/adaptive.json")"
    check 'nothing came of no prediction' 1 "$(grep -c '"predicted": null' "$work/plain.json")"
    check 'within the budget' yes "$(tr -d ' ,"' <"$work/adaptive.json" |
        awk -F: '{v[$1] = $2} END {if (v["peak_bytes"] > 0 && v["peak_bytes"] <= v["budget_bytes"]) print "yes"}')"
}

# If SLUICE_PLAN_DRIFT lets no step differ from the prediction, the run says after 20 steps that they do and by what,
# and plans again; its weights stay equal.
drifting() {
    train -n 2 --replan-trials 0 --steps 52 --strategy dp --json "$work/plain.json"
    SLUICE_PLAN_DRIFT=0 SLUICE_LOG_LEVEL=info train -n 2 --replan-trials 0 --steps 52 --schedule greedy --json "$work/drifting.json"
    check 'a drifting run' 0 $code
    check 'why it plans again' 1 \
        "$(grep -c '% of the .* ms that plan 2 predicted (compute .* transfers .*: measuring and planning again' "$work/err")"
    check 'two plans from measured times' 2 "$(grep -c '^plan from measured times' "$work/out")"
    check 'equal weights after a drift' "$(hash_of "$work/plain.json")" "$(hash_of "$work/drifting.json")"
    SLUICE_PLAN_DRIFT=0 SLUICE_LOG_LEVEL=info train -n 2 --replan-trials 0 --steps 48 --schedule greedy
    check 'the last steps are not worth it' 0 "$(grep -c 'measuring and planning again' "$work/err")"
    check 'a run that does not begin it has a median' 1 "$(grep -c '^time .*, [0-9.]* ms each' "$work/out")"
}

refusals
results
full_disks
ranks
ranks_differ
adaptive
drifting
stop INT 1
stop TERM 1
stop INT 2
exit $failed
