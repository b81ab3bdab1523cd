#!/usr/bin/env bash
# The log of a run has each step when the step has ended, however the run ends; a run that goes on goes on in it, and its
# options repeat the run. `log_test.sh SLUICE 50` ends fifty runs instead of a few.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
. "$(dirname "$0")/../../support/small_disk.sh" 64k "$@"
. "$(dirname "$0")/../../support/train_check.sh"
tool=$(realpath "$(dirname "$0")/log.py")
kills=${2:-6}
seed=${SLUICE_TEST_SEED:-1}
RANDOM=$((seed % 32768))

log_says() { # WHAT STEPS FOLDER [SHOWN]: the log is whole, and has so many steps
    check "$1" "$2" "$(python3 "$tool" check "${@:3}" 2>&1)"
}

value() { # FOLDER STEP KEY
    python3 "$tool" value "$1/metrics.jsonl" "$2" "$3"
}

one_run() {
    train -n 2 --steps 6 --eval-every 2 --log "$work/one/log" --json "$work/one.json" --csv "$work/one.csv"
    check 'a run with a log' 0 $code
    log_says 'all steps are there' 6 "$work/one/log" "$work/err"
    check 'a line a step on standard error' 6 "$(grep -c '^step ' "$work/err")"
    check '--csv has them too' 7 "$(wc -l <"$work/one.csv")"
    check 'evaluations after steps 2 and 4 and at the end' 3 \
        "$(grep -c evaluation_loss "$work/one/log/metrics.jsonl")"
    check 'losses are those of --json' yes "$(python3 -c "
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
losses = json.load(open(sys.argv[2]))['runs'][0]['losses']
mine = [line['loss'] for line in lines if 'loss' in line]
print('yes' if len(mine) == 6 and all(abs(a - b) < 1e-8 for a, b in zip(mine, losses)) else mine)
" "$work/one/log/metrics.jsonl" "$work/one.json")"
    check 'tokens add up' $((6 * 2 * 2 * 32)) "$(value "$work/one/log" 6 tokens)"
    check 'run.json says what was run' yes "$(python3 -c "
import json, os, sys
run = json.load(open(sys.argv[1]))
whole = run['command_line'][0].endswith('sluice') or 'train' in run['command_line'][0]
print('yes' if run['options']['steps'] == 6 and run['world'] == 2 and run['folder'] == os.getcwd() and
      '--steps' in run['command_line'] and run['environment']['cores'] >= 1 and whole else run)
" "$work/one/log/run.json")"
    timeout 100 "$sluice" train --config "$work/one/log/options.json" --log "$work/again" --json "$work/again.json" \
        --csv "$work/again.csv" >"$work/out" 2>"$work/err" </dev/null
    check 'its options run again' 0 $?
    check 'to equal weights' "$(hash_of "$work/one.json")" "$(hash_of "$work/again.json")"
}

# The norm is there without clipping, is what clipping measures, and changes no weights.
norms() {
    train -n 2 --steps 3 --clip 1e30 --log "$work/clipped" --json "$work/clipped.json"
    train -n 2 --steps 3 --log "$work/plain" --json "$work/plain.json"
    train -n 2 --steps 3 --json "$work/bare.json"
    local step
    for step in 1 2 3; do
        check "the norm of step $step" "$(value "$work/clipped" $step gradient_norm)" \
            "$(value "$work/plain" $step gradient_norm)"
    done
    check 'a norm is a number' yes "$(value "$work/plain" 3 gradient_norm | grep -q '^[0-9.]*$' && echo yes)"
    check 'measuring changes nothing' "$(hash_of "$work/bare.json")" "$(hash_of "$work/plain.json")"
}

# SIGNAL: a run is sent it at a drawn moment; what was shown is in the log, and nothing is half there. SIGKILL strikes
# rank 0 itself, and its launcher is none: it is one rank.
ended_by() {
    local folder=$work/ended-$1-$2 pause
    rm -rf "$folder"
    begin "$work/out" "$work/err" "$sluice" train "${common[@]}" --steps 1000000 --eval-batches 0 --log "$folder"
    comes_true said_or_ended '^step 1/' "$work/err"
    pause=0.$((RANDOM % 4))$((RANDOM % 10))$((RANDOM % 10))
    sleep $pause
    kill -"$1" $process 2>/dev/null
    ends "training after SIG$1"
    local steps
    steps=$(python3 "$tool" check "$folder" "$work/err" 2>&1)
    check "SIG$1 after $pause s: the log is whole (seed $seed)" yes \
        "$([[ $steps =~ ^[0-9]+$ ]] && [ "$steps" -ge 1 ] && echo yes || echo "$steps")"
}

