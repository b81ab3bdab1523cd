#!/usr/bin/env bash
# `sluice eval` keeps its promises: loss, logits and gradients of given weights on given inputs, as transformers gave
# them (tests/golden), in files that others read; a file that it can't read is named.
# Labels: sanitized
. "$(dirname "$0")/../../support/command_check.sh"
need_command eval
need_python3
golden=$(dirname "$0")/../../golden

evaluate() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 120 "$sluice" eval "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

# MODEL, what makes an error: the largest distance of logits, loss and gradients to those expected, or what differs in
# kind. A gradient's distance is relative, unless the true one vanishes.
judge() {
    python3 - "$golden/$1/expected.safetensors" "$work" "$2" <<'PY'
import json, math, struct, sys
def read(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    values = {}
    for name, row in header.items():
        begin, end = (8 + length + offset for offset in row["data_offsets"])
        assert row["dtype"] == "F32", f"{name} is {row['dtype']}"
        values[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return values
expected, work, bar = read(sys.argv[1]), sys.argv[2], float(sys.argv[3])
logits, gradients = read(work + "/logits"), read(work + "/gradients")
loss = json.load(open(work + "/loss.json"))["loss"]
def norm(values): return math.sqrt(sum(value * value for value in values))
def close(what, got, want, size):
    distance = norm([a - b for a, b in zip(got, want)])
    if len(got) != len(want) or not distance <= bar * size: # what is not a number is not close
        sys.exit(f"{what}: {len(got)} values, {distance} from {len(want)} of size {size}")
close("loss", [loss], expected.pop("loss"), 1)
close("logits", logits.pop("logits"), expected["logits"], norm(expected.pop("logits")))
if logits or {"grad." + name for name in gradients} != set(expected):
    sys.exit(f"other tensors: {sorted(set(expected) ^ {'grad.' + name for name in gradients})} {sorted(logits)}")
for name, got in gradients.items():
    size = norm(expected["grad." + name])
    close(name, got, expected["grad." + name], size if size > 1e-6 else 1)
print("as transformers'")
PY
}

models() {
    local model threads=1 precision bar
    for model in gpt2 bert_masked bert_classifier vit beit beit_masked beit_masked_shared; do
        for precision in fp32 bf16; do
            bar=2e-5
            [ $precision = fp32 ] || bar=0.15
            rm -f "$work/logits" "$work/gradients" "$work/loss.json"
            evaluate --weights "$golden/$model" --inputs "$golden/$model/inputs.safetensors" --precision $precision \
                --logits "$work/logits" --gradients "$work/gradients" --json "$work/loss.json" --threads $threads
            check "$model, $precision" 0 $code
            check "$model, $precision: values" "as transformers'" "$(judge $model $bar 2>&1 | tail -n 1)"
            evaluate --weights "$golden/$model" --inputs "$golden/$model/inputs.safetensors" --precision $precision \
                --logits "$work/alone" --threads $threads
            check "$model, $precision: the same bits where no gradients are kept" yes \
                "$(cmp -s "$work/logits" "$work/alone" && echo yes)"
            threads=$((3 - threads))
        done
    done
}

refusals() {
    local inputs=$golden/gpt2/inputs.safetensors
    refuses() { # words of the message, then OPTION...
        local words=$1
        shift
        evaluate "$@"
        check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
        check "$* says why" yes "$(grep -q -- "$words" "$work/err" && echo yes)"
    }
    refuses 'nowhere' --weights "$work/nowhere" --inputs "$inputs"
    refuses 'nowhere' --weights "$golden/gpt2" --inputs "$work/nowhere"
    refuses 'is no input of vit' --weights "$golden/vit" --inputs "$inputs"
    refuses 'fp8' --weights "$golden/gpt2" --inputs "$inputs" --precision fp8
    refuses 'inputs' --weights "$golden/gpt2"
    refuses 'cannot write /dev/full' --weights "$golden/gpt2" --inputs "$inputs" --logits /dev/full
    python3 - "$work/unasked" <<'PY'
import json, struct, sys
rows = {"input_ids": {"dtype": "I64", "shape": [1, 4], "data_offsets": [0, 32]},
        "labels": {"dtype": "I64", "shape": [1, 4], "data_offsets": [32, 64]}}
header = json.dumps(rows).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(header)) + header + struct.pack("<8q", 1, 2, 3, 4, *[-100] * 4))
PY
    refuses 'no label asks for anything' --weights "$golden/gpt2" --inputs "$work/unasked"
    refuses 'no label asks for anything' --weights "$golden/bert_masked" --inputs "$work/unasked" \
        --gradients "$work/gradients"
    head -c 300 "$golden/gpt2/inputs.safetensors" >"$work/cut"
    refuses "$work/cut: .*the file is cut short" --weights "$golden/gpt2" --inputs "$work/cut"
}

models
refusals
[ $failed = 0 ] && echo "sluice eval: all as promised"
exit $failed
