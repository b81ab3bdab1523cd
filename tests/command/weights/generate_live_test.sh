#!/usr/bin/env bash
# `sluice generate` and `sluice eval --data` give what transformers gives, for a GPT-2 that transformers has made with a
# BPE that tokenizers has trained on our documents: the same tokens and text, greedily; logits within 1e-4; the loss of
# a text, by windows that overlap, within 1e-5. Needs SLUICE_TEST_PYTHON, a Python that has both packages.
. "$(dirname "$0")/../../support/command_check.sh"
need_command generate
need_test_python torch transformers tokenizers
docs=$(realpath "$(dirname "$0")/../../../docs")
timeout 900 "$python" - "$(realpath "$sluice")" "$work" "$docs" 2>"$work/err" <<'PY'
import glob, json, math, struct, subprocess, sys
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel
sluice, work, docs = sys.argv[1:]
torch.set_num_threads(1)
torch.manual_seed(4)

def run(command, *options):
    done = subprocess.run([sluice, command, "--weights", folder, *options], capture_output=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()

def logits_of(ids):
    header = json.dumps({"input_ids": {"dtype": "I64", "shape": [1, len(ids)],
                                       "data_offsets": [0, 8 * len(ids)]}}).encode()
    open(work + "/inputs", "wb").write(struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(ids)}q", *ids))
    run("eval", "--inputs", work + "/inputs", "--logits", work + "/logits")
    data = open(work + "/logits", "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    return torch.frombuffer(bytearray(data[8 + length:]), dtype=torch.float32).view(len(ids), -1)

files = sorted(glob.glob(docs + "/*.md"))
bpe = Tokenizer(models.BPE())
bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
bpe.decoder = decoders.ByteLevel()
bpe.train(files, trainers.BpeTrainer(vocab_size=1200, special_tokens=["<|endoftext|>"], show_progress=False,
                                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
end = bpe.token_to_id("<|endoftext|>")
for channels, heads, layers, context in ((48, 3, 3, 160), (64, 1, 2, 256), (60, 4, 2, 96)):
    folder = f"{work}/gpt2_{channels}"
    model = GPT2LMHeadModel(GPT2Config(vocab_size=bpe.get_vocab_size(), n_positions=context, n_embd=channels,
                                       n_layer=layers, n_head=heads, initializer_range=0.2, bos_token_id=end,
                                       eos_token_id=end)).eval()
    model.save_pretrained(folder)
    bpe.save(folder + "/tokenizer.json")
    for prompt in ("The budget is a number of bytes", "naïve – 日本語 🙂", "\n\n  x"):
        ids = bpe.encode(prompt).ids
        with torch.no_grad():
            made = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                                  max_new_tokens=64, do_sample=False, pad_token_id=end)[0, len(ids):].tolist()
        report = work + "/report.json"
        text = run("generate", "--prompt", prompt, "--tokens", "64", "--json", report)
        got = json.load(open(report))
        assert got["prompt_tokens"] == ids, (prompt, got["prompt_tokens"], ids)
        assert got["new_tokens"] == made, (prompt, got["new_tokens"], made)
        want = bpe.decode(made)
        assert got["text"] == want and text == want + "\n", (prompt, got["text"], text, want)
        with torch.no_grad():
            truth = model(torch.tensor([ids + made])).logits[0]
        distance = float((logits_of(ids + made) - truth).abs().max())
        assert distance <= 1e-4, (prompt, distance)
    # https://huggingface.co/docs/transformers/perplexity, with each window's targets counted as they are
    ids, stride = bpe.encode(open(files[0]).read()).ids[:], context // 3
    total, count, done, begin = 0.0, 0, 0, 0
    while done < len(ids):
        stop = min(begin + context, len(ids))
        with torch.no_grad():
            scores = torch.log_softmax(model(torch.tensor([ids[begin:stop]])).logits[0].double(), -1)
        for t in range(max(begin + 1, done), stop):
            total -= float(scores[t - 1 - begin, ids[t]])
            count += 1
        done, begin = stop, begin + stride
    run("eval", "--data", files[0], "--stride", str(stride), "--json", work + "/eval.json")
    got = json.load(open(work + "/eval.json"))
    assert got["tokens"] == count and abs(got["loss"] / (total / count) - 1) < 1e-5, (got, total / count, count)
    print(f"channels {channels}: 3 x 64 tokens, logits, and the loss of {count} tokens as transformers'")
PY
check 'as transformers' 0 $?
[ $failed = 0 ] && echo "generate and eval: as transformers"
exit $failed
