#!/usr/bin/env bash
# The whole of tests.several_gpus_test: 2, 3 and 4 ranks under every strategy in fp32 and bf16, the four models, what steps
# may do besides, recipes, drawn orders and delays, NCCL's own sums, and checkpoints that change ranks and device.
# Labels: all_only
. "$(dirname "$0")/../../support/command_check.sh"
. "$(dirname "$0")/../../support/gpu/several_gpus.sh"
. "$(dirname "$0")/../../support/short_recipes.sh"

worlds() {
    local ranks
    for ranks in 2 3 4; do
        equal_strategies $ranks fp32 1e-4
        equal_strategies $ranks bf16 1e-2
    done
    strategies=(auto fsdp)
    equal_strategies 2 fp32 1e-4 --schedule "$(default_schedule)" --steps 8
}

settings() {
    strategies=(dp fsdp)
    equal_strategies 2 fp32 1e-4 --clip 0.5
    equal_strategies 3 fp32 1e-4 --optimizer lamb
    equal_strategies 2 fp32 1e-4 --nan skip --optimizer lamb
    equal_strategies 2 bf16 1e-2 --micro-batches 3 --accumulate each
    equal_strategies 2 fp32 1e-4 --micro-batches 2
    equal_strategies 4 fp32 1e-4 --recompute all --schedule greedy
    equal_strategies 2 bf16 1e-2 --wire fp32 --block 4096 --schedule priority
}

models() {
    local model
    strategies=(dp fsdp)
    equal_strategies 2 fp32 1e-4 --model bert
    local kept=("${data[@]}")
    data=() # images come with scikit-learn
    for model in vit beit; do equal_strategies 2 fp32 1e-4 --model "$model"; done
    data=("${kept[@]}")
}

recipes() { # layers left out, lengths and batches that grow, documents; each strategy twice, with other orders
    strategies=(dp oss sdp fsdp dp oss sdp fsdp)
    follows_recipe "${drops[@]}" --steps 8
    follows_recipe "${grow[@]}"
    follows_recipe --curriculum '8@2,32' --curriculum-batch tokens
    follows_recipe "${drops[@]}" "${grow[@]}" --dropout 0.1 --drop-path 0.3 --clip 0.5
    follows_documents "${drops[@]}" --steps 8
    strategies=(dp fsdp dp fsdp)
    follows_recipe --model bert --norm before "${drops[@]}" "${grow[@]}"
    local kept=("${data[@]}")
    data=() # images come with scikit-learn
    follows_recipe --model vit "${drops[@]}" --drop-path 0.2
    follows_recipe --model beit --positions shared "${drops[@]}" --micro-batches 2
    data=("${kept[@]}")
}

orders() { # other orders of threads, blocks, streams and ranks change no bit
    local hashes=''
    for _ in 1 2 3 4 5 6 7 8; do
        skewed_gpus 2 --strategy fsdp --clip 1 --dropout 0.1 --steps 6
        check 'drawn delays' 0 $code
        hashes+=$(hash_of "$work/cuda.json")$'\n'
    done
    check 'all seeds give the same weights' 1 "$(printf '%s' "$hashes" | sort -u | wc -l)"
}

# PRECISION MOST FOLDER...: each weight in the folders is at most so far from the first one's. In fp32 the key's bias is left
# out: the same number added to all keys changes no attention, so its gradient is 0 but for roundings, and Adam divides that
# by its own size.
weights_agree() {
    check "weights with sums of NCCL, $1" yes "$(python3 - "$@" <<'PY' 2>"$work/err"
import json, struct, sys
def weights(folder):
    data = open(folder + "/model.safetensors", "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header, out = json.loads(data[8:8 + length]), {}
    for name, of in header.items():
        if name == "__metadata__": continue
        begin, end = of["data_offsets"]
        raw = data[8 + length + begin:8 + length + end]
        if of["dtype"] == "BF16":
            raw = b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2))
        out[name] = struct.unpack("<%df" % (len(raw) // 4), raw)
    return out
def is_key(name, i, count):
    return precision == "fp32" and name.endswith("attn.c_attn.bias") and count // 3 <= i < count // 3 * 2
precision, most, folders = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
first, apart, of_keys = weights(folders[0]), 0, 0
for folder in folders[1:]:
    other = weights(folder)
    assert other.keys() == first.keys()
    for name in first:
        for i, (a, b) in enumerate(zip(first[name], other[name])):
            if is_key(name, i, len(first[name])):
                of_keys = max(of_keys, abs(a - b))
            else:
                apart = max(apart, abs(a - b))
print("apart by %.2g, the key's bias by %.2g" % (apart, of_keys), file=sys.stderr)
print("yes" if any(map(any, first.values())) and apart <= most else "no: %g" % apart)
PY
)"
    sed "s/^/$1: /" "$work/err"
}

nccl_sums() {
    local precision most strategy first
    for precision in fp32 bf16; do
        most=1e-6
        [ $precision = fp32 ] || most=1e-2
        rm -rf "$work"/w-*
        for strategy in dp oss sdp fsdp; do
            gpus 3 --sums nccl --strategy $strategy --precision $precision --steps 20 --save-weights "$work/w-$strategy"
            check "sums of NCCL, $strategy, $precision" 0 $code
            reports_sums "$strategy, $precision" "$work/cuda.json" nccl
            first=$(hash_of "$work/cuda.json")
            skewed_gpus 3 --sums nccl --strategy $strategy --precision $precision --steps 20
            check "sums of NCCL, $strategy, $precision, again" 0 $code
            check "they repeat, $strategy, $precision" "$first" "$(hash_of "$work/cuda.json")"
        done
        weights_agree $precision $most "$work"/w-*
    done
}

checkpoints() { # cuda 4, cpu 2, cuda 3: weights are equal, and what follows from weights and states agrees
    local saved
    gpus 4 --strategy fsdp --save "$work/four"
    check '4 GPUs save' 0 $code
    saved=$(hash_of "$work/cuda.json")
    hosts 2 --strategy sdp --resume "$work/four"
    check '2 ranks of the host read it' 0 $code
    check 'the host has the weights of the GPUs' "$saved" "$(hash_of "$work/cpu.json")"
    hosts 2 --strategy sdp --resume "$work/four" --steps 6 --save "$work/two"
    check '2 ranks of the host go on and save' 0 $code
    saved=$(hash_of "$work/cpu.json")
    gpus 3 --strategy mixed --budget 80% --resume "$work/two" --steps 6
    check '3 GPUs read it' 0 $code
    check 'the GPUs have the weights of the host' "$saved" "$(hash_of "$work/cuda.json")"
    gpus 3 --strategy oss --resume "$work/two" --steps 10
    check '3 GPUs go on' 0 $code
    hosts 3 --strategy oss --resume "$work/two" --steps 10
    check '3 ranks of the host go on' 0 $code
    losses_agree 'both go on from the same states' 1e-4
}

worlds
settings
models
recipes
orders
nccl_sums
checkpoints
[ $failed = 0 ] && echo "several GPUs: all as promised"
exit $failed
