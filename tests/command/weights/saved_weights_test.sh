#!/usr/bin/env bash
# The folder of --save-weights is nobody else's, has all that the weights need, and waits for room on a full disk; and
# weights can be made of a checkpoint.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
. "$(dirname "$0")/../../support/small_disk.sh" 64m "$@"
. "$(dirname "$0")/../../support/train_check.sh"

key_of() { # FOLDER KEY: of its config.json
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/config.json")).get(sys.argv[2]))' "$1" "$2"
}

folders() {
    train -n 2 --steps 2 --save-weights "$work/deep/er/model"
    check 'the folder is made, with those that it lies in' 0 $code
    check 'its line to use it is printed' 1 "$(grep -c "^weights in $work/deep/er/model: sluice generate --weights" "$work/out")"
    timeout 60 "$sluice" generate --weights "$work/deep/er/model" --prompt 'bottles' --tokens 4 >"$work/out" 2>"$work/err"
    check 'and works' 0 $?
    check 'it says where it is from' 1 "$(grep -c '"command_line"' "$work/deep/er/model/sluice.json")"
    train --steps 1 --save-weights "$work/deep/er/model"
    check 'a folder of ours is written again' 0 $code
    mkdir "$work/theirs"
    cp "$work/deep/er/model/config.json" "$work/theirs"
    echo theirs >"$work/theirs/model.safetensors"
    refuses 'that no run of ours has written' -n 2 --steps 1 --save-weights "$work/theirs"
    check 'before the first step' 0 "$(grep -c '^step' "$work/err")"
    check 'and told once' 1 "$(grep -c 'no run of ours' "$work/err")"
    check "it stays another's" theirs "$(cat "$work/theirs/model.safetensors")"
    train --steps 1 --save-weights "$work/theirs" --overwrite
    check 'unless it may be overwritten' 0 $code
    check 'with weights' yes "$([ "$(stat -c %s "$work/theirs/model.safetensors")" -gt 1000 ] && echo yes)"
    echo file >"$work/file"
    refuses 'cannot make the folder' --steps 1 --save-weights "$work/file/below"
    train --steps 1
    check 'a run that keeps nothing says so' 1 "$(grep -c '^weights are not kept' "$work/out")"
}

# The settings of the folder of --weights are kept, and a line says where the run differs from them.
goes_along() {
    cp -r "$work/deep/er/model" "$work/base"
    rm "$work/base/sluice.json"
    python3 - "$work/base/config.json" <<'PY'
import json, sys
config = json.load(open(sys.argv[1]))
config |= {"resid_pdrop": 0.125, "embd_pdrop": 0.125, "attn_pdrop": 0.0625}
json.dump(config, open(sys.argv[1], "w"))
PY
    echo '{"do_sample": true, "eos_token_id": 7}' >"$work/base/generation_config.json"
    train --weights "$work/base" --steps 1 --save-weights "$work/tuned"
    check 'it trains on' 0 $code
    check 'the rate is said to be the default' 1 "$(grep -c 'learning rate 5e-05 (the default with --weights)' "$work/out")"
    check 'the dropout that is not taken is said' 1 "$(grep -c '^dropout    0, as every run .*; config.json .* has 0.125 and keeps it; --dropout 0.125 takes it' "$work/out")"
    check 'and kept' '0.125 0.125 0.0625' \
        "$(key_of "$work/tuned" resid_pdrop) $(key_of "$work/tuned" embd_pdrop) $(key_of "$work/tuned" attn_pdrop)"
    check 'generation_config.json goes along' 1 "$(grep -c do_sample "$work/tuned/generation_config.json")"
    train --weights "$work/base" --steps 1 --dropout 0.5 --lr 0.001 --save-weights "$work/tuned"
    check 'a dropout that is given is the one that is saved' 0.5 "$(key_of "$work/tuned" resid_pdrop)"
    check 'and nothing is said of it' 0 "$(grep -c '^dropout\|the default with' "$work/out")"
    rm -rf "$work/run" "$work/made"
    train --weights "$work/base" --steps 1 --save "$work/run"
    timeout 60 "$sluice" weights "$work/run" -o "$work/made" --like "$work/base" >"$work/out" 2>"$work/err"
    check 'weights of a checkpoint have the dropout of --like' '0 0.125' "$? $(key_of "$work/made" resid_pdrop)"
    refuses 'no run of ours' --weights "$work/base" --steps 1 --save-weights "$work/base"
    python3 - "$work/base/model.safetensors" <<'PY'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
head = struct.unpack_from("<Q", data)[0]
struct.pack_into("<f", data, 8 + head, float("nan"))
open(sys.argv[1], "wb").write(data)
PY
    train --weights "$work/base" --steps 1
    check 'NaN in weights is a mistake of the file' 2 $code
}

