#!/usr/bin/env bash
# Folders of images go all the way: `sluice train` says images a second and accuracy, in its lines and in its files; the
# accuracy is the one that the loss of the same evaluation has; the export says what its classes and pixels are, and
# `sluice eval --data` reads it; folders that the weights do not name, damaged files, and a run that goes on with other
# pixels are refused.
# Labels: sanitized
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
PYTHONPATH=$(realpath "$(dirname "$0")")
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
sluice=$(realpath "$sluice")
lab=$(realpath "$lab")
cd "$work" || exit 1

run() { # COMMAND OPTION...: output in out and err, exit code in $code
    local planned=()
    [ "$1" != train ] || planned=(--schedule one_ahead)
    timeout 100 "$sluice" "$@" "${planned[@]}" >out 2>err </dev/null
    code=$?
}

refuses() { # words of the message, then COMMAND OPTION...
    local words=$1
    shift
    run "$@"
    check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check "$* says why" yes "$(grep -qF -- "$words" err && echo yes)"
}

value() { # FILE KEY: of the only run in a report of train
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["runs"][0][sys.argv[2]])' "$@"
}

field() { # FILE KEY: of a report of eval
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"
}

python3 - <<'PY'
import os, random
from make_images import jpeg, png
random.seed(5)
for name, low, high in (("ash", 10, 70), ("birch", 190, 250), ("cédre", 100, 150)):
    os.makedirs("trees/" + name)
    for i in range(20):
        wide, high_ = random.randint(3, 40), random.randint(3, 40)
        if i % 2:
            jpeg(f"trees/{name}/{i}.jpg", [[random.randint(low, high) for _ in range(3)] for _ in range(4)])
        else:
            channels = 1 + i % 4
            png(f"trees/{name}/{i}.png", [[random.randint(low, high) for _ in range(channels * wide)]
                                          for _ in range(high_)], channels)
for name, count in (("few", 10), ("many", 30)):
    os.makedirs("alike/" + name)
    for i in range(count):
        png(f"alike/{name}/{i}.png", [[100] * 16] * 16, 1)
PY
echo notes >trees/birch/notes.txt
echo notes >trees/README

whole_way() {
    run train --model vit --size nano --data trees --steps 60 --lr 0.001 --warmup 10 --eval-every 20 --eval-batches 2 \
        --save-weights export --json t.json --csv t.csv
    check 'PNG and JPEG are trained on' 0 $code
    check 'one warning names the file that is no image' 1 "$(grep -c 'passed over; the first is trees/birch/notes.txt' err)"
    check 'the start counts images' yes "$(grep -q ': 54 images to train on, 6 held out$' out && echo yes)"
    check 'the summary has accuracy' yes "$(grep -Eq 'held-out [0-9.]+, accuracy [0-9.]+ %$' out && echo yes)"
    check 'and images a second' yes "$(grep -Eq '^time .*, [0-9]+ images/s$' out && echo yes)"
    check 'lines of progress have both' yes \
        "$(grep -Eq 'held-out [0-9.]+, accuracy [0-9.]+ %  pass [0-9.]+  [0-9]+ images/s ' err && echo yes)"
    check 'nothing counts tokens' '' "$(grep -h 'tokens/s' out err)"
    check 'the report agrees' "$(python3 -c '
import json
r = json.load(open("t.json"))["runs"][0]
print("held-out %.4f, accuracy %.2f %%" % (r["evaluation_loss"], 100 * r["evaluation_accuracy"]))')" \
        "$(grep -Eo 'held-out [0-9.]+, accuracy [0-9.]+ %' out)"
    check 'images a second are those of the steps' yes "$(python3 -c '
import json
r = json.load(open("t.json"))["runs"][0]
print("yes" if abs(r["images_per_s"] * r["step_s"] - 4) < 1e-9 and r["tokens_per_s"] > 4 * r["images_per_s"] else r)')"
    check 'the metrics have a column of it, after two of the steps' '20 40' "$(python3 -c '
import csv
rows = list(csv.DictReader(open("t.csv")))
print(*(r["step"] for r in rows if r["evaluation_accuracy"] and 0 <= float(r["evaluation_accuracy"]) <= 1))')"
    check 'what was learned is right' yes "$(python3 -c "print('yes' if $(value t.json evaluation_accuracy) > .9 else 'no')")"

    check 'the export names its classes' "{'0': 'ash', '1': 'birch', '2': 'cédre'}" "$(field export/config.json id2label)"
    check 'and says what its pixels are' 'ViTImageProcessor [0.5] 16' "$(python3 -c '
import json
p = json.load(open("export/preprocessor_config.json"))
print(p["image_processor_type"], p["image_mean"], p["size"]["height"])')"
    run eval --weights export --data trees --json e.json
    check 'eval reads the export' 0 $code
    check 'all images count' '60 60' "$(field e.json images) $(field e.json answers)"
    check 'and are right' yes "$(python3 -c "print('yes' if $(field e.json accuracy) > .9 else 'no')")"
    check 'the laboratory reads them too' yes "$("$lab" pictures --side 16 --threads 2 --rounds 1 trees |
        grep -Eq '^trees: 60 pictures to 16 x 16 by 2 threads: [0-9.]+ a second' && echo yes)"
    check 'eval warns too' 1 "$(grep -c 'passed over; the first is trees/birch/notes.txt' err)"
}

