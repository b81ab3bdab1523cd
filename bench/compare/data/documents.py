#!/usr/bin/env python3
"""Records as people have them (JSON lines) in `sluice train` and in transformers: the same tokens, and the same losses.

    documents.py [--sluice PATH] [--steps N] [--ranks N] [--sets NAMES] [--json FILE]

Needs torch, transformers and tokenizers. Texts are sentences of the system's licences, tokenizers and weights are made
on the spot. Four sets, of which each run trains on drawn records for N steps (50):

  classes   BERT with classes: a sentence and the licence that it is from
  pairs     BERT with classes: two sentences, and whether the second follows the first
  texts     GPT-2, --sequences documents: a sentence, then the end token
  chat      GPT-2, template chatml: two turns, of which the assistant's are learned

For each, every row that Sluice trains on must be a record as transformers' tokenizer makes it (tokens, types, labels;
for conversations the assistant's tokens as apply_chat_template marks them), and the losses of a transformers model in
float64 on these rows must be Sluice's. Exit code 1 if a row is none of these or a loss is off by more than 1e-5."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import tokenizers
    import torch
    import transformers
except ImportError as missing:
    sys.exit(f"documents.py: {missing}; run it with a Python that has torch, transformers and tokenizers")

LICENCES = pathlib.Path("/usr/share/common-licenses")
LIMIT, CONTEXT, BATCH, RATE = 1e-5, 64, 8, 1e-3
# CHATML writes what --chat-template chatml writes, with marks around what the assistant says.
CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n'}}{% if message['role'] == 'assistant' "
          "%}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{% else %}{{ message['content'] + "
          "'<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}")


def sentences():
    """Returns pairs (sentence, licence) of the system's licences, in the order of the texts."""
    found = []
    for path in sorted(LICENCES.iterdir()):
        if path.is_file() and not path.is_symlink():
            text = re.sub(r"\s+", " ", path.read_text(errors="replace"))
            found += [(s.strip(), path.name) for s in re.split(r"(?<=[.;:])\s", text) if 20 < len(s) < 400]
    return found


def make_records(kind, found):
    if kind == "classes":
        return [{"text": s, "label": name} for s, name in found]
    if kind == "pairs":
        pairs = []
        for i in range(0, len(found) - 40, 2):
            follows = i // 2 % 2
            pairs.append({"text": found[i][0], "text_pair": found[i + 1 if follows else i + 37][0], "label": follows})
        return pairs
    if kind == "texts":
        return [{"text": s} for s, _ in found]
    return [{"messages": [{"role": "user", "content": found[i][0]},
                          {"role": "assistant", "content": found[i + 1][0]}]} for i in range(0, len(found) - 1, 2)]


# ---- Tokenizers and models ----

def make_tokenizer(kind, texts, folder):
    if kind in ("classes", "pairs"):
        made = tokenizers.BertWordPieceTokenizer(lowercase=True)
        made.train_from_iterator(texts, vocab_size=1500, show_progress=False)
        made._tokenizer.post_processor = tokenizers.processors.BertProcessing(
            ("[SEP]", made.token_to_id("[SEP]")), ("[CLS]", made.token_to_id("[CLS]")))
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=made._tokenizer, cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
            pad_token="[PAD]", unk_token="[UNK]")
    else:
        made = tokenizers.ByteLevelBPETokenizer()
        special = ["<|endoftext|>"] + (["<|im_start|>", "<|im_end|>"] if kind == "chat" else [])
        made.train_from_iterator(texts, vocab_size=1500, special_tokens=special, show_progress=False)
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=made._tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    tokenizer.save_pretrained(folder)
    return tokenizer


def make_model(kind, tokenizer, labels, folder):
    torch.manual_seed(1)
    if kind in ("classes", "pairs"):
        model = transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=len(tokenizer), hidden_size=96, num_hidden_layers=3, num_attention_heads=4,
            intermediate_size=384, max_position_embeddings=CONTEXT, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0, num_labels=labels))
    else:
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=len(tokenizer), n_embd=96, n_layer=3, n_head=4, n_positions=CONTEXT, resid_pdrop=0.0,
            embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0))
    model.save_pretrained(folder)
    return model


# ---- Rows as transformers' tokenizer makes them ----

def numbered(records):
    """Numbers the labels of records as Sluice does: words in the order of their bytes."""
    words = sorted({str(r["label"]) for r in records if "label" in r})
    return {word: i for i, word in enumerate(words)}


def encode(kind, record, tokenizer, classes):
    """Returns the tokens, types and targets of a record, cut as transformers cuts it."""
    if kind == "chat":
        out = tokenizer.apply_chat_template(record["messages"], chat_template=CHATML, tokenize=True, return_dict=True,
                                            return_assistant_tokens_mask=True)
        tokens, marked = out["input_ids"][:CONTEXT], out["assistant_masks"][:CONTEXT]
        targets = [t if m else -100 for t, m in zip(tokens[1:], marked[1:])] + [-100]
        return tokens, None, targets
    if kind == "texts":
        tokens = (tokenizer(record["text"], add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id])[:CONTEXT]
        return tokens, None, tokens[1:] + [-100]
    out = tokenizer(record["text"], record.get("text_pair"), truncation="longest_first", max_length=CONTEXT)
    return out["input_ids"], out["token_type_ids"], [classes[str(record["label"])]]


