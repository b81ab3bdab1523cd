#!/usr/bin/env bash
# `sluice train --save` and `--resume` keep their promises: a run that goes on has the losses and weights of one that
# was never stopped, to the bit, under any strategy, after SIGKILL too; Ctrl-C saves; what does not fit is said.
# Labels: sanitized
. "$(dirname "$0")/../support/command_check.sh"
need_command train
. "$(dirname "$0")/../support/train_check.sh"
common+=(--warmup 5)

losses_of() { # CSV...: step and loss of every step, the later file's where two have it
    cat "$@" | grep '^[0-9]' | cut -d, -f1,2 | sort -t, -k1,1n -u
}

# Ranks, strategy before, strategy after, precision, other OPTION...
goes_on() {
    local ranks=() before=$2 after=$3 what="$1 ranks, $2 to $3, ${*:4}"
    [ "$1" = 1 ] || ranks=(-n "$1")
    shift 3
    rm -rf "$work/run"
    train "${ranks[@]}" --strategy dp --steps 7 --json "$work/whole.json" --csv "$work/whole.csv" "$@"
    check "$what: uninterrupted" 0 $code
    train "${ranks[@]}" --strategy "$before" --steps 4 --save "$work/run" --csv "$work/first.csv" "$@"
    check "$what: saved" 0 $code
    train "${ranks[@]}" --strategy "$after" --steps 7 --resume "$work/run" --json "$work/b.json" \
        --csv "$work/second.csv" "$@"
    check "$what: resumed" 0 $code
    check "$what: equal losses" "$(losses_of "$work/whole.csv")" "$(losses_of "$work/first.csv" "$work/second.csv")"
    check "$what: equal weights" "$(hash_of "$work/whole.json")" "$(hash_of "$work/b.json")"
    check "$what: nothing to say" '' "$(grep -i warn "$work/err")"
}

other_worlds() { # in $work/run is a checkpoint of 2 ranks
    for ranks in 1 3; do
        train -n $ranks --steps 4 --resume "$work/run" --json "$work/n$ranks.json"
        check "$ranks ranks read it" 0 $code
        check "$ranks ranks say what changes" yes "$(grep -q 'ranks was 2 and is' "$work/err" && echo yes)"
    done
    check 'all have the same weights' "$(hash_of "$work/n1.json")" "$(hash_of "$work/n3.json")"
}

refusals() { # in $work/run is a checkpoint of step 4
    mkdir -p "$work/nothing"
    refuses 'there is no checkpoint in' --resume "$work/nothing"
    refuses 'there is no checkpoint in' --resume "$work/nowhere"
    refuses 'was saved with --size "nano", this run has "mini"' --resume "$work/run" --size mini
    refuses 'holds checkpoints of another run, up to step 4' --save "$work/run"
    refuses 'cannot make the folder' --save "$work/nowhere/at/all"
    refuses 'cannot write\|not a directory\|cannot make\|cannot read' --save "$work/text"
    refuses 'another recipe: lr was 0.001 and is 0.5; give --lr 0.001' --resume "$work/run" --steps 6 --lr 0.5
    train --steps 6 --resume "$work/run" --lr 0.5 --new-recipe
    check 'another learning rate is warned about where it is asked for' yes "$(grep -q 'lr was 0.001 and is 0.5' "$work/err" && echo yes)"
    check 'and taken' 0 $code
    train --steps 4 --resume "$work/run"
    check 'nothing to train' yes "$(grep -q 'nothing to train' "$work/out" && echo yes)"
    check 'nothing to train is no error' 0 $code
    printf x >>"$work/run/step-000004/rank-0000.slc"
    refuses 'too long' --resume "$work/run" --steps 6
}