# BEiT's files ask for stochastic depth: it is said, kept, or used.
stochastic_depth() {
    python3 - "$work/images" <<'PY'
import os, sys
for name in ("a", "b"):
    os.makedirs(f"{sys.argv[1]}/{name}")
    for i in range(12):
        pixels = bytes((17 * i + 5 * p + (90 if name == "a" else 0)) % 256 for p in range(16 * 16))
        open(f"{sys.argv[1]}/{name}/{i}.pgm", "wb").write(b"P5 16 16 255\n" + pixels)
PY
    run_beit() { # OPTION...
        timeout 60 "$sluice" train --data "$work/images" --batch 2 --eval-batches 1 --schedule one_ahead --steps 2 "$@" \
            >"$work/out" 2>"$work/err" </dev/null
        code=$?
    }
    run_beit --model beit --size nano --drop-path 0.25 --save-weights "$work/beit"
    check 'a BEiT trains with stochastic depth' '0 0.25' "$code $(key_of "$work/beit" drop_path_rate)"
    rm "$work/beit/sluice.json"
    run_beit --weights "$work/beit" --save-weights "$work/beit_tuned"
    check 'what is not taken is said' 1 "$(grep -c '^drop-path  0, as every run .*; config.json .* has 0.25 and keeps it; --drop-path 0.25 takes it' "$work/out")"
    check 'and kept' '0 0.25' "$code $(key_of "$work/beit_tuned" drop_path_rate)"
    run_beit --weights "$work/beit" --drop-path 0.125 --save-weights "$work/beit_tuned"
    check 'a share that is given is the one that is saved' '0 0.125' "$code $(key_of "$work/beit_tuned" drop_path_rate)"
    check 'and nothing is said of it' 0 "$(grep -c '^drop-path' "$work/out")"
}

same_weights() { # WHAT OPTION...: weights of a checkpoint are those that the run saved
    local what=$1
    shift
    rm -rf "$work/run" "$work/saved" "$work/made"
    train --steps 4 --save "$work/run" --save-weights "$work/saved" "$@"
    check "$what: a run" 0 $code
    timeout 60 "$sluice" weights "$work/run" -o "$work/made" >"$work/out" 2>"$work/err"
    check "$what: weights of its checkpoint" 0 $?
    check "$what: are the same" yes "$(cmp -s "$work/saved/model.safetensors" "$work/made/model.safetensors" && echo yes)"
    check "$what: and their configuration" yes "$(cmp -s "$work/saved/config.json" "$work/made/config.json" && echo yes)"
}

# A checkpoint has the names of its classes: weights of it name them as the run's own do.
classes_of_checkpoints() {
    for i in $(seq 1 30); do printf '{"text": "number %d", "label": "%s"}\n' "$i" "$([ $((i % 2)) = 0 ] && echo even || echo odd)"; done >"$work/numbers.jsonl"
    timeout 100 "$sluice" train --model bert --size nano --head classes --data "$work/numbers.jsonl" --context 32 --batch 2 \
        --eval-batches 1 --schedule one_ahead --steps 2 --save "$work/classes" --save-weights "$work/saved" \
        >"$work/out" 2>"$work/err" </dev/null
    check 'classes: a run' 0 $?
    rm -rf "$work/made"
    timeout 60 "$sluice" weights "$work/classes" -o "$work/made" >"$work/out" 2>"$work/err"
    check 'classes: weights of its checkpoint' 0 $?
    check 'classes: have their names' "{'0': 'even', '1': 'odd'}" "$(key_of "$work/made" id2label)"
    check 'classes: as the run saved them' yes "$(cmp -s "$work/saved/config.json" "$work/made/config.json" && echo yes)"
}

checkpoints() {
    same_weights 'two ranks, fsdp' -n 2 --strategy fsdp
    same_weights bf16 --precision bf16 --optimizer lamb --dropout 0.25
    same_weights '1-bit Adam' -n 2 --strategy onebit --optimizer onebit_adam --freeze-step 2
    same_weights 'a single checkpoint' --save-every 2
    timeout 60 "$sluice" weights "$work/run/step-000002" -o "$work/earlier" >"$work/out" 2>"$work/err"
    check 'an earlier checkpoint is named by its folder' 1 "$(grep -c 'step 2$' "$work/out")"
    timeout 60 "$sluice" weights "$work/nowhere" -o "$work/made" >"$work/out" 2>"$work/err"
    check 'no checkpoint' 2 $?
    timeout 60 "$sluice" weights "$work/run" -o "$work/base" >"$work/out" 2>"$work/err"
    check "a folder that is another's" 2 $?
    timeout 60 "$sluice" weights "$work/run" >"$work/out" 2>"$work/err"
    check 'no folder' 2 $?
}

fill_disk() {
    dd if=/dev/zero of="$work/small/filler" bs=1M status=none 2>/dev/null || true
}

begins_on_small_disk() {
    rm -rf "$work/small/model" "$work/small/filler"
    begin "$work/out" "$work/err" "$sluice" train "${common[@]}" -n 2 --steps 200 --save-weights "$work/small/model"
    comes_true said_or_ended '^step 1/' "$work/err"
    fill_disk
    comes_true said_or_ended 'weights wait in memory' "$work/err"
    check 'a full disk is waited for' 1 "$(grep -c 'weights wait in memory until its disk has room' "$work/err")"
    check 'and the reason is told' 1 "$(grep -c 'No space left on device' "$work/err")"
}

full_disk() {
    [ "$mounted" ] || { skip 'a full disk: no file system can be mounted here'; return; }
    fill_disk
    refuses 'its disk has room for' --steps 1 --save-weights "$work/small/model"
    check 'a disk without room is known before the first step' 0 "$(grep -c '^step' "$work/err")"
    begins_on_small_disk
    rm "$work/small/filler"
    ends 'with room it goes on'
    check 'weights are there then' '0 yes' "$code $([ -s "$work/small/model/model.safetensors" ] && echo yes)"
    begins_on_small_disk
    kill -TERM $process
    ends 'a signal gives the weights up'
    check 'which is an error' 1 $code
    check 'no half weights are left' no "$([ -e "$work/small/model/model.safetensors" ] || echo no)"
}

folders
goes_along
stochastic_depth
checkpoints
classes_of_checkpoints
full_disk
exit $failed
