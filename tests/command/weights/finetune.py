#!/usr/bin/env python3
"""The parts of finetune_test.sh that need transformers, which runs without a network here.

make FOLDER gpt2|bert|bert_classes INPUTS TEXT...
    a small random model with a tokenizer trained on the texts, and inputs for `sluice eval`
check FOLDER TUNED BATCH REPORT INPUTS LOGITS TEXT...
    tokens of the first step (BATCH) are transformers' of the texts, so is its loss (REPORT), and so are the LOGITS of
    the weights that were exported to TUNED"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

transformers.logging.set_verbosity_error()
MODELS = {
    "gpt2": transformers.GPT2LMHeadModel,
    "bert": transformers.BertForMaskedLM,
    "bert_classes": transformers.BertForSequenceClassification,
}


def train_bpe(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train(texts, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
        unk_token="<|endoftext|>",
    )


def train_wordpiece(texts):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    tokenizer.train(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def make(folder, kind, inputs, texts):
    torch.manual_seed(7)
    tokenizer = train_bpe(texts) if kind == "gpt2" else train_wordpiece(texts)
    size = len(tokenizer)
    if kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=size,
            n_positions=64,
            n_embd=48,
            n_layer=2,
            n_head=4,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    else:
        config = transformers.BertConfig(
            vocab_size=size,
            max_position_embeddings=64,
            hidden_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=96,
            pad_token_id=tokenizer.pad_token_id,
        )
    model = MODELS[kind](config)
    for parameter in model.parameters():  # biases and norms that are 0 and 1 would hide a mistake
        parameter.data += 0.05 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    save_file({"input_ids": tokenizer("copies of the Software", return_tensors="pt").input_ids}, inputs)


def load(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        architecture = json.load(file)["architectures"][0]
    model = getattr(transformers, architecture).from_pretrained(folder, local_files_only=True).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def fail(text):
    sys.exit("FAILED: " + text)


def as_text(tokens):
    """Returns tokens as text, with spaces around every number, so that a search of text finds a window."""
    return " " + " ".join(map(str, tokens)) + " "


def same_windows(kind, tokenizer, batch, texts):
    files = [
        tokenizer(open(text, encoding="utf-8", newline="").read(), add_special_tokens=False).input_ids for text in texts
    ]
    between = tokenizer.eos_token_id if kind == "GPT2LMHeadModel" else tokenizer.sep_token_id
    whole = as_text([token for tokens in files for token in tokens + [between]])
    for row, target in zip(batch["input_ids"], batch["targets"]):
        if kind == "GPT2LMHeadModel":
            if as_text(row + target[-1:]) not in whole or row[1:] != target[:-1]:
                fail(f"a window of GPT-2 is none of the text in transformers' tokens: {row}")
            continue
        if row[0] != tokenizer.cls_token_id or row[-1] != tokenizer.sep_token_id:
            fail(f"a window of BERT has not [CLS] and [SEP] around it: {row}")
        if kind == "BertForSequenceClassification":
            if as_text(row[1:-1]) not in as_text(files[target[0]]):
                fail(f"a window is not of the file that is its class: {row}")
            continue
        told = [t if t >= 0 else r for r, t in zip(row, target)]
        if as_text(told[1:-1]) not in whole:
            fail(f"a window of BERT is none of the text in transformers' tokens: {told}")
        if target[0] >= 0 or target[-1] >= 0:
            fail("a token of the frame is to be guessed")


def same_masking(tokenizer, inputs, targets):
    asked = targets >= 0
    share = asked.float().mean().item()
    masked = ((inputs == tokenizer.mask_token_id) & asked).sum().item() / asked.sum().item()
    if not 0.1 < share < 0.2 or not 0.65 < masked < 0.95:
        fail(f"{share:.3f} of the tokens are asked for, and {masked:.3f} of those masked")


def same_loss(kind, model, inputs, targets, loss):
    """Checks a step's loss against the model's, which is the mean over all of the step's targets."""
    with torch.no_grad():
        logits = model(input_ids=inputs).logits
    theirs = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)).item()
    print(f"{kind}: first loss {loss:.7f}, transformers' {theirs:.7f}, apart by {abs(loss - theirs):.1e}")
    if not abs(loss - theirs) < 1e-4:
        fail("the first loss is another")


def same_export(kind, tuned, inputs_file, logits_file):
    model, tokenizer = load(tuned)
    tokens = load_file(inputs_file)["input_ids"]
    if tokenizer("copies of the Software").input_ids != tokens[0].tolist():
        fail("the tokenizer that was exported is another")
    with torch.no_grad():
        theirs = model(input_ids=tokens).logits
    ours = load_file(logits_file)["logits"]
    apart = (ours - theirs).abs().max().item()
    print(f"{kind}: exported weights' logits are apart by {apart:.1e}")
    if ours.shape != theirs.shape or not apart < 1e-4:
        fail("logits of the exported weights are other")
    if kind == "GPT2LMHeadModel" and model.config.eos_token_id != tokenizer.eos_token_id:
        fail(f"config.json has eos_token_id {model.config.eos_token_id}, the tokenizer {tokenizer.eos_token_id}")


def check(folder, tuned, batch_file, report_file, inputs_file, logits_file, *texts):
    model, tokenizer = load(folder)
    kind = type(model).__name__
    with open(batch_file, encoding="utf-8") as file:
        batch = json.load(file)
    with open(report_file, encoding="utf-8") as file:
        loss = json.load(file)["runs"][0]["losses"][0]
    inputs, targets = torch.tensor(batch["input_ids"]), torch.tensor(batch["targets"])
    same_windows(kind, tokenizer, batch, texts)
    if kind == "BertForMaskedLM":
        same_masking(tokenizer, inputs, targets)
    same_loss(kind, model, inputs, targets, loss)
    same_export(kind, tuned, inputs_file, logits_file)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(*sys.argv[2:5], sys.argv[5:])
    else:
        check(*sys.argv[2:])
