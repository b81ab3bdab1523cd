#!/usr/bin/env bash
# A recipe in a file is what its options are: a run with it ends with the same bits, its JSON has the recipe, which can be
# read again, the command line comes before the file, and what is wrong in a file is refused by its path.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"

train() { # OPTION...: output in $work/out and $work/err, results in $work/run.json, exit code in $code
    rm -f "$work/run.json"
    timeout 120 "$sluice" train --data "$work/text" --context 32 --batch 2 --eval-batches 0 --schedule one_ahead \
        --json "$work/run.json" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

hash_of() { # OPTION...: what a run with them ends with
    train "$@"
    [ $code = 0 ] || { echo "exit code $code: $(tail -n 1 "$work/err")"; return; }
    sed -n 's/.*"weights_sha256": \("[0-9a-f]*"\).*/\1/p' "$work/run.json"
}

recipe_of_run() { # FILE: writes the recipe of the last run there
    python3 -c 'import json, sys; json.dump(json.load(open(sys.argv[1]))["runs"][0]["recipe"], open(sys.argv[2], "w"))' \
        "$work/run.json" "$1"
}

cat >"$work/recipe.json" <<'JSON'
{
  "version": 1,
  "steps": 8,
  "rate": {"peak": 0.002, "schedule": "cosine", "least": 0.0002, "warmup": 2, "horizon": 8,
           "warmup_again": {"at": 5, "over": 2}, "batch": {"rule": "sqrt", "sequences": 4}, "layer_decay": 0.8},
  "batch": {"micro_batches": 3, "from": 1, "over": 4}
}
JSON
options=(--steps 8 --lr 0.002 --lr-schedule cosine --lr-min 0.0002 --warmup 2 --lr-horizon 8 --warmup-again-at 5
    --warmup-again 2 --lr-rule sqrt --lr-batch 4 --layer-decay 0.8 --micro-batches 3 --micro-batches-from 1
    --micro-batches-over 4)

same_run() {
    local whole other
    whole=$(hash_of -n 2 "${options[@]}")
    check 'options train' 66 ${#whole}
    check 'a file is what they are' "$whole" "$(hash_of -n 2 --recipe "$work/recipe.json" --log "$work/log")"
    recipe_of_run "$work/again.json"
    check 'a run has its recipe in its JSON' 0.8 \
        "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["rate"]["layer_decay"])' "$work/again.json")"
    check 'which is one too' "$whole" "$(hash_of -n 2 --recipe "$work/again.json")"
    check 'and so are the options of its log' "$whole" "$(hash_of -n 2 --config "$work/log/options.json" --overwrite)"
    other=$(hash_of -n 2 "${options[@]}" --layer-decay 1)
    [ "$whole" != "$other" ] || check 'a track acts' different same
    check 'the command line comes before the file' "$other" \
        "$(hash_of -n 2 --layer-decay 1 --recipe "$work/recipe.json")"
    check 'on either side of it' "$other" "$(hash_of -n 2 --recipe "$work/recipe.json" --layer-decay 1)"
}

refuses() { # WORDS CONTENT
    printf '%s' "$2" >"$work/wrong.json"
    train --recipe "$work/wrong.json"
    check "$2: exit code" 2 $code
    check "$2: says why" yes "$(grep -q -F -e "$1" "$work/err" && echo yes)"
}

refusals() {
    refuses 'give an object, as {"version": 1' '[]'
    refuses 'give an object, as {"version": 1' '{"rate": {"peak": 1}}'
    refuses 'its version is not 1' '{"version": 2}'
    refuses 'rate.peek: there is no such track; did you mean rate.peak?' '{"version": 1, "rate": {"peek": 1}}'
    refuses 'dept: there is no such track' '{"version": 1, "dept": {"theta": 0.5}}'
    refuses 'rate: give an object with its values' '{"version": 1, "rate": 0.5}'
    refuses 'rate.peak: "lr" takes a text or a number' '{"version": 1, "rate": {"peak": {"of": 1}}}'
    refuses 'rate.peak: --lr -1: give a number from 0' '{"version": 1, "rate": {"peak": -1}}'
    refuses 'rate.warmup: --warmup 1.5: give a whole number' '{"version": 1, "rate": {"warmup": 1.5}}'
    refuses 'rate.schedule: "lr-schedule" takes a text or a number' '{"version": 1, "rate": {"schedule": ["cosine"]}}'
    refuses '--lr-schedule step: unknown; use constant,linear' '{"version": 1, "rate": {"schedule": "step"}}'
    refuses '--micro-batches-from: give --micro-batches-over too' '{"version": 1, "batch": {"from": 1}}'
    refuses 'wrong.json' '{"version": 1'
    train --recipe "$work/nowhere.json"
    check 'no file' '2 1' "$code $(grep -c 'nowhere.json' "$work/err")"
}

# bench compares recipes by loss: each run is one of train with that recipe, and the picture has three axes.
compared() {
    local one
    printf '{"version": 1, "steps": 6, "rate": {"peak": 0.002, "warmup": 2}}' >"$work/warm.json"
    printf '{"version": 1, "steps": 8, "rate": {"peak": 0.001, "schedule": "cosine", "horizon": 8}, "batch": {"micro_batches": 2, "from": 1, "over": 4}}' >"$work/grow.json"
    bench() { # OPTION...
        timeout 200 "$sluice" bench --data "$work/text" --context 32 --batch 2 --schedule one_ahead --repeat 1 \
            -o "$work/bench" "$@" >"$work/out" 2>"$work/err" </dev/null
    }
    bench --recipe "$work/warm.json,$work/grow.json" --strategy dp,sdp
    check 'bench compares recipes' 0 $?
    python3 - "$work/bench/results.json" "$work/warm.json" "$work/grow.json" >"$work/said" <<'PY'
import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
for path in sys.argv[2:]:
    own = [r for r in runs if r["recipe_file"] == path]
    print(len(own), len({r["weights_sha256"] for r in own}), own[0]["steps_done"], own[0]["tokens_seen"][-1],
          own[0]["label"].startswith(path), own[0]["recipe"]["rate"]["schedule"])
PY
    check 'with the steps, rates and batches of each' '2 1 6 384.0 True constant 2 1 8 768.0 True cosine' \
        "$(paste -sd' ' "$work/said")"
    for one in warm grow; do
        check "$one: as train" "$(hash_of --recipe "$work/$one.json")" "$(python3 -c '
import json, sys
print(json.dumps([r for r in json.load(open(sys.argv[1]))["runs"] if r["recipe_file"] == sys.argv[2]][0]["weights_sha256"]))' \
            "$work/bench/results.json" "$work/$one.json")"
    done
    check 'losses are drawn over steps, tokens and time' '1 1 1' "$(grep -c 'loss against step' "$work/bench/losses.gp") \
$(grep -c 'loss against tokens' "$work/bench/losses.gp") $(grep -c 'loss against time' "$work/bench/losses.gp")"
    bench --overwrite --recipe "$work/warm.json,$work/grow.json" --strategy dp --lr 0.003 --steps 3
    check 'options come before recipes' '0 1 1' "$? $(grep -o '"lr": 0.003[0-9]*' "$work/bench/results.json" | sort -u | wc -l) \
$(grep -o '"steps_done": [0-9]*' "$work/bench/results.json" | sort -u | wc -l)"
    bench --overwrite --recipe "$work/warm.json,$work/nowhere.json" --strategy dp
    check 'a recipe that is not there is refused before the first run' '2 1' "$? $(grep -c nowhere.json "$work/err")"
    train --model bert --steps 1 --save-weights "$work/bert"
    bench --overwrite --recipe "$work/warm.json,$work/grow.json" --strategy dp --weights "$work/bert"
    check 'recipes leave the model that weights bring' '0 bert bert' "$? $(python3 -c '
import json, sys
print(*(r["model"] for r in json.load(open(sys.argv[1]))["runs"]))' "$work/bench/results.json")"
}

same_run
compared
refusals
exit $failed