keeps_two() {
    rm -rf "$work/many"
    train --steps 7 --save "$work/many" --save-every 2
    check 'the last two stay' 'step-000006 step-000007' "$(cd "$work/many" && echo *)"
    SLUICE_CHECKPOINT_KEEP=x refuses 'CHECKPOINT_KEEP=x' --steps 1 --save "$work/none"
    check 'said before the first step' 0 "$(grep -c '^step' "$work/err")"
    SLUICE_CHECKPOINT_KEEP=0 train --steps 12 --resume "$work/many" --save "$work/many" --save-every 2
    check 'all stay' 'step-000006 step-000007 step-000008 step-000010 step-000012' "$(cd "$work/many" && echo *)"
}

# Begins a long run and ends it with SIGNAL when it has saved something new, or for INT has trained a step.
stop_with() { # SIGNAL, RANKS, OPTION...
    local signal=$1 ranks=() before
    [ "$2" = 1 ] || ranks=(-n "$2")
    shift 2
    before=$(latest)
    begin "$work/out" "$work/err" setsid "$sluice" train "${common[@]}" "${ranks[@]}" --steps 100000 \
        --save "$work/cut" "$@"
    comes_true has_come_far "$signal" "$before"
    sleep "0.0$((RANDOM % 10))"
    if [ "$signal" = KILL ]; then kill -KILL -- "-$process"; else kill -"$signal" "$process"; fi
    ends "a run that is stopped with SIG$signal"
}

has_come_far() { # SIGNAL, what was saved before
    [ "$(latest)" != "$2" ] || { [ "$1" = INT ] && grep -q 'step 1/' "$work/err"; } || ended
}

latest() { # step in $work/cut
    local folders=("$work"/cut/step-??????)
    [ -e "${folders[0]}" ] && echo $((10#${folders[-1]##*-}))
}

# The folder must hold what an uninterrupted run has after as many steps.
as_uninterrupted() { # RANKS
    local ranks=() step
    [ "$1" = 1 ] || ranks=(-n "$1")
    step=$(latest)
    train "${ranks[@]}" --steps $((step + 2)) --resume "$work/cut" --json "$work/a.json"
    check "resumed after step $step" 0 $code
    train "${ranks[@]}" --steps $((step + 2)) --json "$work/b.json"
    check "as never stopped at $step" "$(hash_of "$work/b.json")" "$(hash_of "$work/a.json")"
}

killed() {
    rm -rf "$work/cut"
    stop_with KILL 2 --save-every 1
    as_uninterrupted 2
    for _ in 1 2 3; do stop_with KILL 2 --save-every 1 --resume "$work/cut"; done
    as_uninterrupted 2
}

interrupted() {
    rm -rf "$work/cut"
    mkdir "$work/cut"
    stop_with INT 1
    check 'Ctrl-C: exit code' 130 $code
    check 'Ctrl-C saves' 1 "$(ls "$work/cut" | wc -l)"
    as_uninterrupted 1
}

# A folder of the same name, but another one on each rank, must be named before the first step.
folder_apart() {
    mkdir -p "$work/apart/0" "$work/apart/1"
    timeout 120 "$sluice" run -n 2 -- bash -c 'cd "$0/$RANK" && exec "$@"' "$work/apart" "$sluice" train \
        "${common[@]}" --steps 2 --save out >"$work/out" 2>"$work/err" </dev/null
    code=$?
    check 'a folder that ranks do not share fails' yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check 'rank 1 says why' yes "$(grep -q 'rank 1 does not see' "$work/err" && echo yes)"
    check 'before the first step' 0 "$(grep -c 'step 1/' "$work/err")"
    check 'nothing is left' '' "$(ls -A "$work/apart/0/out")"
}

names_in() { # FOLDER [PATTERN]: the names in it, those that begin with a dot too
    find "$1" -mindepth 1 -maxdepth 1 -name "${2:-*}" -printf '%f\n' | sort | xargs
}

losses_in() { # JSON: how many it has
    python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["runs"][0]["losses"]))' "$1"
}

