#!/usr/bin/env bash
# Every command keeps its promises about output: a file that cannot be written is an error that says why, one file that
# cannot be written takes neither the work nor the other files with it, and a reader that leaves is no reason to lose a
# run.
. "$(dirname "$0")/../support/command_check.sh"
golden=$(realpath "$(dirname "$0")/../golden")
sluice=$(realpath "$sluice")
lab=$(realpath "$lab")
help=$("$sluice" --help && "$lab" --help) || exit 1
commands=$(awk '/^  [a-z]+ /{print $1}' <<<"$help")
check 'there are commands' yes "$([ "$(wc -w <<<"$commands")" -ge 10 ] && echo yes)"
cd "$work" || exit 1
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >text
printf '10,20,30,40,1\n50,60,70,80,0\n' >pictures.csv
data=(--data text --context 32 --batch 2 --eval-batches 1 --schedule one_ahead)

program_of() { # COMMAND
    case $1 in
    study | overhead | pipeline | kernels | gemm | reading | pictures | tokenize) echo "$lab" ;;
    *) echo "$sluice" ;;
    esac
}

run() { # ARGUMENT...: output in out and err, exit code in $code
    timeout -k 10 100 "$(program_of "$1")" "$@" >out 2>err </dev/null
    code=$?
}

fails() { # WHAT: it ended with an error that names the full disk, once, and not by a signal
    check "$1 fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check "$1: the reason is told" yes "$(grep -q 'No space left on device' err && echo yes)"
}

has() { # command
    grep -qw "$1" <<<"$commands"
}

inputs() { # of `eval`: two sequences of 32 tokens
    python3 -c 'import json, struct
ids = struct.pack("<64q", *range(64))
head = json.dumps({name: {"dtype": "I64", "shape": [2, 32], "data_offsets": [i * 512, i * 512 + 512]}
                   for i, name in enumerate(["input_ids", "labels"])}).encode()
open("inputs", "wb").write(struct.pack("<Q", len(head)) + head + ids + ids)'
}

records() { # for `nccl`: a process that made one communicator and called nothing on it
    mkdir -p records && python3 -c 'import struct
rows, modules, entries = 4096, 4096 + 512 * 256, 4096 + 512 * 256 + 64 * 256
size = entries + 16 * 64
head = b"SLNCCL\x01\x00" + struct.pack("<4I5Q", 1, 4096, 64, 16, rows, modules, entries, 0, size)
head += struct.pack("<qQ2qQ2I", 1, 1, 1, 0, 0, 2, 1)
row = struct.pack("<I3i2Q", 2, 0, 1, 0, 7, 0)
file = open("records/host-1-1.nccl", "wb")
file.write(head.ljust(rows, b"\0") + row.ljust(size - rows, b"\0"))'
}

# A short run of each command.
short() { # command: sets $line, and where they are others $json, its option of a file, and $input
    json=(--json /dev/full)
    input=/dev/null
    case $1 in
    train) line=(train "${data[@]}" --steps 2) ;;
    eval) line=(eval --weights weights --inputs inputs) ;;
    generate) line=(generate --weights weights --prompt a --tokens 4) ;;
    weights) line=(weights checkpoint -o weights.out) json=() ;;
    estimate) line=(estimate -n 2 --data text --context 32 --pace "100gflops,20GB" --effort 0.02) ;;
    bench)
        line=(bench --data text --context 32 --batch 2 --steps 1 --strategy dp --schedule serial --budget none
            --throttle none --output bench.out)
        ;;
    run) line=(run -n 2 -- echo line) json=() ;;
    info) line=(info) json=() ;;
    profile) line=(profile --made gpt2-small --cluster 2xcpu-1gbit -o made.json) json=(-o /dev/full) ;;
    plan) line=(plan --profile profile.json --strategy fsdp --schedule one_ahead) json=(-o /dev/full) ;;
    sim) line=(sim --profile profile.json --plan plan.json) ;;
    check) line=(check --profile profile.json --plan plan.json) ;;
    trace) line=(trace --profile profile.json --plan plan.json -o -) json=(-o /dev/full) ;;
    study) line=(study lossy --count 1 --effort 0.01) ;;
    nccl) line=(nccl records) ;;
    perf) line=(perf --ranks 2 -b 64K -e 64K -n 1) ;;
    overhead) line=(overhead --ranks 2 --layers 2 --layer 64K --slot 100us --rounds 1 --steps 1) ;;
    pipeline) line=(pipeline --micro-batches 2 --forward 1ms --backward 1ms --steps 1) ;;
    kernels) line=(kernels --op gelu_forward --dtype fp32 --size 1MiB --copy 1MiB --rounds 1) ;;
    gemm) line=(gemm --rows 1 --rounds 1 --json /dev/full) json=() ;; # both at once: it takes long
    reading) line=(reading --rounds 1 text) json=() ;;
    pictures) line=(pictures --side 8 --rounds 1 pictures.csv) json=() ;;
    tokenize) line=(tokenize "$golden/tokenizer_bpe") json=() input=texts ;;
    *)
        line=()
        check "$1 has its case here" yes no
        ;;
    esac
}