def rows_of(step):
    """Yields a step's rows without their padding, as (tokens, types, targets)."""
    for i, tokens in enumerate(step["input_ids"]):
        targets = step["targets"][i]
        if "attention_mask" in step:
            count = sum(step["attention_mask"][i])
        else:
            count = max((k + 2 for k, t in enumerate(targets) if t != -100), default=len(tokens))
        types = step["token_type_ids"][i][:count] if "token_type_ids" in step else None
        yield tokens[:count], types, targets if len(targets) == 1 else targets[:count]


def unknown_rows(kind, steps, known):
    """Counts the rows that are none of the known records. A row of a conversation ends with its last learned token, as
    rows_of gives it, and so do the known ones: what follows that token is not compared."""
    missing = 0
    for step in steps:
        for tokens, types, targets in rows_of(step):
            key = (tuple(tokens), tuple(types or ()), tuple(targets))
            if kind in ("chat", "texts"):
                key = (key[0], (), key[2])
            missing += key not in known
    return missing


def known_rows(kind, records, tokenizer, classes):
    known = set()
    for record in records:
        tokens, types, targets = encode(kind, record, tokenizer, classes)
        if kind == "chat":  # as rows_of: up to the last token that is learned
            count = max((k + 2 for k, t in enumerate(targets) if t != -100), default=len(tokens))
            tokens, targets = tokens[:count], targets[:count]
        known.add((tuple(tokens), tuple(types or ()), tuple(targets)))
    return known


# ---- Training ----

def count_targets(step):
    return sum(t != -100 for row in step["targets"] for t in row)


def train_transformers(model, steps):
    """Trains in float64 and returns a loss for each step, the mean over all of its targets. A step weighs as much as it
    has targets; all
    steps are one group of lengths."""
    usual = sum(map(count_targets, steps)) / len(steps)
    model = model.double().train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.01},
                                   {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0}], lr=RATE)
    losses = []
    for step in steps:
        width = max(len(row) for row in step["input_ids"])

        def padded(rows, filler):
            return torch.tensor([row + [filler] * (width - len(row)) for row in rows])
        inputs = {"input_ids": padded(step["input_ids"], 0)}
        if "attention_mask" in step:
            inputs["attention_mask"] = padded(step["attention_mask"], 0)
        if "token_type_ids" in step:
            inputs["token_type_ids"] = padded(step["token_type_ids"], 0)
        logits = model(**inputs).logits
        classes = logits.dim() == 2
        targets = torch.tensor(step["targets"]) if classes else padded(step["targets"], -100)
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1),
                                                 ignore_index=-100)
        losses.append(loss.item())
        optimizer.zero_grad()
        (loss * count_targets(step) / usual).backward()
        optimizer.step()
    return losses


def train_sluice(args, kind, folder):
    command = [args.sluice, "train", "--weights", folder, "--data", folder / "records.jsonl", "--steps",
               str(args.steps), "--batch", str(BATCH // args.ranks), "--context", str(CONTEXT), "--optimizer", "adamw",
               "--lr", str(RATE), "--weight-decay", "0.01", "--eval-batches", "0", "-n", str(args.ranks),
               "--first-batch", folder / "batches.json", "--first-batches", str(args.steps), "--json",
               folder / "run.json", "--sequences", "documents", "--length-groups", str(args.steps)]
    if kind in ("classes", "pairs"):
        command += ["--head", "classes"]
    if kind == "chat":
        command += ["--chat-template", "chatml"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if run.returncode:
        sys.exit(f"documents.py: {' '.join(map(str, command))}: exit code {run.returncode}\n{run.stderr}")
    return json.loads((folder / "run.json").read_text())["runs"][0]["losses"]


def compare(args, kind, found, folder):
    folder.mkdir()
    records = make_records(kind, found)
    (folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    classes = numbered(records)
    tokenizer = make_tokenizer(kind, [s for s, _ in found], folder)
    model = make_model(kind, tokenizer, max(2, len(classes)), folder)
    losses = train_sluice(args, kind, folder)
    steps = json.loads((folder / "batches.json").read_text())
    steps = steps.get("steps", [steps])
    unknown = unknown_rows(kind, steps, known_rows(kind, records, tokenizer, classes))
    theirs = train_transformers(model, steps)
    places = sum(len(row) for step in steps for row in step["input_ids"])
    there = sum(len(tokens) for step in steps for tokens, _, _ in rows_of(step))
    return {"set": kind, "records": len(records), "steps": len(losses), "unknown_rows": unknown,
            "first_loss": losses[0], "last_loss": losses[-1],
            "apart": max(abs(a - b) for a, b in zip(losses, theirs)), "padding": 1 - there / places}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", type=pathlib.Path, default="build/release/bench/sluice")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--sets", default="classes,pairs,texts,chat")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    found = sentences()
    rows = []
    print(f"{'set':8} {'records':>8} {'rows unknown':>13} {'first loss':>11} {'last loss':>10} {'apart':>9} {'padding':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.sets.split(","):
            row = compare(args, kind, found, pathlib.Path(folder) / kind)
            rows.append(row)
            print(f"{row['set']:8} {row['records']:8} {row['unknown_rows']:13} {row['first_loss']:11.6f} "
                  f"{row['last_loss']:10.6f} {row['apart']:9.1e} {100 * row['padding']:6.1f} %", flush=True)
    if args.json:
        args.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")
    return any(row["apart"] > LIMIT or row["unknown_rows"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