# A file in the place of a checkpoint cannot be replaced: that save fails, behind a step or two, and so does the save of the
# step that is made by then.
save_errors() {
    rm -rf "$work/run" "$work/e.json" "$work/e.csv"
    mkdir "$work/run"
    touch "$work"/run/step-00000{4,5,6,7}
    train -n 2 --steps 8 --save "$work/run" --save-every 2 --json "$work/e.json" --csv "$work/e.csv" \
        --save-weights "$work/weights" --trace "$work/trace.json"
    check 'a save that fails ends the run' 1 $code
    check 'it is tried once more' 1 "$(grep -c 'step 4 is not saved.*; step [56] is saved instead' "$work/err")"
    check 'the error has file and reason' 1 \
        "$(grep -c 'sluice train: .*step, [56], is not saved: .*step-00000[56]: Not a directory' "$work/err")"
    check 'it is the last step' 1 "$(grep -c "step, $(losses_in "$work/e.json"), is not saved" "$work/err")"
    check 'steps until then are in the table' "$(($(losses_in "$work/e.json") + 1))" "$(wc -l <"$work/e.csv")"
    check 'other outputs are written' 'config.json model.safetensors sluice.json trace.json' \
        "$(names_in "$work/weights") $(names_in "$work" trace.json)"
    check 'what was saved before stays' 'step-000002 step-000004 step-000005 step-000006 step-000007' \
        "$(names_in "$work/run")"
    check 'the lock is gone' '' "$(names_in "$work/run" '.*')"

    train -n 2 --steps 8 --resume "$work/run" --save "$work/run" --save-every 2 --on-save-error warn
    check 'warn goes on, and the last save succeeds' 0 $code
    check 'it warns' yes "$(grep -q 'step [56] is not saved.*training goes on' "$work/err" && echo yes)"
    check 'a later one is saved' 'step-000002 step-000004 step-000005 step-000006 step-000007 step-000008' \
        "$(names_in "$work/run")"
    train -n 2 --steps 10 --resume "$work/run" --json "$work/a.json"
    train -n 2 --steps 10 --json "$work/b.json"
    check 'resumed after a failed save' "$(hash_of "$work/b.json")" "$(hash_of "$work/a.json")"

    rm -rf "$work/run"
    mkdir "$work/run"
    touch "$work/run/step-000003"
    train --steps 3 --save "$work/run" --on-save-error warn --json "$work/e.json"
    check 'warn: the last step is not saved' 1 $code
    check 'warn: the results are written' 3 "$(losses_in "$work/e.json")"
    refuses 'on-save-error ignore: unknown; use stop,warn' --save "$work/run" --on-save-error ignore

    rm -rf "$work/run"
    train --steps 3 --save "$work/run" --save-weights "$work/weights" --trace /dev/full --json "$work/e.json"
    check 'a trace that cannot be written is an error' 1 $code
    check 'it does not take the results with it' 3 "$(losses_in "$work/e.json")"
}

two_jobs() {
    rm -rf "$work/cut"
    begin "$work/first" "$work/first.err" setsid "$sluice" train "${common[@]}" --steps 100000 --save "$work/cut"
    comes_true said_or_ended 'step 1/' "$work/first.err"
    refuses "another job saves to .*host $(hostname), process $process, since 20" --steps 3 --save "$work/cut"
    check 'said before the first step' 0 "$(grep -c 'step 1/' "$work/err")"
    kill -KILL "$process"
    ends 'a job that is killed'
    train --steps 3 --save "$work/cut"
    check 'a job that was killed holds nothing' 0 $code
}

