#!/usr/bin/env bash
# `sluice eval --data` keeps its promises: the loss of every window is that of `sluice eval --inputs`, each token is
# guessed once, masked loss and accuracy are there for the models that have them, and mistakes are told.
# Labels: sanitized
. "$(dirname "$0")/../../support/command_check.sh"
need_command eval
need_python3
golden=$(realpath "$(dirname "$0")/../../golden")
sluice=$(realpath "$sluice")
cd "$work" || exit 1
seq 1 2000 | sed 's/.*/& bottles of beer on the wall,/' >text

evaluate() { # OPTION...: output in out and err, exit code in $code
    timeout 120 "$sluice" eval "$@" >out 2>err </dev/null
    code=$?
}

train() { # OPTION...
    timeout 100 "$sluice" train --schedule one_ahead "$@" --eval-batches 0 >out 2>err </dev/null
    check "train $*" 0 $?
}

field() { # FILE KEY: of a JSON report
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"
}

next_tokens() {
    train --size nano --data text --context 32 --steps 60 --lr 0.003 --save-weights gpt2
    head -c 400 text >short
    evaluate --weights gpt2 --data short --context 64 --json whole.json
    check 'windows that do not overlap' 0 $code
    check 'all but the first of each window are guessed' '393 7' "$(field whole.json tokens) $(field whole.json windows)"
    evaluate --weights gpt2 --data short --context 64 --stride 20 --batch 3 --json strided.json
    check 'overlapping windows' 0 $code
    check 'every token but the first is guessed once' '399 18' "$(field strided.json tokens) $(field strided.json windows)"
    check 'perplexity' yes "$(python3 -c '
import json, math
r = json.load(open("strided.json"))
print("yes" if abs(math.log(r["perplexity"]) - r["loss"]) < 1e-9 else r)')"
    evaluate --weights gpt2 --data short --context 64 --stride 20 --batch 7 --json other.json
    check 'the batch changes nothing that matters' yes "$(python3 -c '
import json
a, b = (json.load(open(n))["loss"] for n in ("strided.json", "other.json"))
print("yes" if abs(a - b) < 1e-6 else (a, b))')"
    head -c 5 text >tiny
    evaluate --weights gpt2 --data tiny --json tiny.json
    check 'a text that is shorter than a window' '4 1' "$(field tiny.json tokens) $(field tiny.json windows)"
    head -c 65 text >one_more
    evaluate --weights gpt2 --data one_more --context 64 --json one_more.json
    check 'a last window without a target is left out' '63 1' \
        "$(field one_more.json tokens) $(field one_more.json windows)"
}