full_disks() {
    local command program
    for command in $commands; do
        short "$command"
        program=$(program_of "$command")
        timeout -k 10 100 "$program" "${line[@]}" >/dev/full 2>err <"$input"
        code=$?
        fails "$command >/dev/full"
        if [ ${#json[@]} -gt 0 ]; then
            run "${line[@]}" "${json[@]}"
            fails "$command ${json[*]}"
            check "$command names the file" yes "$(grep -q 'cannot write /dev/full' err && echo yes)"
        fi
        timeout -k 10 60 "$program" "$command" --help >/dev/full 2>err
        code=$?
        fails "$command --help >/dev/full"
    done
    for command in train run info perf; do
        has "$command" || continue
        short "$command"
        run "${line[@]}"
        check "$command works" 0 $code
        timeout -k 10 100 "$sluice" "${line[@]}" >&- 2>err </dev/null
        check "$command without a standard output" yes "$([ $? -ne 0 ] && grep -q 'Bad file descriptor' err && echo yes)"
    done
    for program in "$sluice" "$lab"; do
        for command in --help --version; do
            timeout -k 10 60 "$program" $command >/dev/full 2>err
            code=$?
            fails "$(basename "$program") $command >/dev/full"
        done
    done
}

# A file may have 8 KiB: it fails in the middle, as on a disk that fills.
half_written() {
    (trap '' XFSZ && ulimit -f 8 && run sim --profile profile.json --plan plan.json --trace half.json --json sim.json; exit $code)
    check 'a file that is cut is an error' 1 $?
    check 'and the reason is told' 1 "$(grep -c 'cannot write half.json: File too large' err)"
    check 'nothing half done is left' '' "$(find . -name 'half.json*')"
    check 'the other file is there' yes "$([ -s sim.json ] && echo yes)"
}

# Each of several files fails in turn; the others are there.
others_are_written() {
    run sim --profile profile.json --plan plan.json --json /dev/full --trace other.json
    fails 'sim --json'
    check 'sim: the trace is there' yes "$([ -s other.json ] && echo yes)"
    if command -v gnuplot >/dev/null; then
        run trace --profile profile.json --plan plan.json -o /dev/full --picture other.svg
        fails 'trace -o'
        check 'trace: the picture is there' yes "$(tail -c 20 other.svg | grep -q '</svg>' && echo yes)"
        ln -s /dev/full full.png
        run trace --profile profile.json --plan plan.json --picture full.png -o other2.json
        check 'a picture whose path is no file is an error' 2 $code
        check 'it is named' 1 "$(grep -c 'full.png' err)"
        check 'trace: the JSON is there' yes "$([ -s other2.json ] && echo yes)"
        run plan --profile profile.json --strategy fsdp --schedule one_ahead --picture full.png -o other.plan
        check 'plan --picture fails' 2 $code
        check 'plan: the plan is there' yes "$(cmp -s plan.json other.plan && echo yes)"
    fi
    has train || return
    run estimate -n 2 --pace "100gflops,20GB" --effort 0.02 --profile-out /dev/full --plan-out other2.plan --json ok.json
    fails 'estimate --profile-out'
    check 'estimate: the others are there' yes "$([ -s other2.plan ] && [ -s ok.json ] && echo yes)"
    run train "${data[@]}" --steps 3 -n 2 --trace /dev/full --csv ok.csv --json ok.json --save-weights other
    fails 'train --trace'
    check 'train: the error names the trace' 1 "$(grep -c 'cannot write /dev/full' err)"
    check 'train: nothing else failed' 0 "$(grep -v ' warning: ' err | grep -c 'rank 1')"
    check 'train: CSV' 4 "$(wc -l <ok.csv)"
    check 'train: JSON' 1 "$(grep -c '"weights_sha256"' ok.json)"
    check 'train: weights' yes "$([ -s other/model.safetensors ] && echo yes)"
    check 'train: summary' 1 "$(grep -c '^trained gpt2' out)"
    run train "${data[@]}" --steps 100 --csv /dev/full --json ok2.json --trace ok.trace # the disk is full in the middle
    fails 'train --csv'
    check 'it is told when it happens' 1 "$(grep -c 'cannot write /dev/full: .*; the run goes on' err)"
    check 'train goes on without its CSV' yes "$(tr -d ' \n' <ok2.json | grep -q '"interrupted":false' && [ -s ok.trace ] && echo yes)"
    mkdir cut && ln -s /dev/full cut/model.safetensors
    run train "${data[@]}" -n 2 --steps 2 --save-weights cut --overwrite --json ok3.json
    check 'weights that cannot be written are an error' 1 $code
    check 'train: the error names the weights' 1 "$(grep -c 'cannot write cut/model.safetensors' err)"
    check 'train: JSON without weights' 1 "$(grep -c '"weights_sha256"' ok3.json)"
    timeout -k 10 100 "$sluice" train "${data[@]}" --steps 2 --json ok4.json >/dev/full 2>err </dev/null
    check 'train: JSON without a summary' 1 "$(grep -c '"weights_sha256"' ok4.json)"
    run eval --weights weights --inputs inputs --logits /dev/full --gradients ok.gradients --json ok5.json
    check 'logits that cannot be written are an error' yes "$([ $code = 2 ] && grep -q 'cannot write /dev/full' err && echo yes)"
    check 'eval: the others are there' yes "$([ -s ok.gradients ] && [ -s ok5.json ] && echo yes)"
    short bench
    run "${line[@]}" --csv /dev/full --json ok6.json
    fails 'bench --csv'
    check 'bench: the others are there' yes "$([ -s ok6.json ] && [ -s bench.out/results.csv ] && echo yes)"
}

# ---- Readers that leave ----

leaves() { # RANKS: a run whose reader leaves after the first line
    rm -rf saved stop.json
    timeout -k 10 100 "$sluice" train "${data[@]}" -n "$1" --steps 1000000 --save saved --json stop.json 2>&1 </dev/null |
        head -n 1 >out
    check "$1 ranks: exit code" 130 "${PIPESTATUS[0]}"
    check "$1 ranks: saved" 1 "$(find saved -name manifest.json | wc -l)"
    check "$1 ranks: results" 1 "$(grep -c '"interrupted": true' stop.json)"
}

readers() {
    has train || return
    leaves 1
    leaves 2
    # Ctrl-C ends `| tee` too: one stop, not two.
    rm -rf saved
    mkfifo pipe
    "$sluice" train "${data[@]}" -n 2 --steps 1000000 --save saved >pipe 2>&1 </dev/null &
    process=$!
    (read -r; exit) <pipe
    sleep 0.3
    kill -INT $process 2>/dev/null # it may have stopped already
    ends 'Ctrl-C with its reader'
    check 'Ctrl-C with its reader: exit code' 130 $code
    check 'Ctrl-C with its reader: saved' 1 "$(find saved -name manifest.json | wc -l)"
    # Only standard output is closed, and only the summary goes there: results are whole.
    timeout -k 10 100 "$sluice" train "${data[@]}" --steps 2 --json late.json 2>err </dev/null | true
    check 'results of a run whose summary nobody reads' 1 "$(grep -c '"interrupted": false' late.json)"
}

# ---- A terminal that is closed ----

has_begun() {
    grep -q '^step ' out || ended
}

# A closed terminal (SIGHUP) stops the run as SIGTERM does, and what was done is saved; under nohup it changes nothing.
hang_up() {
    has train || return
    local ignored
    for ignored in '' --ignore-signal=HUP; do
        rm -rf saved
        : >out # before the command begins
        env $ignored "$sluice" train "${data[@]}" --steps 1000000 --save saved >>out 2>&1 </dev/null &
        process=$!
        comes_true has_begun
        kill -HUP $process
        if [ "$ignored" ]; then
            sleep 0.2
            kill -TERM $process # a second signal to one that took the first would give up saving
        fi
        ends "SIGHUP $ignored"
        check "SIGHUP $ignored: exit code" 130 $code
        check "SIGHUP $ignored: saved" 1 "$(find saved -name manifest.json | wc -l)"
    done
}

# ---- Files that are read ----

# No command waits for ever for input, and none fills the machine's memory.
strange_files() {
    mkfifo fifo
    truncate -s 1073741825 giant
    local file words option
    for file in fifo giant /dev/zero; do
        words='is not a regular file'
        [ $file != giant ] || words='has 1073741825 bytes, more than the 1073741824'
        for option in "check --profile $file --plan plan.json" "check --profile profile.json --plan $file" \
            "sim --profile profile.json --plan $file" "plan --profile $file"; do
            # shellcheck disable=SC2086
            (ulimit -v 4000000; timeout -k 5 60 "$sluice" $option >out 2>err </dev/null)
            check "$option" 2 $?
            check "$option: why" 1 "$(grep -c "$words" err)"
        done
        # shellcheck disable=SC2086
        timeout -k 5 60 "$sluice" plan --profile profile.json --strategy $file >out 2>err </dev/null
        check "--strategy $file" 2 $?
        has train || continue
        mkdir -p strange
        rm -f strange/*
        ln -s "$(realpath -s $file)" strange/config.json
        run eval --weights strange --inputs inputs
        check "config.json is $file" yes "$([ $code = 2 ] && grep -q "$words" err && echo yes)"
        rm strange/config.json
        cp weights/config.json strange
        ln -s "$(realpath -s $file)" strange/model.safetensors.index.json
        run eval --weights strange --inputs inputs
        check "the index is $file" yes "$([ $code = 2 ] && grep -q "$words" err && echo yes)"
    done
}

printf '5\na text' >texts
run profile --made gpt2-small --cluster 2xcpu-1gbit -o profile.json
run plan --profile profile.json --strategy fsdp --schedule one_ahead -o plan.json
check 'a plan' 0 $code
if has train; then
    run train "${data[@]}" --steps 1 --save-weights weights --save checkpoint
    inputs
    records
fi
for part in full_disks half_written others_are_written readers hang_up strange_files; do $part; done
[ $failed = 0 ] && echo "output: all as promised"
exit $failed