# A text of the same length and beginning, with one other byte.
other_text() {
    rm -rf "$work/run"
    cp "$work/text" "$work/kept"
    train -n 2 --steps 3 --save "$work/run"
    printf '#' | dd of="$work/text" bs=1 seek=150000 conv=notrunc status=none
    train -n 2 --steps 4 --resume "$work/run"
    check 'another text is gone on with' 0 $code
    check 'and warned about, once' 1 "$(grep -c 'the training data is other than before' "$work/err")"
    printf '#' >>"$work/text"
    train --steps 4 --resume "$work/run"
    check 'a longer one is, once' 1 "$(grep -c 'the training data is other than before' "$work/err")"
    mv "$work/kept" "$work/text"
    train -n 2 --steps 4 --resume "$work/run"
    check 'the same is not' 0 "$(grep -c 'training data' "$work/err")"
}

crc_of() { # FILE: as a manifest has it
    python3 - "$1" <<'END'
import sys
data, crc = open(sys.argv[1], "rb").read(), 0xffffffff
for byte in data:
    crc ^= byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
print('{"bytes": %d, "crc32c": %d}' % (len(data), crc ^ 0xffffffff), end="")
END
}

seal() { # MANIFEST: gives it the checksum of its present content
    python3 - "$1" <<'END'
import re, sys
text, crc = open(sys.argv[1]).read(), 0xffffffff
text = text[:text.rindex(',\n  "crc32c": ')]
for byte in text.encode():
    crc ^= byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
open(sys.argv[1], "w").write(text + ',\n  "crc32c": %d\n}\n' % (crc ^ 0xffffffff))
END
}

# A manifest with the right checksum and numbers that the optimizer cannot have.
impossible_numbers() {
    local manifest=$work/run/step-000004/manifest.json
    rm -rf "$work/run"
    train -n 2 --optimizer onebit_lamb --strategy onebit --freeze-step 2 --steps 4 --save "$work/run"
    check 'a compressed optimizer saves' 0 $code
    cp "$manifest" "$work/kept"
    for change in '0,/"numbers": \[[0-9][0-9.]*/s//"numbers": [-1/' '0,/"value": [0-9.]*/s//"value": 1.5/'; do
        sed -i "$change" "$manifest"
        check 'a number is changed' no "$(cmp -s "$manifest" "$work/kept" && echo yes || echo no)"
        refuses 'manifest.json.*damaged' --optimizer onebit_lamb --strategy onebit --resume "$work/run" --steps 6 -n 2
        seal "$manifest"
        refuses 'step-000004.*progress or .*numbers' --optimizer onebit_lamb --strategy onebit --resume "$work/run" \
            --steps 6 -n 2
        cp "$work/kept" "$manifest"
    done
    seal "$manifest"
    check 'the same text has the same checksum' yes "$(cmp -s "$manifest" "$work/kept" && echo yes)"
    train -n 2 --optimizer onebit_lamb --strategy onebit --resume "$work/run" --steps 5
    check 'as it was it is resumed' 0 $code
}

# The position in the data that lies next to the weights must fit them: it has at least as many steps as the weights
# have updates, and at least one sequence for each step.
false_position() {
    local folder=$work/run/step-000004 change
    rm -rf "$work/run"
    train --steps 4 --save "$work/run"
    cp "$folder/extra" "$work/kept"
    for change in 's/"steps": 4/"steps": 3/' 's/"sequences": [0-9][0-9]*/"sequences": 3/' 's/"steps": 4/"steps": 400/'; do
        sed "$change" "$work/kept" >"$folder/extra"
        check "$change changes it" no "$(cmp -s "$folder/extra" "$work/kept" && echo yes || echo no)"
        sed -i "s/\"extra\": {.*}/\"extra\": $(crc_of "$folder/extra")/" "$folder/manifest.json"
        seal "$folder/manifest.json"
        refuses 'its weights have had 4 updates, but it says that the run made .* sequences; it is damaged' \
            --resume "$work/run" --steps 6
    done
}

