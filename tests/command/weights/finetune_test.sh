#!/usr/bin/env bash
# Text and weights belong together: a text is read in the tokens of the weights' tokenizer, an export is a folder that
# works by itself, and what does not belong together is refused. With SLUICE_TEST_PYTHON, a Python with transformers:
# small models and tokenizers that it makes are fine-tuned on two ranks, and tokens, first loss and exported weights are
# transformers'.
# Labels: sanitized
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
. "$(dirname "$0")/../../support/train_check.sh"
here=$(cd "$(dirname "$0")" && pwd)
golden=$here/../../golden
cp "$here/../../../LICENSE" "$work/one"
cp "$here/../../../CONTRIBUTING.md" "$work/two"
common=(--context 24 --batch 3 --eval-batches 1 --steps 2 --schedule one_ahead)

config_says() { # FOLDER KEY
    sed -n "s/^ *\"$2\": \(.*[^,]\),*$/\1/p" "$1/config.json"
}

# Weights with the golden tokenizers, made by training from first values.
make_weights() {
    train --tokenizer "$golden/tokenizer_bpe" --data "$work/one" --save-weights "$work/gpt2"
    check 'a model with first values takes a tokenizer' 0 $code
    check 'it has its vocabulary' 703 "$(config_says "$work/gpt2" vocab_size)"
    check 'and its end token' 0 "$(config_says "$work/gpt2" eos_token_id)"
    check 'the tokenizer goes along' 'config.json model.safetensors sluice.json tokenizer.json tokenizer_config.json' \
        "$(cd "$work/gpt2" && echo *)"
    train --model bert --tokenizer "$golden/tokenizer_wordpiece/tokenizer.json" --data "$work/one" \
        --save-weights "$work/bert"
    check 'bert takes a tokenizer' 0 $code
    train --save-weights "$work/bytes" --data "$work/one"
    check 'bytes have no end token' null "$(config_says "$work/bytes" eos_token_id)"
}

# The tokens of the first step, put together from windows, say the text: a word of the licence is several tokens.
text_in_tokens() {
    train -n 2 --weights "$work/gpt2" --data "$work/one,$work/two" --first-batch "$work/batch.json" \
        --json "$work/a.json" --save-weights "$work/tuned"
    check 'weights with a tokenizer are fine-tuned on text' 0 $code
    check 'rows of both ranks are written' 6 "$(python3 -c '
import json, sys
batch = json.load(open(sys.argv[1]))
assert all(len(row) == 24 for row in batch["input_ids"] + batch["targets"])
assert all(row[1:] == target[:-1] for row, target in zip(batch["input_ids"], batch["targets"]))
assert max(max(row) for row in batch["input_ids"]) > 256
print(len(batch["input_ids"]))' "$work/batch.json")"
    cmp -s "$golden/tokenizer_bpe/tokenizer.json" "$work/tuned/tokenizer.json"
    check 'the export has the tokenizer' 0 $?
    train -n 2 --weights "$work/gpt2" --tokenizer "$golden/tokenizer_bpe" --data "$work/one" --data "$work/two" \
        --json "$work/b.json"
    check 'the same tokenizer, named, and the same files give the same' "$(hash_of "$work/a.json")" \
        "$(hash_of "$work/b.json")"
    train --weights "$work/gpt2" --data "$work/one" --json "$work/a.json"
    train -n 2 --weights "$work/gpt2" --data "$work/one,$work/two" --json "$work/b.json"
    check 'the second file is read by all ranks' other \
        "$([ "$(hash_of "$work/a.json")" = "$(hash_of "$work/b.json")" ] && echo same || echo other)"
    train --weights "$work/bert" --data "$work/one" --first-batch "$work/batch.json"
    check 'bert is fine-tuned on text' 0 $code
    check 'bert has [CLS] and [SEP] around, and masks with [MASK]' 'True True' "$(python3 -c '
import json, sys
rows = json.load(open(sys.argv[1]))["input_ids"]
names = {t["content"]: t["id"] for t in json.load(open(sys.argv[2]))["added_tokens"]}
print(all(row[0] == names["[CLS]"] and row[-1] == names["[SEP]"] for row in rows),
      any(names["[MASK]"] in row for row in rows))' "$work/batch.json" "$work/bert/tokenizer.json")"
    train --weights "$work/bert" --head classes --data "$work/one,$work/two"
    check 'bert learns classes of text' 0 $code
}