folders_and_classes() {
    local accuracy
    accuracy=$(field e.json accuracy)
    mkdir some other nameless
    cp -r trees/birch trees/cédre some
    run eval --weights export --data some --json e.json
    check 'folders of some of the classes have their numbers' '0 40 yes' \
        "$code $(field e.json images) $(python3 -c "print('yes' if $(field e.json accuracy) > .8 else 'no')")"
    cp -r trees/birch other
    cp -r trees/ash other/oak
    cp -r trees/cédre other/pine
    refuses 'the folder "oak" is none of the classes that export answers with ("ash" and others)' \
        eval --weights export --data other
    run train --weights export --data other --steps 2 --eval-batches 0 --save-weights others
    check 'training takes them as classes of its own' 0 $code
    check 'and the export says so' "{'0': 'birch', '1': 'oak', '2': 'pine'}" "$(field others/config.json id2label)"
    cp export/* nameless
    python3 - <<'PY'
import json
c = json.load(open("nameless/config.json"))
c["id2label"] = {str(i): f"LABEL_{i}" for i in range(3)}
c["label2id"] = {f"LABEL_{i}": i for i in range(3)}
json.dump(c, open("nameless/config.json", "w"))
PY
    run eval --weights nameless --data trees --json e.json
    check 'without names folders count in their order' "0 $accuracy" "$code $(field e.json accuracy)"
    refuses 'folders of 2 classes, and nameless answers with 3' eval --weights nameless --data some
    refuses 'damaged PNG' train --model vit --size nano --steps 200 --data damaged
    check 'and names the file' yes "$(grep -q 'damaged/birch/0.png' err && echo yes)"
}

tables_are_counted() {
    python3 - <<'PY'
import struct
for name, count in (("small", 30), ("large", 3000)):
    open(f"{name}-images-idx3-ubyte", "wb").write(struct.pack(">IIII", 0x803, count, 28, 28) + bytes(count * 784))
    open(f"{name}-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, count) + bytes(i % 3 for i in range(count)))
PY
    run eval --weights export --data small-images-idx3-ubyte --json small.json
    check 'a table of images' '0 30' "$code $(field small.json answers)"
    run eval --weights export --data large-images-idx3-ubyte --json large.json
    check 'a larger one' '0 3000' "$code $(field large.json answers)"
    check 'the budget counts what it keeps in memory' yes \
        "$([ $(($(field large.json planned_bytes) - $(field small.json planned_bytes))) -ge $((2970 * 784)) ] && echo yes)"
}

# All images are alike, so the logits are too, and the loss of the held-out ones says how many have which class.
accuracy_by_loss() {
    local common=(train --model vit --size nano --data alike --steps 6 --lr 0.003 --eval-batches 1)
    run "${common[@]}" --batch 4 --save-weights alike.weights --json a.json
    check 'images that are alike' 0 $code
    python3 - <<'PY'
import json, struct
header = json.dumps({"pixel_values": {"dtype": "F32", "shape": [1, 1, 16, 16], "data_offsets": [0, 1024]}}).encode()
pixels = struct.pack("<256f", *[(100 / 255 - .5) / .5] * 256)
open("inputs", "wb").write(struct.pack("<Q", len(header)) + header + pixels)
PY
    run eval --weights alike.weights --inputs inputs --logits logits
    check 'their logits' 0 $code
    check 'the accuracy is that of the loss' yes "$(python3 - <<'PY'
import json, math, struct
data = open("logits", "rb").read()
a, b = struct.unpack("<2f", data[-8:])
r = json.load(open("a.json"))["runs"][0]
top = max(a, b) + math.log(1 + math.exp(-abs(a - b)))  # of the softmax's denominator
for few in range(5):
    loss = top - (few * a + (4 - few) * b) / 4
    if abs(loss - r["evaluation_loss"]) < 1e-4 and abs(a - b) > 1e-2:
        right = (few if a > b else 4 - few) / 4
        print("yes" if right == r["evaluation_accuracy"] else (few, a, b, r["evaluation_accuracy"]))
        break
else:
    print("no count of classes has the loss", r["evaluation_loss"], a, b)
PY
)"
    run "${common[@]}" --batch 2 -n 2 --json b.json
    check 'two ranks evaluate the same images' "0 $(value a.json evaluation_accuracy)" "$code $(value b.json evaluation_accuracy)"
}

goes_on() {
    mkdir begun
    cp export/* begun
    python3 - <<'PY'
import json
p = json.load(open("begun/preprocessor_config.json"))
p.update(image_mean=[0.4], image_std=[0.3], resample=3)
json.dump(p, open("begun/preprocessor_config.json", "w"))
c = json.load(open("begun/config.json"))
c["id2label"] = {"0": "cédre", "1": "ash", "2": "birch"}
json.dump(c, open("begun/config.json", "w"))
PY
    local common=(train --data trees --eval-batches 0)
    run "${common[@]}" --weights begun --steps 6 --json whole.json
    check 'weights with pixels and an order of their own' 0 $code
    run "${common[@]}" --weights begun --steps 3 --save run
    check 'are saved' 0 $code
    refuses 'trained on images with other classes, or that became other pixels; give' "${common[@]}" --steps 6 --resume run
    refuses '--image-draft as before' "${common[@]}" --weights begun --steps 6 --resume run --image-draft
    run "${common[@]}" --weights begun --steps 6 --resume run --json resumed.json --save-weights gone_on
    check 'and go on with them' "0 $(value whole.json weights_sha256)" "$code $(value resumed.json weights_sha256)"
    check 'with nothing to warn of but the file' 1 "$(grep -c warning err)"
    check 'the export has their pixels' '[0.4' "$(field gone_on/preprocessor_config.json image_mean | cut -c1-4)"
    check 'and their order' "{'0': 'cédre', '1': 'ash', '2': 'birch'}" "$(field gone_on/config.json id2label)"
    timeout 60 "$sluice" weights run -o of_run >out 2>err </dev/null
    check 'weights of a checkpoint' 0 $?
    check 'say the same of pixels' yes "$(cmp -s gone_on/preprocessor_config.json of_run/preprocessor_config.json && echo yes)"
    check 'and of classes' "$(field gone_on/config.json id2label)" "$(field of_run/config.json id2label)"
}

# A folder of parts is trained on by one and evaluated by the other, whatever a tenth would be.
parts() {
    local second
    for second in val test; do
        mkdir -p "with_$second/train" "with_$second/$second"
        cp -r trees/ash trees/birch trees/cédre "with_$second/train"
        cp -r trees/cédre trees/ash "with_$second/$second"
        rm "with_$second/$second/ash"/1?.*
        run train --model vit --size nano --data "with_$second" --steps 1 --eval-batches 9 --json parts.json --save-weights parts.weights
        check "train/ and $second/" 0 $code
        check "train/ and $second/: what is trained on and what is held out" '60 30' "$(python3 -c '
import json
data = json.load(open("parts.json"))["runs"][0]["data"]
print(data["train"], data["held_out"])')"
        check 'all classes have their names' 3 "$(field parts.weights/config.json id2label | grep -o "': '" | wc -l)"
        run eval --weights parts.weights --data "with_$second" --json e.json
        check "eval takes $second/ alone" '0 30' "$code $(field e.json images)"
        rm -r parts.weights
    done
    cp -r trees/ash with_val/val/oak
    refuses '--eval-data: has images of classes that --data does not have' train --model vit --size nano --data with_val --steps 1
    run train --model vit --size nano --data with_val --eval-data with_test/test --steps 1 --eval-batches 1 --json parts.json
    check '--eval-data comes before the second part' '0 30' \
        "$code $(python3 -c 'import json; print(json.load(open("parts.json"))["runs"][0]["data"]["held_out"])')"
    mkdir classes
    cp -r trees/ash classes/train
    cp -r trees/birch classes/val
    run train --model vit --size nano --data classes --steps 1 --eval-batches 0 --save-weights parts.weights
    check 'folders of images that are called so are classes' "0 {'0': 'train', '1': 'val'}" \
        "$code $(field parts.weights/config.json id2label)"
}

text_has_neither() {
    refuses '--image-draft: gpt2 sees no images' train --size nano --steps 2 --image-draft
    seq 1 3000 | sed 's/.*/& bottles/' >text
    run train --size nano --data text --context 16 --steps 8 --json text.json
    check 'text has neither accuracy nor images' '0 None None' \
        "$code $(value text.json evaluation_accuracy) $(value text.json images_per_s)"
    check 'but tokens' yes "$(grep -Eq '^time .*, [0-9]+ tokens/s$' out && echo yes)"
    seq 1 3000 | sed 's/.*/& barrels/' >barrels
    run train --model bert --head classes --size nano --data text,barrels --context 16 --steps 2 --json text.json
    check 'classes of text have accuracy' yes "$(python3 -c '
import json
a = json.load(open("text.json"))["runs"][0]["evaluation_accuracy"]
print("yes" if 0 <= a <= 1 else a)')"
}

# A path that is wrong from the start is a mistake (2); a file that vanishes while the command works is a failure (1).
what_vanishes() {
    cp -r trees leaving
    begin out err "$sluice" train --model vit --size nano --data leaving --steps 1000000 --eval-batches 0 \
        --schedule one_ahead
    check 'training begins' yes "$(comes_true said_or_ended '^step 1/' err && echo yes)"
    mv leaving gone
    ends 'training on images that vanish'
    check 'images that vanish end the run as failed' 1 $code
    check 'and the message names one' yes \
        "$(grep -Eq '^sluice train: cannot read leaving/.*: No such file or directory$' err && echo yes)"
    run train --model vit --size nano --data leaving --steps 1
    check 'images that were never there are a mistake' 2 $code
}

cp -r trees damaged
head -c 60 trees/birch/0.png >damaged/birch/0.png
whole_way
folders_and_classes
tables_are_counted
accuracy_by_loss
goes_on
parts
text_has_neither
what_vanishes
[ $failed = 0 ] && echo "images: all as promised"
exit $failed