# The folder alone says what the model is; what it cannot say is asked for.
alone() {
    rm -rf "$work/run"
    train --model bert --size mini --context 16 --steps 2 --save "$work/run"
    train --context 16 --steps 4 --resume "$work/run" --json "$work/a.json"
    check 'the checkpoint says the model' 0 $code
    check 'with nothing to say' '' "$(grep -i warn "$work/err" | grep -v -- --warmup)"
    train --model bert --size mini --context 16 --steps 4 --json "$work/b.json"
    check 'resumed alone: equal weights' "$(hash_of "$work/b.json")" "$(hash_of "$work/a.json")"
    train --context 16 --steps 4 --resume "$work/run" -n 2
    check 'ranks that are started know it too' 0 $code
    refuses 'saved with --model "bert", this run has "gpt2"' --resume "$work/run" --model gpt2
    timeout 120 "$sluice" train --steps 4 --resume "$work/run" >"$work/out" 2>"$work/err" </dev/null
    check 'without --data it is not resumed' no "$([ $? -eq 0 ] && echo yes || echo no)"
    check 'it says which data' 1 "$(grep -c -- "trained on --data $work/text; give --data" "$work/err")"
}

# If a checkpoint is damaged, the error names the one before it, and both ways that the error gives lead on.
damaged() {
    local file before=$work/run/step-000004
    for file in manifest.json extra rank-0000.slc; do
        rm -rf "$work/run"
        train --steps 6 --save "$work/run" --save-every 2
        truncate -s 100 "$work/run/step-000006/$file"
        refuses "checkpoint before it is $before: give --resume $before, or remove $work/run/step-000006" --steps 8 \
            --resume "$work/run"
        refuses "give --resume $before" --steps 8 --resume "$work/run/step-000006/"
        train --steps 8 --resume "$before" --json "$work/a.json"
        check "$file is cut off: the one before is resumed" 0 $code
        rm -r "$work/run/step-000006"
        train --steps 8 --resume "$work/run" --json "$work/b.json"
        check "$file: both ways are one" "$(hash_of "$work/a.json")" "$(hash_of "$work/b.json")"
    done
    truncate -s 100 "$before/manifest.json"
    refuses 'manifest.json' --steps 8 --resume "$work/run"
    check 'there is none before it' 0 "$(grep -c 'checkpoint before it' "$work/err")"
}

# A checkpoint as earlier versions wrote it: no checksum in the manifest, nothing of the data but its beginning.
older_checkpoints() {
    rm -rf "$work/run"
    train --steps 3 --save "$work/run"
    local manifest=$work/run/step-000003/manifest.json extra=$work/run/step-000003/extra
    python3 - "$extra" <<'END'
import json, sys
document = json.load(open(sys.argv[1]))
for name in "content", "paths", "tokenizer", "shape":
    del document["settings"][name]
json.dump(document, open(sys.argv[1], "w"))
END
    sed -i "s/\"extra\": {.*}/\"extra\": $(crc_of "$extra")/" "$manifest"
    sed -i 's/"version": [0-9]*/"version": 1/; /"crc32c": [0-9]*$/d; s/^\(  "extra": .*}\),$/\1/' "$manifest"
    train --steps 4 --resume "$work/run"
    check 'a manifest without a checksum is read' 0 $code
    check 'and warned about' 1 "$(grep -c 'gave it no checksum' "$work/err")"
    check 'nothing else is' '' "$(grep warning "$work/err" | grep -v 'checksum\|--warmup')"
    refuses 'was saved with --size "nano", this run has "mini"' --resume "$work/run" --size mini
    sed -i 's/"version": 1/"version": 5/' "$manifest"
    refuses 'manifest.json.*version 5; this program reads 4' --resume "$work/run" --steps 4
}

goes_on 2 fsdp oss --micro-batches 2 --accumulate each
goes_on 1 auto auto --precision bf16 --dropout 0.1
goes_on 2 auto sdp --clip 1 --schedule "$(default_schedule)"
other_worlds
refusals
keeps_two
killed
interrupted
folder_apart
save_errors
two_jobs
other_text
impossible_numbers
false_position
alone
damaged
older_checkpoints
exit $failed