what_does_not_belong_together() {
    mkdir "$work/bare"
    cp "$work/gpt2/"{config.json,model.safetensors} "$work/bare"
    refuses 'put their tokenizer.json next to them, or give --tokenizer' --weights "$work/bare" --data "$work/one"
    train --weights "$work/bytes" --data "$work/one"
    check 'weights of bytes read bytes' 0 $code
    refuses 'has 703 tokens, and the model of .*/bytes a vocabulary of 256' --weights "$work/bytes" \
        --tokenizer "$golden/tokenizer_bpe" --data "$work/one"
    refuses 'has no token \[CLS\]' --model bert --tokenizer "$golden/tokenizer_bpe" --data "$work/one"
    refuses 'cannot read\|cannot open' --tokenizer "$work/nowhere" --data "$work/one"
    refuses 'sees images; leave --tokenizer out' --model vit --context 0 --tokenizer "$golden/tokenizer_bpe" \
        --data "$work/one"
    refuses 'it is a safetensors file' --data "$work/gpt2/model.safetensors"
    refuses 'holds no text; the first of its files' --data "$work/gpt2"
    TMPDIR=$work/nowhere refuses 'name a folder with room in TMPDIR' --weights "$work/gpt2" --data "$work/one"
    printf '{"added_tokens": [], "model": {"type": "Unigram"}}' >"$work/bare/tokenizer.json"
    refuses 'Unigram' --weights "$work/bare" --data "$work/one"
    refuses 'it writes tokens' --model vit --context 0 --first-batch "$work/batch.json"
}

# A run that goes on knows its model by its shape and its text by its tokenizer.
resumed() {
    local whole=$work/whole.json on=$work/on.json
    train --weights "$work/gpt2" --data "$work/one" --steps 4 --json "$whole"
    train --weights "$work/gpt2" --data "$work/one" --steps 2 --save "$work/run"
    cp -r "$work/gpt2" "$work/moved"
    train --weights "$work/moved" --data "$work/one" --steps 4 --resume "$work/run" --json "$on"
    check 'weights that were moved go on' 0 $code
    check 'with nothing to say' '' "$(grep -i warn "$work/err")"
    check 'to the bit' "$(hash_of "$whole")" "$(hash_of "$on")"
    train --tokenizer "$work/moved" --data "$work/one" --steps 4 --resume "$work/run" --json "$on" \
        --save-weights "$work/export"
    check 'without weights the checkpoint says the shape' "$(hash_of "$whole")" "$(hash_of "$on")"
    check 'and the end token' 0 "$(config_says "$work/export" eos_token_id)"
    refuses 'read its text with a tokenizer; give --tokenizer' --data "$work/one" --steps 4 --resume "$work/run"
    refuses "trained on --data $work/one; give --data" --steps 4 --resume "$work/run"
    refuses 'shape has layers 4, this run.s has 6' --size mini --tokenizer "$work/moved" --data "$work/one" \
        --steps 4 --resume "$work/run"
    sed 's/<left>/<gauche>/' "$work/gpt2/tokenizer.json" >"$work/moved/tokenizer.json"
    refuses 'trained on the tokens of another tokenizer' --weights "$work/moved" --data "$work/one" --steps 4 \
        --resume "$work/run"
}

fine_tuned() { # KIND: as transformers has it
    "$python" "$here/finetune.py" make "$work/hf" "$1" "$work/inputs" "$work/one" "$work/two" >"$work/err" 2>&1
    check "$1: transformers makes a model" 0 $?
    rm -rf "$work/tuned"
    train -n 2 --weights "$work/hf" --data "$work/one,$work/two" --first-batch "$work/batch.json" \
        --json "$work/a.json" --save-weights "$work/tuned" --micro-batches 2
    check "$1: one line fine-tunes" 0 $code
    "$sluice" eval --weights "$work/tuned" --inputs "$work/inputs" --logits "$work/logits" >"$work/out" 2>"$work/err"
    check "$1: sluice evaluates the export" 0 $?
    "$python" "$here/finetune.py" check "$work/hf" "$work/tuned" "$work/batch.json" "$work/a.json" "$work/inputs" \
        "$work/logits" "$work/one" "$work/two" 2>"$work/err"
    check "$1: tokens, first loss and exported weights are transformers'" 0 $?
    rm -rf "$work/hf"
}

make_weights
text_in_tokens
what_does_not_belong_together
resumed
if test_python_has torch transformers tokenizers safetensors; then
    for kind in gpt2 bert bert_classes; do fine_tuned $kind; done
else
    skip "fine-tuning as transformers has it: $lacking"
fi
if test_python_has transformers tokenizers; then
    "$python" "$here/../../tokenizer/saved.py" "$sluice" "$work/folders" >"$work/out" 2>"$work/err" </dev/null
    check 'transformers takes a saved tokenizer as it is' 0 $?
    cat "$work/out"
else
    skip "what transformers makes of a saved tokenizer: $lacking"
fi
exit $failed