# The loss of each window is computed again from the logits of `sluice eval --inputs`.
by_inputs() {
    check 'the loss of the logits' yes "$(python3 - "$sluice" <<'PY'
import json, math, struct, subprocess, sys
text, context, stride = list(open("short", "rb").read()), 64, 20
total, count, done, begin = 0.0, 0, 0, 0
while True:
    end = min(begin + context, len(text))
    ids = text[begin:end]
    header = json.dumps({"input_ids": {"dtype": "I64", "shape": [1, len(ids)],
                                       "data_offsets": [0, 8 * len(ids)]}}).encode()
    open("inputs", "wb").write(struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(ids)}q", *ids))
    subprocess.run([sys.argv[1], "eval", "--weights", "gpt2", "--inputs", "inputs", "--logits", "logits"], check=True,
                   stdout=subprocess.DEVNULL)
    data = open("logits", "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    values = struct.unpack(f"<{(len(data) - 8 - length) // 4}f", data[8 + length:])
    for t in range(max(begin + 1, done), end):
        row = values[(t - 1 - begin) * 256:(t - begin) * 256]
        top = max(row)
        total += math.log(sum(math.exp(x - top) for x in row)) + top - row[text[t]]
        count += 1
    done = end
    if end == len(text):
        break
    begin += stride
got = json.load(open("strided.json"))
print("yes" if got["tokens"] == count and abs(got["loss"] - total / count) < 1e-5 else (got, total / count, count))
PY
)"
}

other_models() {
    train --model bert --size nano --data text --context 32 --steps 20 --save-weights bert
    evaluate --weights bert --data short --context 32 --json m.json
    check 'masked tokens' 0 $code
    check 'of every window one token and 15 % of the others are guessed' yes "$(python3 -c '
import json
r = json.load(open("m.json"))
print("yes" if 45 <= r["tokens"] <= 95 and r["windows"] == 13 and "perplexity" not in r else r)')"
    evaluate --weights bert --data short --context 32 --json again.json
    check 'the seed decides which' "$(field m.json loss)" "$(field again.json loss)"
    evaluate --weights bert --data short --context 32 --seed 2 --json again.json
    check 'another seed, other tokens' no "$([ "$(field m.json loss)" = "$(field again.json loss)" ] || echo no)"

    seq 1 2000 | sed 's/.*/in the year & nothing was brewed;/' >second
    train --model bert --size nano --head classes --data text,second --context 32 --steps 40 --save-weights classes
    head -n 200 text >text.head
    head -n 200 second >second.head
    evaluate --weights classes --data text.head,second.head --context 32 --json c.json
    check 'classes of files' 0 $code
    check 'they are easily told apart' yes "$(python3 -c '
import json
r = json.load(open("c.json"))
print("yes" if r["accuracy"] > .9 and r["windows"] == r["answers"] else r)')"
    evaluate --weights classes --data second.head,text.head --context 32 --json c.json
    check 'the order of the files names the classes' yes "$(python3 -c '
import json
r = json.load(open("c.json"))
print("yes" if r["accuracy"] < .1 else r)')"
    evaluate --weights classes --data text
    check 'a file for each class' yes "$([ $code != 0 ] && grep -q '1 files, and the model answers with 2' err && echo yes)"

    mkdir -p images/black images/white
    for i in $(seq 1 12); do
        { printf 'P5 8 8 255\n'; head -c 64 /dev/zero | tr '\0' "\\$(printf %o $((i + 2)))"; } >images/black/$i.pgm
        { printf 'P5 8 8 255\n'; head -c 64 /dev/zero | tr '\0' "\\$(printf %o $((i + 200)))"; } >images/white/$i.pgm
    done
    train --model vit --size nano --data images --steps 30 --save-weights vit
    evaluate --weights vit --data images --batch 5 --json v.json
    check 'images' 0 $code
    check 'every image once' '24 24' "$(field v.json images) $(field v.json answers)"
    check 'black is not white' 1.0 "$(field v.json accuracy)"
}

budgets_and_mistakes() {
    evaluate --weights gpt2 --data short --budget 100KiB
    check 'a budget that is too small' yes "$([ $code != 0 ] && grep -q 'too few; the smallest budget that works: --budget' err && echo yes)"
    local least
    least=$(sed -n 's/.*smallest budget that works: [^0-9]*\([0-9]*\).*/\1/p' err)
    evaluate --weights gpt2 --data short --budget "$least" --json b.json
    check 'the smallest budget that it names works' 0 $code
    check 'and holds' yes "$([ "$(field b.json peak_bytes)" -le "$least" ] && echo yes)"
    refuses() { # words of the message, then OPTION...
        local words=$1
        shift
        evaluate "$@"
        check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
        check "$* says why" yes "$(grep -q -- "$words" err && echo yes)"
    }
    refuses 'either --data or --inputs' --weights gpt2
    refuses 'either --data or --inputs' --weights gpt2 --data short --inputs short
    refuses 'nowhere' --weights gpt2 --data nowhere
    refuses '--context 129: gpt2 has a context of 128' --weights gpt2 --data short --context 129
    refuses 'some would never be guessed' --weights gpt2 --data short --context 32 --stride 33
    refuses "windows do not overlap" --weights bert --data short --stride 3
    refuses 'sees images' --weights vit --data images --context 3
    refuses 'vocabulary of' --weights "$golden/gpt2" --data short
    refuses '--logits and --gradients go with --inputs' --weights gpt2 --data short --logits l
    printf a >letter
    refuses 'a text of one token' --weights gpt2 --data letter
    refuses 'has no visual_tokens.safetensors.*give --visual-tokens FILE' --weights "$golden/beit_masked" --data images
}

next_tokens
by_inputs
other_models
budgets_and_mistakes
[ $failed = 0 ] && echo "sluice eval --data: all as promised"
exit $failed
