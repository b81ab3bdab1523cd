#!/usr/bin/env bash
# Weights go on with another head: at a learning rate of 0 every tensor that the file and the model share keeps the file's
# bits, and the start names what is new. BERT from tokens to classes and from 3 classes to 2, ViT and BEiT with another
# number of classes, and a trunk without a head.
# shellcheck source=../../support/command_check.sh
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
sluice=$(realpath "$sluice")
cd "$work" || exit 1

run() { # COMMAND OPTION...: output in out and err, exit code in $code
    timeout 100 "$sluice" "$@" >out 2>err </dev/null
    code=$?
}

train() { # OPTION...
    run train --batch 2 --eval-batches 0 --schedule one_ahead "$@"
    check "train $*" 0 $code
}

cat >tensors.py <<'PY'
"""Files of weights without any library: tensors.py pretrained|trunk FROM TO, tensors.py differ FROM TO."""
import json, os, struct, sys


def read(folder):
    with open(folder + "/model.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {name: (row["dtype"], row["shape"], data[slice(*row["data_offsets"])])
            for name, row in header.items() if name != "__metadata__"}


def write(folder, tensors, config):
    os.mkdir(folder)
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    open(folder + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
    json.dump(config, open(folder + "/config.json", "w"))


def pretrained(tensors, config):
    """As the first BERT: with a pooler, a second head, copies of what the heads share, a buffer and old names."""
    dense = "bert.encoder.layer.0.attention.output.dense."
    for name in ("weight", "bias"):
        tensors["bert.pooler.dense." + name] = tensors["cls.seq_relationship." + name] = tensors[dense + name]
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"]
    tensors["bert.embeddings.position_ids"] = ("I64", [1, 2], struct.pack("<2q", 0, 1))
    config.update(architectures=["BertForPreTraining"], model_max_length=10**30)
    return tensors, config


def trunk(tensors, config):
    tensors = {name.removeprefix("vit."): tensor for name, tensor in tensors.items() if name[:10] != "classifier"}
    return tensors, dict(config, architectures=["ViTModel"], rope_scale=10**25)


what, before, after = sys.argv[1:]
tensors = read(before)
if what == "differ":
    print(*sorted(name for name, tensor in read(after).items()
                  if tensor not in (tensors.get(name), tensors.get(name.removeprefix("vit.")))))
else:
    config = json.load(open(before + "/config.json"))
    write(after, *(pretrained if what == "pretrained" else trunk)(tensors, config))
PY

# WHAT FROM NEW OPTION...: NEW are the names of what is new, with spaces between, in the order of the model
goes_on() {
    local what=$1 from=$2 new=$3
    shift 3
    rm -rf tuned
    train --weights "$from" --lr 0 --steps 2 --save-weights tuned "$@"
    check "$what: the start names what is new" "${new// /, }" "$(sed -n 's/^new  *\(.*\): .* lacks them, or .*/\1/p' out)"
    check "$what: all else has the bits of the file" "$(tr ' ' '\n' <<<"$new" | sort | xargs)" \
        "$(python3 tensors.py differ "$from" tuned)"
}

for name in one two three; do seq 1 400 | sed "s/.*/& bottles of $name on the wall,/" >$name; done
for count in 2 3 5; do
    for class in $(seq $count); do
        mkdir -p "images$count/$class of $count"
        for image in 1 2 3 4 5 6; do
            { printf 'P5 16 16 255\n' && seq $((class * image)) 500 | tr -d '\n' | head -c 256; } >"images$count/$class of $count/$image.pgm"
        done
    done
done
classifier='classifier.weight classifier.bias'

train --model bert --context 24 --data one --steps 1 --save-weights bert
python3 tensors.py pretrained bert pretrained
goes_on 'BERT, tokens to 3 classes' pretrained "$classifier" -n 2 --context 24 --head classes --data one,two,three
mv tuned three_classes
goes_on 'BERT, 3 classes to 2' three_classes "$classifier" --context 24 --data one,two
goes_on 'BERT, tokens' pretrained '' --context 24 --data one
goes_on 'BERT without a pooler, tokens to classes' bert "bert.pooler.dense.weight bert.pooler.dense.bias $classifier" \
    --context 24 --head classes --data one,two --strategy fsdp

for family in vit beit; do
    train --model $family --data images3 --steps 1 --save-weights $family
    goes_on "$family, 3 classes to 5" $family "$classifier" --data images5
    goes_on "$family, 3 classes to 2" $family "$classifier" --data images2
    goes_on "$family, 3 classes" $family '' --data images3
done

python3 tensors.py trunk vit bare
goes_on 'a trunk of ViT' bare "$classifier" --data images3
run eval --weights bare --data images3
check 'a trunk is not evaluated' yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && grep -q '"classifier.weight" is missing' err && echo yes)"
exit $failed
