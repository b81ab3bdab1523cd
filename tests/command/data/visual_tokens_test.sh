#!/usr/bin/env bash
# BEiT's visual tokens and positions: a codebook is saved beside the weights, from where eval and later runs take it; a
# codebook or tokens of a file train as the codebook that they are of; wrong files are refused by what is wrong. Blocks
# share a table of positions or have their own, which begin as copies of a shared one.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
sluice=$(realpath "$sluice")
cd "$work" || exit 1

cat >make.py <<'PY'
"""Images of 16 x 16 pixels in two folders, and files with codebooks and tokens."""
import json, os, random, struct, sys

def images():
    random.seed(3)
    return {(name, i): bytes(random.randrange(256) for _ in range(256)) for name in ("a", "b") for i in range(12)}

def read(path):
    data = open(path, "rb").read()
    size = struct.unpack_from("<Q", data)[0]
    head = json.loads(data[8:8 + size])
    return {name: (t["shape"], t["dtype"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in head.items() if name != "__metadata__"}

def write(path, name, shape, values):
    data = struct.pack(f"<{len(values)}i", *values)
    head = json.dumps({name: {"dtype": "I32", "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    open(path, "wb").write(struct.pack("<Q", len(head)) + head + data)

def tokens(path):
    """Of each image's patches of 4 x 4 pixels the nearest code."""
    shape, _, raw = read(path)["codebook"]
    codes = [struct.unpack_from(f"<{shape[1]}f", raw, 4 * shape[1] * k) for k in range(shape[0])]
    found = []
    for (name, i), image in sorted(images().items(), key=lambda kv: (kv[0][0], str(kv[0][1]) + ".pgm")):
        for patch in range(16):
            at = [image[16 * (patch // 4 * 4 + y) + patch % 4 * 4 + x] / 255 * 2 - 1 for y in range(4) for x in range(4)]
            far = [sum((p - c) ** 2 for p, c in zip(at, code)) for code in codes]
            found.append(far.index(min(far)))
    return found

if sys.argv[1] == "images":
    for (name, i), image in images().items():
        os.makedirs(f"images/{name}", exist_ok=True)
        open(f"images/{name}/{i}.pgm", "wb").write(b"P5 16 16 255\n" + image)
elif sys.argv[1] == "tokens":
    found = tokens(sys.argv[2])
    write("tokens.safetensors", "tokens", [24, 16], found)
    write("few.safetensors", "tokens", [23, 16], found[:23 * 16])
    write("beyond.safetensors", "tokens", [24, 16], found[:-1] + [64])
    write("nothing.safetensors", "other", [1], [1])
elif sys.argv[1] == "copies":  # how many tables of the second file are the shared one of the first
    shared = [t for name, t in read(sys.argv[2]).items() if "relative_position_bias_table" in name]
    own = [t for name, t in read(sys.argv[3]).items() if "relative_position_bias_table" in name]
    print(len(shared), len(own), sum(t == shared[0] for t in own), any(shared[0][2]))
PY
python3 make.py images

run() { # COMMAND OPTION...: output in out and err, exit code in $code
    timeout 100 "$sluice" "$@" >out 2>err </dev/null
    code=$?
}

train() { # OPTION...
    run train --model beit --size nano --head tokens --data images --schedule one_ahead --steps 3 --eval-batches 1 \
        --lr 0.01 --json run.json "$@"
}

weights_of() { # OPTION...: what a run ends with
    train "$@"
    [ $code = 0 ] || { echo "exit code $code: $(tail -n 1 err)"; return; }
    sed -n 's/.*"weights_sha256": \("[0-9a-f]*"\).*/\1/p' run.json
}

refuses() { # WORDS COMMAND OPTION...
    local words=$1
    shift
    run "$@" --json refused.json
    check "$*" '2 yes' "$code $(grep -qF -- "$words" err && echo yes)"
}

files() {
    local whole
    whole=$(weights_of --save-weights made --save kept)
    check 'a BEiT trains on a codebook of its images' 66 ${#whole}
    check 'which lies beside its weights' yes "$([ -s made/visual_tokens.safetensors ] && echo yes)"
    run weights kept -o again
    check 'and beside those of its checkpoint' yes "$(cmp -s made/visual_tokens.safetensors again/visual_tokens.safetensors && echo yes)"
    check 'a file is the codebook that it has' "$whole" "$(weights_of --visual-tokens made/visual_tokens.safetensors)"
    python3 make.py tokens made/visual_tokens.safetensors
    check 'and so are its tokens' "$whole" "$(weights_of --visual-tokens tokens.safetensors)"
    check 'on two ranks too' "$(weights_of -n 2)" "$(weights_of -n 2 --visual-tokens tokens.safetensors)"
    run eval --weights made --data images --json eval.json
    check 'eval takes it' '0 1' "$code $(grep -c 'tokens masked: masked loss' out)"
    local loss
    loss=$(grep -o '"loss": [0-9.]*' eval.json)
    run eval --weights made --data images --visual-tokens tokens.safetensors --json eval.json
    check 'and gives the same loss with tokens of a file' "$loss" "$(grep -o '"loss": [0-9.]*' eval.json)"
}

refusals() {
    local eval=(eval --weights made --data images)
    refuses '"tokens" has shape [23, 16], and there are 24 images of 16 patches' "${eval[@]}" --visual-tokens few.safetensors
    refuses '"tokens" has the token 64, and the model answers with 64' "${eval[@]}" --visual-tokens beyond.safetensors
    refuses 'no tensor "tokens", and no "codebook"' "${eval[@]}" --visual-tokens nothing.safetensors
    refuses 'nowhere.safetensors' "${eval[@]}" --visual-tokens nowhere.safetensors
    refuses 'only a beit with --head tokens' train --model vit --data images --visual-tokens tokens.safetensors
    refuses 'only a beit with --head tokens' train --model gpt2 --visual-tokens tokens.safetensors
    cp -r made bare
    rm bare/visual_tokens.safetensors
    refuses 'bare: it has no visual_tokens.safetensors' eval --weights bare --data images
    run train --weights made --data images --schedule one_ahead --steps 1 --eval-batches 0 --save other
    run train --resume other --data images --schedule one_ahead --steps 2 --eval-batches 0 --visual-tokens tokens.safetensors
    check 'a run goes on with the tokens that it had' '2 1' "$code $(grep -c 'it was trained on images with other' err)"
}

positions() {
    check 'with tokens blocks share a table' 1 "$(grep -c '"use_shared_relative_position_bias": true' made/config.json)"
    local tune=(train --weights made --data images --schedule one_ahead --steps 1 --eval-batches 0 --head classes --lr 0)
    run "${tune[@]}" --save-weights shared
    check 'weights keep it' '0 1' "$code $(grep -c '"use_shared_relative_position_bias": true' shared/config.json)"
    run "${tune[@]}" --positions own --save-weights own
    check 'or each block begins with a copy' '0 1 4 4 True' \
        "$code $(python3 make.py copies made/model.safetensors own/model.safetensors)"
    check 'and its configuration says so' 1 "$(grep -c '"use_relative_position_bias": true' own/config.json)"
    refuses 'each block of own has a table of its own' train --weights own --data images --positions shared
    refuses '--positions own: nano has no relative positions' train --model vit --data images --positions own
    refuses 'unknown; use own,shared' train --model beit --data images --positions other
    train --positions own --save-weights apart
    check 'a new one with tokens may have its own' 1 "$(grep -c '"use_relative_position_bias": true' apart/config.json)"
}

files
refusals
positions
exit $failed