ended_in_many_ways() {
    local i
    for ((i = 0; i < kills; i++)); do
        if ((i % 3 == 2)); then ended_by HUP "$i"; else ended_by KILL "$i"; fi
    done
}

# A run is killed behind its last checkpoint: the one that goes on writes those steps anew.
goes_on() {
    local log=$work/on/log
    train --steps 4 --save "$work/on/run" --log "$log"
    cp -r "$log" "$work/on/kept"
    local i
    for i in 5 6 7; do # as if it had come to step 7 without a further checkpoint, and then had lost its power
        sed -n "4s/\"step\":4,/\"step\":$i,/p" "$log/metrics.jsonl" >>"$work/on/more"
    done
    cat "$work/on/more" >>"$log/metrics.jsonl"
    printf '{"step":8,"los' >>"$log/metrics.jsonl"
    printf '5,9,9\n6,9' >>"$log/metrics.csv"
    train --steps 9 --save "$work/on/run" --resume "$work/on/run" --log "$log" --json "$work/on/whole.json"
    check 'a run that goes on' 0 $code
    log_says 'each step is there once' 9 "$log" "$work/err"
    check 'the steps before stay as they were' yes \
        "$(cmp -s <(head -4 "$work/on/kept/metrics.jsonl") <(head -4 "$log/metrics.jsonl") && echo yes)"
    check 'run.json knows both starts' 1 "$(python3 -c "
import json, sys
run = json.load(open(sys.argv[1]))
print(len(run['earlier']) if run['steps_before'] == 4 and run['earlier'][0]['steps_before'] == 0 else run)
" "$log/run.json")"
    refuses 'log of another run' --steps 2 --log "$log"
    log_says 'a refused run leaves it' 9 "$log"
    train --steps 2 --log "$log" --overwrite
    check 'or replaces it' 0 $code
    log_says 'with its own steps' 2 "$log"
    check 'and event files' 1 "$(find "$log" -name 'events.out.tfevents.*' | wc -l)"
    train --steps 2 --go-on "$work/on/new" --log "$work/on/new-log"
    train --steps 3 --go-on "$work/on/new" --log "$work/on/new-log"
    log_says '--go-on goes on in its log' 3 "$work/on/new-log"
}

# A disk that fills and gets room again: the run goes on and says so once a file, whole lines are left, and those that
# come when there is room are kept.
full_disk() {
    [ "$mounted" ] || { skip 'a disk that is full: no file system can be mounted here'; return; }
    local log=$work/small/log
    begin "$work/out" "$work/err" "$sluice" train "${common[@]}" --steps 1000000 --eval-batches 0 --log "$log"
    comes_true said_or_ended 'cannot write .*metrics.jsonl' "$work/err"
    check 'a full disk is told once a file' 1 "$(grep -c 'cannot write .*metrics.jsonl: .*; the run goes on' "$work/err")"
    mount -o remount,size=4m "$work/small"
    local before
    before=$(grep -c '^step ' "$work/err")
    comes_true further_by 20 "$before"
    kill -INT $process
    ends 'a run on a full disk'
    check 'it goes on to its end' 1 "$(grep -c '^stopped at step' "$work/out")"
    check 'which tells of what is lost' 1 \
        "$(grep -v 'the run goes on' "$work/err" | grep -c 'cannot write .*metrics.jsonl: No space left')"
    check 'whole lines are left, and the last steps among them' yes "$(python3 -c "
import json, sys
text = open(sys.argv[1]).read()
assert text.endswith('\n')
steps = [json.loads(line)['step'] for line in text.splitlines()]
shown = int(sys.argv[2])
print('yes' if steps == sorted(set(steps)) and len(steps) < steps[-1] and steps[-1] >= shown else steps)
" "$log/metrics.jsonl" "$((before + 20))" 2>&1)"
}

