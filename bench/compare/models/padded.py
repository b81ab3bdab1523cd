#!/usr/bin/env python3
"""Padded batches, however they are split between ranks and micro-batches, beside one process of PyTorch in float64 that
takes the mean over all targets of a step: BERT with masked tokens, BERT with classes, GPT-2 with short sequences.

    padded.py [--build FOLDER] [--steps N] [--json FILE]

Needs torch, transformers and safetensors, and `ninja -C BUILD padded_training`. Four sequences of drawn lengths a step
on 1, 2 and 4 ranks and in 1, 2 and 4 micro-batches, under each strategy; sequences have different numbers of targets,
some none. Exit code 1 if a first loss is off by more than 1e-6, or a weight after the last step by more than 1e-5."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import torch
    import transformers
    from safetensors.torch import load_file
except ImportError as missing:
    sys.exit(f"padded.py: {missing}; run it with a Python that has torch, transformers and safetensors")

SEQUENCES, LENGTH, VOCABULARY, CLASSES = 4, 20, 61, 3
LOSS_LIMIT, WEIGHT_LIMIT = 1e-6, 1e-5
SPLITS = [(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (4, 1)]  # ranks, micro-batches
STRATEGIES = ["dp", "oss", "sdp", "fsdp"]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
         "vocab_size": VOCABULARY, "max_position_embeddings": LENGTH + 4, "hidden_dropout_prob": 0.0,
         "attention_probs_dropout_prob": 0.0}


def masked_bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(**SIZES))


def bert_classes():
    config = transformers.BertConfig(**SIZES, num_labels=CLASSES)
    return transformers.BertForSequenceClassification(config)


def padded_gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_embd=32, n_layer=2, n_head=2, n_inner=64, vocab_size=VOCABULARY, n_positions=LENGTH + 4, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0))


MODELS = {"BERT, masked tokens": masked_bert, "BERT, classes": bert_classes, "GPT-2": padded_gpt2}


def randomise(model):
    """Draws parameters as if the model had been trained: none keeps its first value."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            near_one = parameter.dim() == 1 and name.endswith("weight")
            parameter.copy_((1.0 if near_one else 0.0) + (0.1 if near_one else 0.05) * torch.randn(parameter.shape))


def draw_step(name):
    """Draws the tokens, mask and targets of a step. A target of -1 is none, and padding has none. GPT-2's first two
    sequences are padded in front, where tokens would see the padding but for the mask."""
    lengths = torch.randint(2, LENGTH + 1, (SEQUENCES,))
    lengths[torch.randint(SEQUENCES, (1,))] = LENGTH
    mask = (torch.arange(LENGTH) < lengths[:, None]).long()
    if name == "GPT-2":
        mask[:2] = mask[:2].flip(1)
    tokens = torch.randint(1, VOCABULARY, (SEQUENCES, LENGTH)) * mask
    if name == "BERT, classes":
        targets = torch.randint(CLASSES, (SEQUENCES,))
        asked = torch.rand(SEQUENCES) < 0.7
    else:
        targets = torch.randint(VOCABULARY, (SEQUENCES, LENGTH))
        asked = mask == 1
        if name != "GPT-2":
            asked &= torch.rand(SEQUENCES, LENGTH) < 0.2
        asked[torch.randint(SEQUENCES, (1,))] = False
    asked.view(-1)[mask.argmax() if asked.dim() > 1 else 0] = True  # no step without a target
    return tokens, mask, targets.masked_fill(~asked, -1)


def train_pytorch(model, steps):
    """Trains in float64 and returns the losses and the last weights."""
    model = model.double().train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.01},
                                   {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0}],
                                  lr=1e-3, eps=1e-4)
    losses = []
    for tokens, mask, targets in steps:
        logits = model(input_ids=tokens, attention_mask=mask).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1),
                                                 ignore_index=-1)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses, model.state_dict()


def train_sluice(build, folder, ranks, micro_batches, strategy):
    out = folder / f"{ranks}x{micro_batches}-{strategy}"
    out.mkdir()
    run = subprocess.run([build / "bench/sluice", "run", "-n", str(ranks), "--", build / "bench/padded_training",
                          folder, folder / "batches", str(LENGTH), str(SEQUENCES), str(micro_batches), strategy, out],
                         capture_output=True, text=True, timeout=300, check=False)
    if run.returncode:
        sys.exit(f"padded.py: {' '.join(map(str, run.args))}: exit code {run.returncode}\n{run.stderr}")
    return [float(line.split()[-1]) for line in run.stdout.splitlines()], load_file(out / "model.safetensors")


def compare(name, options, folder):
    """Compares both sides of a model, and returns a row for each split and strategy."""
    model = MODELS[name]()
    randomise(model)
    model.save_pretrained(folder)
    steps = [draw_step(name) for _ in range(options.steps)]
    with open(folder / "batches", "wb") as file:
        for step in steps:
            for part in step:
                file.write(part.to(torch.int32).contiguous().numpy().tobytes())
    losses, weights = train_pytorch(model, steps)
    moved = max((load_file(folder / "model.safetensors")[key].double() - weights[key]).abs().max().item()
                for key in load_file(folder / "model.safetensors"))
    print(f"{name}: {losses[0]:.7f} at first, then {losses[-1]:.7f}; training moves a weight by up to {moved:.1e}")
    for ranks, micro_batches in SPLITS:
        for strategy in STRATEGIES[:1 if ranks == 1 else None]:  # one rank has all, whatever the strategy
            ours, tensors = train_sluice(options.build, folder, ranks, micro_batches, strategy)
            row = {"model": name, "ranks": ranks, "micro_batches": micro_batches, "strategy": strategy,
                   "first_loss_apart": abs(ours[0] - losses[0]),
                   "losses_apart": max(abs(a - b) for a, b in zip(ours, losses, strict=True)),
                   "weights_apart": max((v.double() - weights[k]).abs().max().item() for k, v in tensors.items())}
            row["good"] = row["first_loss_apart"] <= LOSS_LIMIT and row["weights_apart"] <= WEIGHT_LIMIT
            print(f"  {ranks} ranks, {micro_batches} micro-batches, {strategy:4}: first loss apart by "
                  f"{row['first_loss_apart']:.1e}, any by {row['losses_apart']:.1e}, weights by "
                  f"{row['weights_apart']:.1e}{'' if row['good'] else '  !'}", flush=True)
            yield row


def main():
    parser = argparse.ArgumentParser(description="Padded batches, split in many ways, beside PyTorch.")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", type=pathlib.Path, help="write the rows there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(11)
    rows = []
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            rows += compare(name, options, pathlib.Path(folder))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    print(f"{sum(row['good'] for row in rows)} of {len(rows)} within {LOSS_LIMIT:g} and {WEIGHT_LIMIT:g}")
    return 0 if all(row["good"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
