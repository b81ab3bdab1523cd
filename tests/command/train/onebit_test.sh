#!/usr/bin/env bash
# Compressed optimizers keep their promises from the command: the loss falls before and after the freeze, a thirtieth of
# the bytes after it, equal weights for every schedule, mixed strategies, a resumed run that is the same run, consent.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3

train() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 100 "$sluice" train --context 32 --batch 4 --eval-batches 1 --schedule one_ahead "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

holds() { # what, FILE, condition of r, its run
    check "$1" True "$(python3 -c "
import json, sys
r = json.load(open(sys.argv[1]))['runs'][0]
losses = r['losses']
def mean(part): return sum(part) / len(part)
print(bool($3))" "$2" 2>&1 | tail -1)"
}

hash_of() {
    grep -o '"weights_sha256": "[0-9a-f]*"' "$1"
}

# Ranks, optimizer, other OPTION... The first 20 steps are the warm-up.
phases() {
    local json=$work/$2.$1.json
    train -n "$1" --optimizer "$2" --strategy onebit --steps 60 --freeze-step 20 --warmup 5 \
        --json "$json" "${@:3}"
    check "$2 on $1 ranks" 0 $code
    holds "$2 on $1 ranks: the loss falls before the freeze" "$json" 'mean(losses[15:20]) < losses[0] - 0.3'
    holds "$2 on $1 ranks: and behind it" "$json" 'mean(losses[50:]) < mean(losses[15:20]) - 0.1'
    holds "$2 on $1 ranks: settings are in the results" "$json" \
        "r['optimizer'] == '$2' and r['settings']['onebit']['freeze_step'] == 20"
}

one_bit_an_element() { # FILE RANKS: after the freeze, compared with four bytes before it; scales and padding apart
    holds "freeze at step 20" "$1" "r['freeze_step'] == 20 and r['warm_up']['steps'] == 20 and \
        r['compressed']['first_step'] == 21 and r['compressed']['steps'] == len(losses) - 20"
    holds "bytes of a compressed step" "$1" "0.98 < r['compressed']['bytes_sent'] / \
        (r['parameters'] / 8 * 2 * ($2 - 1) / $2) < 1.1"
    holds "bytes of a step of the warm-up" "$1" "r['warm_up']['bytes_sent'] > 25 * r['compressed']['bytes_sent']"
}

# 0/1 Adam with intervals between exchanges: ranks differ in most steps, and agree if somebody looks.
local_steps() {
    local common=(-n 2 --optimizer zero_one_adam --strategy onebit --lr 0.0005 --freeze-step 20 --warmup 5 --steps 43
        --onebit 'local_step_scaler=8,local_step_clipper=4') schedule
    for schedule in serial one_ahead; do
        train "${common[@]}" --schedule $schedule --json "$work/local.$schedule.json" --csv "$work/local.$schedule.csv"
        check "local steps, $schedule" 0 $code
    done
    check 'local steps: equal weights' "$(hash_of "$work/local.serial.json")" "$(hash_of "$work/local.one_ahead.json")"
    check 'some steps send next to nothing' yes \
        "$(awk -F, 'NR > 21 && $9 < 4096 {n++} END {if (n > 5) print "yes"}' "$work/local.serial.csv")"
    check 'the last one exchanges' yes \
        "$(awk -F, '{bytes = $9} END {if (bytes > 4096) print "yes"}' "$work/local.serial.csv")"
    train "${common[@]}" --schedule serial --eval-every 9 --save "$work/local.run" --save-every 11
    check 'local steps: evaluated and saved in between' 0 $code
}

schedules() {
    local schedule
    for schedule in serial one_ahead "$(default_schedule)"; do
        train -n 2 --strategy onebit --schedule $schedule --steps 16 --freeze-step 6 --json "$work/$schedule.json"
        check "onebit under $schedule" 0 $code
        holds "$schedule: --strategy onebit alone means 1-bit Adam" "$work/$schedule.json" \
            "r['optimizer'] == 'onebit_adam' and r['freeze_step'] == 6"
        check "$schedule: weights as under serial" "$(hash_of "$work/serial.json")" "$(hash_of "$work/$schedule.json")"
    done
    for strategy in dp fsdp; do
        train -n 2 --optimizer onebit_adam --strategy $strategy --schedule serial --steps 16 --freeze-step 6 \
            --json "$work/$strategy.json"
        check "onebit_adam under $strategy" 0 $code
    done
    check 'what is not compressed has equal weights' "$(hash_of "$work/dp.json")" "$(hash_of "$work/fsdp.json")"
    check 'compression is no nothing' no \
        "$([ "$(hash_of "$work/dp.json")" = "$(hash_of "$work/serial.json")" ] || echo no)"
}

# The original's LAMB exchanges all parameters as one buffer, the tied embedding among them.
as_the_original() {
    local strategy common=(-n 2 --optimizer onebit_lamb --onebit-compat --lr 0.01 --steps 12 --freeze-step 5)
    for strategy in onebit dp fsdp; do
        train "${common[@]}" --strategy $strategy --json "$work/compat.$strategy.json"
        check "one buffer, $strategy" 0 $code
    done
    check 'one buffer: sharded or not' "$(hash_of "$work/compat.dp.json")" "$(hash_of "$work/compat.fsdp.json")"
    holds 'one buffer: compressed' "$work/compat.onebit.json" \
        "r['warm_up']['bytes_sent'] > 15 * r['compressed']['bytes_sent']"
}