further_by() { # STEPS LINES: so many more are shown, or it has ended
    [ "$(grep -c '^step ' "$work/err")" -ge $(($2 + $1)) ] || ended
}

resident_kib() {
    sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$process/status"
}

# A run of a billion steps takes no more memory than a short one, and its table grows while it runs.
a_billion_steps() {
    begin "$work/out" "$work/err" "$sluice" train "${common[@]}" --steps 1000000000 --eval-batches 0 \
        --csv "$work/grows.csv" --json "$work/grows.json"
    comes_true said_or_ended '^step 20/' "$work/err"
    check 'the table grows' yes "$([ "$(wc -l <"$work/grows.csv")" -ge 20 ] && echo yes)"
    check 'the document does not' no "$([ -e "$work/grows.json" ] || echo no)"
    check 'and memory is that of a short run' yes "$([ "$(resident_kib)" -lt 400000 ] && echo yes)"
    kill -INT $process
    ends 'a billion steps'
    check 'they can be stopped' 130 $code
    check 'and then the document is there' 1 "$(grep -c '"interrupted": true' "$work/grows.json")"
}

config_refuses() { # WORDS CONTENT
    printf '%s' "$2" >"$work/config.json"
    refuses "$1" --config "$work/config.json"
}

configs() {
    config_refuses 'no such file' '{"data": "/nowhere", "tokenizer": "/nowhere"}'
    config_refuses 'did you mean "steps"' '{"stesp": 2}'
    config_refuses '"verbose" takes true or false' '{"verbose": "yes"}'
    config_refuses 'whole number' '{"seed": 1.5}'
    config_refuses 'give an object' '[1]'
    config_refuses 'config.json' '{"steps": '
    refuses 'no such file' --config "$work/nowhere.json"
    printf '{"steps": 3, "lr": 0.002, "data": ["/nowhere"], "clip": null, "verbose": true}' >"$work/config.json"
    train --config "$work/config.json" --lr 0.004 --json "$work/config-run.json" # --data comes with `train`
    check 'a config' 0 $code
    check 'its steps' 1 "$(grep -c '"steps_done": 3' "$work/config-run.json")"
    check 'the command line comes before it' 1 "$(grep -c '"lr": 0.004' "$work/config-run.json")"
    check 'a switch' 1 "$(grep -c '^weights sha256' "$work/out")"
}

# A GPT-2 writes while it trains, which changes nothing else.
samples() {
    train -n 2 --steps 4 --sample-every 2 --prompt 'bottles
of' --log "$work/samples" --json "$work/sampled.json"
    check 'a run with samples' 0 $code
    check 'samples are shown on a line each' 2 "$(grep -c '^sample [24]: bottles\\nof..' "$work/err")"
    check 'and kept' 'bottles
of' "$(python3 -c "
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [line['step'] for line in lines] == [2, 4]
print(lines[1]['text'][:10])" "$work/samples/samples.jsonl")"
    train -n 2 --steps 4 --json "$work/silent.json"
    check 'samples change no weights' "$(hash_of "$work/silent.json")" "$(hash_of "$work/sampled.json")"
    refuses 'give --prompt' --sample-every 2
    refuses 'give --sample-every' --prompt text
    refuses 'only a gpt2' --model bert --sample-every 2 --prompt text
    refuses 'a sequence has 32' --sample-every 2 --prompt "$(printf '%032d' 0)"
}

tensorboard() {
    local python=${SLUICE_TEST_PYTHON:-python3}
    if ! "$python" -c 'import tensorboard' 2>/dev/null; then
        skip "TensorBoard's own reader: $python has no tensorboard"
        return
    fi
    local folder
    for folder in "$work/one/log" "$work/on/new-log"; do
        check "TensorBoard reads $(basename "$folder")" yes \
            "$("$python" "$tool" tensorboard "$folder" 2>&1 | grep -q '^[0-9]* losses' && echo yes)"
    done
}

one_run
norms
ended_in_many_ways
goes_on
full_disk
a_billion_steps
configs
samples
tensorboard
exit $failed
