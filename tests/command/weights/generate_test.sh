#!/usr/bin/env bash
# `sluice generate` keeps its promises on weights that `sluice train` has just made: the same text for the same options,
# tokens that are the likeliest by what `sluice eval` computes for the whole text, budgets that hold, mistakes that are
# told.
# Labels: sanitized
. "$(dirname "$0")/../../support/command_check.sh"
need_command generate
need_python3
golden=$(realpath "$(dirname "$0")/../../golden")
sluice=$(realpath "$sluice")
cd "$work" || exit 1
seq 1 9000 | sed 's/.*/& bottles of beer on the wall,/' >text

generate() { # OPTION...: output in out and err, exit code in $code
    timeout 120 "$sluice" generate "$@" >out 2>err </dev/null
    code=$?
}

field() { # FILE KEY: of a JSON report
    python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))[sys.argv[2]], separators=(",", ":")))' "$@"
}

timeout 200 "$sluice" train --size nano --data text --context 32 --steps 300 --lr 0.003 --save-weights nano \
    --eval-batches 0 --schedule one_ahead >out 2>err </dev/null
check 'train saves weights' 0 $?

the_same_text() {
    generate --weights nano --prompt '99 bottles ' --tokens 40 --json a.json
    check 'greedy' 0 $code
    check 'it goes on as it has learned' 'of beer on the wall,' "$(head -c 20 out)"
    check 'its text is the report'"'"'s' "$(cat out)" \
        "$(python3 -c 'import json; print(json.load(open("a.json"))["text"])')"
    check 'the tokens of the prompt are its bytes' '[57,57,32,98,111,116,116,108,101,115,32]' \
        "$(field a.json prompt_tokens)"
    check 'as many tokens as were asked for' 40 "$(field a.json new_tokens | tr ',' '\n' | wc -l)"
    check 'stopped by' '"--tokens"' "$(field a.json stopped_by)"
    local greedy
    greedy=$(cat out)
    printf '99 bottles ' >prompt
    generate --weights nano --prompt-file prompt --tokens 40
    check 'the prompt from a file' "$greedy" "$(cat out)"
    generate --weights nano --prompt-tokens 57,57,32,98,111,116,116,108,101,115,32 --tokens 40
    check 'the prompt as tokens' "$greedy" "$(cat out)"
    generate --weights nano --prompt '99 bottles ' --tokens 40 --temperature 3 --top-k 1 --seed 7
    check 'the likeliest of one' "$greedy" "$(cat out)"
    generate --weights nano --prompt '99 bottles ' --tokens 40 --threads 2
    check 'two threads' "$greedy" "$(cat out)"
    OMP_NUM_THREADS=2 generate --weights nano --prompt '99 bottles ' --tokens 1 --json a.json
    check 'threads as the environment says' 1 "$(field a.json settings | grep -c '"threads":2')"
    generate --weights nano --prompt '99 bottles ' --tokens 40 --precision bf16
    check 'bf16' 0 $code

    generate --weights nano --prompt '99 bottles ' --temperature 2 --seed 5 --tokens 100
    check 'drawn' 0 $code
    cp out drawn
    generate --weights nano --prompt '99 bottles ' --temperature 2 --seed 5 --tokens 100
    check 'drawn again' yes "$(cmp -s out drawn && echo yes)"
    generate --weights nano --prompt '99 bottles ' --temperature 2 --seed 6 --tokens 100
    check 'another seed draws another text' no "$(cmp -s out drawn || echo no)"
    generate --weights nano --prompt '99 bottles ' --temperature 50 --seed 6 --tokens 100 --json -
    check 'bytes that are no UTF-8 are replaced' yes \
        "$(python3 -c 'import json; r = json.load(open("out")); t = bytes(r["new_tokens"]).decode("utf-8", "replace"); print("yes" if t == r["text"] else t)')"
}

# A vocabulary that is larger than the tokenizer's: the others have no text, and do not end the run.
tokens_that_fill_up() {
    cp -r nano filled
    python3 - <<'PY'
import json
letters = "abcdefghijklmnopqrstuvwxyz0123456789,"
json.dump({"model": {"type": "BPE", "vocab": {c: ord(c) for c in letters}, "merges": []},
           "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"}},
          open("filled/tokenizer.json", "w"))
PY
    generate --weights filled --prompt 99bottles --temperature 50 --seed 6 --tokens 100 --json filled.json
    check 'tokens that the tokenizer has not' 0 $code
    check 'have no text' yes "$(python3 - <<'PY'
import json
r = json.load(open("filled.json"))
wanted = "".join(c for c in map(chr, r["new_tokens"]) if c in "abcdefghijklmnopqrstuvwxyz0123456789,")
print("yes" if len(wanted) < len(r["new_tokens"]) and r["text"] == wanted else (r["text"], wanted))
PY
)"
}

# The text with what was generated goes through `sluice eval` at once, which gives the logits at every position.
the_likeliest_tokens() {
    generate --weights nano --prompt '12 bottles of' --tokens 115 --json long.json
    check 'up to the end of the context' 0 $code
    python3 - <<'PY'
import json, struct
r = json.load(open("long.json"))
ids = r["prompt_tokens"] + r["new_tokens"]
header = json.dumps({"input_ids": {"dtype": "I64", "shape": [1, len(ids)], "data_offsets": [0, 8 * len(ids)]}}).encode()
open("inputs", "wb").write(struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(ids)}q", *ids))
PY
    timeout 100 "$sluice" eval --weights nano --inputs inputs --logits logits >out 2>err
    check 'eval of the whole text' 0 $?
    check 'every token is the likeliest after those before it' 'all 115' "$(python3 - <<'PY'
import json, struct
r = json.load(open("long.json"))
data = open("logits", "rb").read()
(length,) = struct.unpack("<Q", data[:8])
values = struct.unpack(f"<{(len(data) - 8 - length) // 4}f", data[8 + length:])
rows = [values[i:i + 256] for i in range(0, len(values), 256)]
start = len(r["prompt_tokens"])
wrong = [i for i, t in enumerate(r["new_tokens"]) if rows[start + i - 1].index(max(rows[start + i - 1])) != t]
print(f"all {len(r['new_tokens'])}" if not wrong else f"not {wrong}")
PY
)"
}