mixed() {
    local schedule
    echo '{"layers": {"h.0": "onebit", "h.1": "sdp", "*": "fsdp"}}' >"$work/mixed"
    for schedule in serial one_ahead; do
        train -n 2 --strategy "$work/mixed" --optimizer onebit_adam --schedule $schedule --steps 16 --freeze-step 6 \
            --clip 1 --json "$work/mixed.$schedule.json"
        check "mixed strategies, $schedule" 0 $code
    done
    check 'mixed strategies: equal weights' "$(hash_of "$work/mixed.serial.json")" \
        "$(hash_of "$work/mixed.one_ahead.json")"
    train -n 2 --strategy auto --schedule "$(default_schedule)" --lossy onebit --throttle 20mbit,50us --steps 16 \
        --freeze-step 6 --json "$work/auto.json" # a link that is slow beside the compute of a busy machine, too
    check 'auto, with consent' 0 $code
    holds 'consent means 1-bit Adam' "$work/auto.json" "r['optimizer'] == 'onebit_adam'"
    holds 'auto compresses where the network is slow' "$work/auto.json" \
        "3 * r['compressed']['bytes_sent'] < r['warm_up']['bytes_sent']"
}

refusals() {
    train -n 2 --strategy "$work/mixed" --steps 2
    check 'a file that says onebit needs consent' 2 $code
    check 'and that is said' yes "$(grep -q 'needs a compressed optimizer: onebit_adam, onebit_lamb or zero_one_adam' \
        "$work/err" && echo yes)"
    train --optimizer onebit_adam --steps 4
    check 'one rank trains' 0 $code
    check 'and says that it compresses nothing' 1 "$(grep -c 'one rank has nobody to exchange with' "$work/out")"
}

# If 0/1 Adam makes local steps and every later step is skipped, there is no end with equal weights.
skipped_at_the_end() {
    local common=(-n 2 --optimizer zero_one_adam --strategy onebit --freeze-step 5 --nan skip
        --onebit 'local_step_scaler=1,local_step_clipper=16')
    train "${common[@]}" --steps 12 --save "$work/skipped.run"
    check 'local steps: saved' 0 $code
    train "${common[@]}" --steps 22 --resume "$work/skipped.run" --lr 1e6 --new-recipe --eval-every 4 --csv "$work/skipped.csv"
    check 'a last step that is always skipped' 1 $code
    check 'which is said' yes "$(grep -q 'step 22, the last, was skipped 9 times' "$work/err" && echo yes)"
    check 'those before it are put off' 21 "$(tail -1 "$work/skipped.csv" | cut -d, -f1)"
}

# The checkpoint is made after the freeze; recipe_test.sh resumes the other compressed optimizers.
resumed() {
    local common=(--optimizer onebit_adam --strategy onebit --freeze-step 6 --warmup 2)
    train -n 2 "${common[@]}" --steps 12 --schedule serial --json "$work/whole.json"
    train -n 2 "${common[@]}" --steps 9 --save "$work/run"
    check 'saved' 0 $code
    train -n 2 --optimizer onebit_adam --strategy onebit --warmup 2 --steps 12 --resume "$work/run" \
        --json "$work/rest.json"
    check 'resumed' 0 $code
    check 'the same run' "$(hash_of "$work/whole.json")" "$(hash_of "$work/rest.json")"
    check 'nothing to say' '' "$(grep -i warn "$work/err")"
    train -n 2 "${common[@]}" --steps 12 --resume "$work/run" --strategy dp
    check 'another strategy is said' yes \
        "$(grep -q 'strategy was "onebit" and is "dp"; the run does not go on' "$work/err" && echo yes)"
    train -n 3 "${common[@]}" --steps 12 --resume "$work/run"
    check 'on another number of ranks' 0 $code
    check 'which is said' yes "$(grep -q 'left behind begins at 0' "$work/err" && echo yes)"
}

compared() {
    timeout 100 "$sluice" bench -n 2 --context 32 --batch 2 --repeat 1 --optimizer adamw,onebit_adam --steps 25 --throttle 1gbit \
        --output "$work/bench" >"$work/out" 2>"$work/err"
    check 'a comparison' 0 $?
    check 'frozen after a fifth of the steps' 5 \
        "$(awk -F, '$23 == "onebit_adam" && $5 == "onebit" {print $24}' "$work/bench/results.csv")"
    check 'a line of its own' 1 "$(grep -c '^  onebit_adam  *onebit .* %  *5 ' "$work/out")"
}

phases 2 onebit_adam
one_bit_an_element "$work/onebit_adam.2.json" 2
train -n 4 --optimizer onebit_adam --strategy onebit --steps 24 --freeze-step 20 --warmup 5 --json "$work/four.json"
check '4 ranks' 0 $code
one_bit_an_element "$work/four.json" 4
phases 2 onebit_lamb --lr 0.005
phases 2 zero_one_adam --lr 5e-4
local_steps
schedules
as_the_original
mixed
refusals
skipped_at_the_end
resumed
compared
[ $failed = 0 ] && echo "compressed optimizers: all as promised"
exit $failed
