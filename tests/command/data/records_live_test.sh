#!/usr/bin/env bash
# Records, from a file to a classifier: the commands of docs/classify-text.md as the page has them; classes keep their
# names and their numbers; ranks that read different files are found; epochs are steps; headless tokens are read.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
page=$(realpath "$(dirname "$0")/../../../docs/classify-text.md")
sluice=$(realpath "$sluice")
PATH=$(dirname "$sluice"):$PATH
cd "$work" || exit 1

train() { # OPTION...
    timeout 100 "$sluice" train --schedule one_ahead "$@" >out 2>err </dev/null
    code=$?
}

the_page() {
    python3 - "$page" >commands <<'PY'
import re, sys
blocks = re.findall(r"^```\n(.*?)^```$", open(sys.argv[1]).read(), re.M | re.S)
print("set -e\n" + "\n".join(blocks).replace("--epochs 4", "--epochs 2"))
PY
    timeout 200 bash commands >out 2>err </dev/null
    check 'the commands of the page' 0 $?
    check 'a classifier is learned' yes "$(python3 -c '
import re
print("yes" if float(re.search(r"accuracy ([\d.]+)", open("out").read().split("examples")[-1])[1]) > 80 else "no")')"
    check 'classes keep their names' bad,good "$(python3 -c '
import json
names = json.load(open("classifier/config.json"))["id2label"]
print(names["0"] + "," + names["1"])')"
}

names_are_kept() {
    sed 's/"good"/"kept"/' reviews.jsonl >other.jsonl
    train --weights classifier --head classes --data reviews.jsonl --steps 1 --batch 2 --context 32 --eval-batches 0
    check 'weights go on with their classes' 0 $code
    check 'no part of the model is new' '' "$(grep '^new ' out)"
    timeout 100 "$sluice" eval --weights classifier --data other.jsonl --context 32 >out 2>err </dev/null
    check 'labels that weights do not have are refused' 2 $?
}

files_are_classes() {
    mkdir texts
    seq 1 400 >texts/numbers.txt
    head -60 reviews.jsonl | cut -c 10-50 >texts/words.txt
    train --model bert --size nano --head classes --data texts --data-type text --steps 1 --context 16 --eval-batches 0 \
        --save-weights of_files
    check 'files are classes' 0 $code
    check 'and name them' numbers.txt,words.txt "$(python3 -c '
import json
names = json.load(open("of_files/config.json"))["id2label"]
print(names["0"] + "," + names["1"])')"
}

epochs_are_steps() {
    head -40 reviews.jsonl >forty.jsonl
    train --size nano --data forty.jsonl --sequences documents --epochs 1.5 --batch 4 --context 32 --json run.json \
        --first-batch batches.json --first-batches 3
    check '36 records in steps of 4 make 14 steps of 1.5 passes' 0 $code
    check 'that many losses' 14 "$(python3 -c 'import json; print(len(json.load(open("run.json"))["runs"][0]["losses"]))')"
    check 'three steps are written' 3 "$(python3 -c 'import json; print(len(json.load(open("batches.json"))["steps"]))')"
    train -n 2 --size nano --data forty.jsonl --sequences documents --steps 9 --batch 2 --context 32 --json two.json \
        --first-batch split.json --first-batches 3
    check 'two ranks' 0 $code
    check 'a step is the same however it is split' yes "$(python3 -c '
import json
flat = lambda name: [[t for t in row if t] for s in json.load(open(name))["steps"] for row in s["input_ids"]]
print("yes" if flat("batches.json") == flat("split.json") else "no")')"
}

different_files_are_found() {
    head -39 reviews.jsonl >first.jsonl
    tail -39 reviews.jsonl >second.jsonl
    # shellcheck disable=SC2016 # the ranks' shell expands it
    timeout 100 "$sluice" run -n 2 -- sh -c 'if [ "$RANK" = 0 ]; then set -- first; else set -- second; fi
        exec '"$sluice"' train --size nano --data $1.jsonl --sequences documents --steps 2 --context 32' >out 2>err </dev/null
    check 'other records on another rank are refused' 2 $?
    check 'by the name of the option' yes "$(grep -q 'another --data than rank 0' err && echo yes)"
}

tokens_without_a_header() {
    python3 -c '
import struct
open("train.bin", "wb").write(struct.pack("<6000H", *(300 + n * n % 90 for n in range(6000))))
open("val.bin", "wb").write(struct.pack("<900H", *(300 + n * n % 90 for n in range(900))))'
    train --size nano --data train.bin --eval-data val.bin --data-type uint16 --steps 4 --context 32 --json run.json
    check 'tokens of two bytes' 0 $code
    check 'all of the file is trained on' '6000 900' "$(python3 -c '
import json
data = json.load(open("run.json"))["runs"][0]["data"]
print(data["train"], data["held_out"])')"
}

the_page
names_are_kept
files_are_classes
epochs_are_steps
different_files_are_found
tokens_without_a_header
[ $failed = 0 ] && echo 'records: all as promised'
exit $failed