ends() {
    mkdir ended
    cp nano/model.safetensors ended
    sed 's/"eos_token_id": [^,]*/"eos_token_id": 44/' nano/config.json >ended/config.json # a comma
    generate --weights ended --prompt '99 bottles ' --tokens 40 --json e.json
    check 'the end token ends it, and is not shown' 'of beer on the wall' "$(cat out)"
    check 'stopped by the end token' '"end token"' "$(field e.json stopped_by)"
    check 'the end token is reported' 44 "$(field e.json new_tokens | tr -d ']' | sed 's/.*,//')"
    echo '{"max_length": 100000000000000000000, "eos_token_id": [5, 114]}' >ended/generation_config.json # an r, in "beer"
    generate --weights ended --prompt '99 bottles ' --tokens 40
    check 'generation_config.json comes first' 'of bee' "$(cat out)"
}

budgets() {
    generate --weights nano --prompt '99 bottles ' --budget 100KiB
    check 'a budget that is too small' yes "$([ $code != 0 ] && grep -q 'too few; the smallest budget that works: --budget' err && echo yes)"
    local least
    least=$(sed -n 's/.*smallest budget that works: [^0-9]*\([0-9]*\).*/\1/p' err)
    generate --weights nano --prompt '99 bottles ' --budget "$least" --json b.json
    check 'the smallest budget that it names works' 0 $code
    check 'and holds' yes "$([ "$(field b.json peak_bytes)" -le "$least" ] && echo yes)"
    generate --weights nano --prompt '99 bottles ' --budget $((least - 1))
    check 'one byte less does not' yes "$([ $code != 0 ] && echo yes)"
    generate --weights nano --prompt '99 bottles ' --tokens 100 --json more.json
    check 'a longer text needs a longer cache' yes \
        "$([ "$(field more.json planned_bytes)" -ge "$(field b.json planned_bytes)" ] && echo yes)"
}

mistakes() {
    refuses() { # words of the message, then OPTION...
        local words=$1
        shift
        generate "$@"
        check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
        check "$* says why" yes "$(grep -q -- "$words" err && echo yes)"
        check "$* writes no text" 0 "$(wc -c <out)"
    }
    refuses 'nowhere' --weights nowhere --prompt a
    refuses '--weights is needed' --prompt a
    refuses 'one of --prompt' --weights nano
    refuses 'one of --prompt' --weights nano --prompt a --prompt-tokens 1
    refuses 'the prompt is empty' --weights nano --prompt ''
    refuses 'no/such/file' --weights nano --prompt-file no/such/file
    refuses '"256" is no number of a token' --weights nano --prompt-tokens 1,256
    refuses '"" is no number of a token' --weights nano --prompt-tokens 1,,2
    refuses "5 tokens and --tokens 124 are 129, and the model's context is 128" \
        --weights nano --prompt hello --tokens 124
    refuses 'give a model with a longer context' --weights nano --prompt-file text
    refuses '--temperature -1: give a number from 0' --weights nano --prompt a --temperature=-1
    refuses '--top-k x: give a whole number' --weights nano --prompt a --top-k x
    refuses '--tokens 0: give a whole number from 1' --weights nano --prompt a --tokens 0
    refuses '--budget: "60%"' --weights nano --prompt a --budget 60%
    refuses '--precision fp8' --weights nano --prompt a --precision fp8
    refuses '--device cuda: text is generated on the cpu alone' --weights nano --prompt a --device cuda
    refuses '-n 2: one rank generates' --weights nano --prompt a -n 2
    refuses 'bert sees the tokens on both sides' --weights "$golden/bert_masked" --prompt a
    refuses 'vit looks at images' --weights "$golden/vit" --prompt a
    refuses 'has no tokenizer.json' --weights "$golden/gpt2" --prompt a
    refuses 'the tokenizer of .* has 703 tokens' --weights nano --tokenizer "$golden/tokenizer_bpe" --prompt a
    timeout 60 "$sluice" run -n 2 "$sluice" generate --weights nano --prompt a >out 2>err </dev/null
    code=$?
    check 'two ranks are refused' yes "$([ $code != 0 ] && grep -q 'one rank generates' err && echo yes)"
    generate --weights nano --prompt a --json /dev/full
    check 'a report that cannot be written' yes "$([ $code != 0 ] && grep -q '/dev/full' err && echo yes)"
    timeout 60 "$sluice" generate --weights nano --prompt a >/dev/full 2>err </dev/null
    code=$?
    check 'text that cannot be written' yes "$([ $code != 0 ] && grep -q 'standard output' err && echo yes)"
    generate --weights "$golden/gpt2" --prompt-tokens 1,2,3 --tokens 4
    check 'without a tokenizer numbers are written' 4 "$(wc -w <out)"
}

the_same_text
tokens_that_fill_up
the_likeliest_tokens
ends
budgets
mistakes
[ $failed = 0 ] && echo "sluice generate: all as promised"
exit $failed
