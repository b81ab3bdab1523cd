#!/usr/bin/env bash
# Lengths that grow: runs end with the same bits under every strategy and budget and after a stop in the middle, tokens
# are counted, also by the learning rate, evaluations stay whole, and what does not fit is refused by name.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
seq 1 9000 | sed 's/.*/take one down & pass it around/' >"$work/other"

train() { # OPTION...: output in $work/out and $work/err, results in $work/run.json, exit code in $code
    rm -f "$work/run.json"
    timeout 120 "$sluice" train --data "$work/text" --data "$work/other" --context 32 --batch 2 --eval-batches 1 \
        --schedule one_ahead --json "$work/run.json" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

weights() { # OPTION...: trains; the hash of what it ends with
    train "$@"
    [ $code = 0 ] || { echo "exit code $code: $(tail -n 1 "$work/err")"; return; }
    sed -n 's/.*"weights_sha256": \("[0-9a-f]*"\).*/\1/p' "$work/run.json"
}

value() { # KEY: of the last run
    python3 - "$work/run.json" "$1" 2>>"$work/err" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
for key in sys.argv[2].split("."): run = run[key]
print(json.dumps(run))
PY
}

column() { # NUMBER OPTION...: a column of the steps, on one line
    local number=$1
    shift
    train --csv "$work/run.csv" "$@"
    awk -F, -v n="$number" 'NR > 1 {print $n}' "$work/run.csv" | paste -sd' '
}

grow=(--curriculum 8:32:6:1:8 --steps 7)

# Lengths 8 16 16 24 24 32 32: step 3 of 6 has floor(3 / 6 * 24 + 8) = 20, so 16.
tokens() {
    check 'tokens of cut windows' '16 48 80 128 176 240 304' "$(column 14 "${grow[@]}")"
    check 'the line says how' 1 \
        "$(cat "$work/out" "$work/err" | grep -c 'of up to 64 tokens, lengths growing from 8 to 32 over 6 steps')"
    check 'of two ranks' '32 96 160 256 352 480 608' "$(column 14 -n 2 "${grow[@]}")"
    check 'by its root' '32 64 96 144 192 240 304' "$(column 14 --curriculum 8:32:7:2:8 --steps 7)"
    check 'folded windows have all of them' '64 128 176 240 304' \
        "$(column 14 --curriculum 8@2,24@3,32 --curriculum-batch tokens --steps 5)"
    check 'and more sequences' '[8, 8, 24]' "$(first_shape --curriculum 8@2,32 --curriculum-batch tokens)"
    check 'cut ones have as many as whole ones' '[2, 8, 0]' "$(first_shape --curriculum 8@2,32)"
    check 'rates over tokens' '0.00025 0.0005 0.001 0.001 0.0005' "$(column 3 --curriculum 8@2,16@3,32 --steps 5 \
        --lr-over tokens --warmup 64 --lr-schedule linear --lr-horizon 192)"
    train --epochs 0.0005
    whole=$(value recipe.steps)
    train --epochs 0.0005 --curriculum 16
    check 'half the tokens, twice the steps' $((2 * whole)) "$(value recipe.steps)"
    check 'recipe' '"8:32:6:1:8"' "$(train "${grow[@]}"; value recipe.length.curriculum)"
}

first_shape() { # OPTION...: sequences of the first step, their length, and how many of them go on with the one before
    train "$@" --steps 1 --first-batch "$work/first.json"
    python3 - "$work/first.json" <<'PY'
import json, sys
made = json.load(open(sys.argv[1]))
inputs, targets = made["input_ids"], made["targets"]
for x, y in zip(inputs, targets): assert x[1:] == y[:-1]
print([len(inputs), len(inputs[0]), sum(inputs[i + 1][0] == targets[i][-1] and i % 4 < 3 for i in range(len(inputs) - 1)) * 4])
PY
}

equal_bits() { # NAME OPTION...
    local name=$1 whole part
    shift
    whole=$(weights -n 2 "${grow[@]}" "$@" --strategy dp)
    check "$name: a run ends with weights" 66 ${#whole}
    for part in "${parts[@]}"; do
        # shellcheck disable=SC2086 # options are words
        check "$name, $part" "$whole" "$(weights -n 2 "${grow[@]}" "$@" $part)"
    done
    rm -rf "$work/run"
    train -n 2 "${grow[@]}" "$@" --steps 3 --save "$work/run"
    check "$name: a part" 0 $code
    check "$name: goes on" "$whole" "$(weights -n 2 "${grow[@]}" "$@" --strategy sdp --resume "$work/run")"
    check "$name: as the run that it goes on from" 0 "$(grep -c 'does not go on as it would' "$work/err")"
    last=$whole
}

# A run goes on counting the tokens that it has seen, by its rates too.
counts_on() {
    local over=("${grow[@]}" --lr-over tokens --lr-schedule linear --lr-horizon 400 --eval-batches 0)
    check 'rates' '0.001 0.00096 0.00088 0.0008 0.00068 0.00056 0.0004' "$(column 3 "${over[@]}")"
    rm -rf "$work/tokens"
    check 'a part' '16 48 80' "$(column 14 "${over[@]}" --steps 3 --save "$work/tokens")"
    check 'goes on with its tokens' '128 176 240 304' "$(column 14 "${over[@]}" --resume "$work/tokens")"
    check 'and its rates' '0.0008 0.00068 0.00056 0.0004' "$(column 3 "${over[@]}" --resume "$work/tokens")"
    over=(--steps 5 --lr-over tokens --lr-schedule linear --lr-horizon 400 --eval-batches 0 --new-recipe)
    check 'also without a curriculum' '0.0008 0.00064' "$(column 3 "${over[@]}" --resume "$work/tokens")"
    check 'whose tokens follow' '144 208' "$(column 14 "${over[@]}" --resume "$work/tokens")"
}

refuses() { # WORDS OPTION...
    local words=$1
    shift
    train --steps 2 "$@"
    check "$*: exit code" 2 $code
    check "$*: says why" yes "$(grep -q -F -e "$words" "$work/err" && echo yes)"
}

refusals() {
    refuses 'shortest length 40 is above its longest 32' --curriculum 40:32:5
    refuses '64 tokens are beyond the context of 32' --curriculum 8:64:5
    refuses '12 is not a multiple of 8' --curriculum 12:32:5
    refuses '20 is not a multiple of 8' --curriculum 8:20:5
    refuses 'STEPS is no number of steps' --curriculum 8:32:0
    refuses 'MIN is no number of tokens' --curriculum 0:32:4
    refuses 'MIN is no number of tokens' --curriculum :32:4
    refuses 'ROOT is no whole number from 1 to 16' --curriculum 8:32:4:0
    refuses 'it has fewer than three numbers' --curriculum 8:32
    refuses 'it has more than five numbers' --curriculum 8:32:4:1:8:9
    refuses 'each step must be above the one before' --curriculum 8@4,16@4,32
    refuses 'each length but the last needs @STEP' --curriculum 8@4,16,32
    refuses 'a length is no number of tokens' --curriculum 8@4,
    refuses '40 tokens are beyond the context' --curriculum 8@4,40
    refuses '--curriculum-batch tokens: give --curriculum too' --curriculum-batch tokens
    refuses 'sees images, which have no length' --model vit --context 0 --curriculum 8:32:4
    refuses 'each record brings a length of its own' --sequences documents --curriculum 8:32:4
    for i in $(seq 40); do echo "{\"text\": \"verse $i of many\", \"label\": $((i % 2))}"; done >"$work/verses.jsonl"
    timeout 60 "$sluice" train --model bert --head classes --data "$work/verses.jsonl" --context 32 --steps 2 \
        --curriculum 8:32:4 >"$work/out" 2>"$work/err" </dev/null
    check 'records' '2 1' "$? $(grep -c 'the records of --data bring lengths of their own' "$work/err")"
    refuses 'unknown; use fixed,tokens' --curriculum 8:32:4 --curriculum-batch words
}

tokens
counts_on
parts=('--strategy oss' '--strategy sdp' '--strategy fsdp --recompute all'
    "--budget 90% --schedule $(default_schedule)")
equal_bits gpt2 --micro-batches 2 --dropout 0.1
cut=$last
check 'four ranks' "$(weights -n 4 "${grow[@]}" --steps 3 --strategy dp)" "$(weights -n 4 "${grow[@]}" --steps 3 --strategy fsdp)"
parts=('--strategy fsdp --recompute all')
equal_bits folded --curriculum-batch tokens --dropout 0.1
[ "$cut" != "$last" ] || check 'folding acts' different same
equal_bits bert --model bert
equal_bits classes --model bert --head classes --curriculum-batch tokens
# Within a budget short steps have plans of their own, also after an evaluation and a stop.
shapes=(-n 2 --size mini --context 64 --batch 4 --curriculum 8:64:8 --steps 10 --eval-every 3)
whole=$(weights "${shapes[@]}" --strategy dp --schedule serial)
for schedule in one_ahead "$(default_schedule)"; do
    export SLUICE_LOG_LEVEL=info
    check "shapes, $schedule" "$whole" "$(weights "${shapes[@]}" --budget 70% --schedule "$schedule")"
    unset SLUICE_LOG_LEVEL
    check 'a plan for each shape' '1 2 3' "$(sed -n 's/.*step [0-9]*: shape \([1-9]\) runs under plan.*/\1/p' "$work/err" | sort -u | paste -sd' ')"
    check 'within the budget' true "$(python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
print(str(run["peak_bytes"] <= run["budget_bytes"]).lower())' "$work/run.json")"
done
# The first plan of a length is made from times at those before; units that layers share stay what fits the whole context.
measured=(-n 2 --context 64 --curriculum '8@6,16@16,32@26,64' --steps 28)
same=$(weights "${measured[@]}" --strategy dp --schedule serial)
export SLUICE_LOG_LEVEL=info
check 'measured lengths' "$same" "$(weights "${measured[@]}" --budget "$(share_of_dp .8 "$work/run.json")" --schedule greedy)"
unset SLUICE_LOG_LEVEL
check 'plans from measured lengths' '2 1, 1 2, 0 3' "$(sed -n 's/.*shape \([0-3]\) runs under plan.*from \([1-3]\) measured.*/\1 \2/p' \
    "$work/err" | paste -sd, | sed 's/,/, /g')"
rm -rf "$work/run"
train "${shapes[@]}" --budget 70% --steps 4 --save "$work/run"
check 'shapes go on' "$whole" "$(weights "${shapes[@]}" --budget 70% --resume "$work/run")"
split=(--micro-batches 2 --tied split --curriculum-batch tokens)
check 'in a pipeline' "$(weights "${grow[@]}" "${split[@]}")" "$(weights -n 2 --pipeline 2 "${grow[@]}" "${split[@]}")"
check 'one length is none' "$(weights --steps 3)" "$(weights --steps 3 --curriculum 32:32:2)"
train --steps 2 --lr 0
whole=$(value evaluation_loss)
train --steps 2 --lr 0 --curriculum 8
check 'evaluations are whole' "$whole" "$(value evaluation_loss)"
train -n 2 --steps 12 --curriculum 8:32:10 --optimizer onebit_adam --freeze-step 5
check 'a freeze before the end' '0 1' "$code $(grep -c 'sequences grow until step 9, and the variance is frozen at step 5' "$work/err")"
train -n 2 --steps 12 --curriculum 8:32:10 --optimizer onebit_adam --freeze-step 10
check 'a freeze at the end' '0 0' "$code $(grep -c 'sequences grow' "$work/err")"
refusals
exit $failed
