#!/usr/bin/env python3
"""The part of split_torch_test.sh that needs PyTorch: split_torch_test.py FIRST BATCH RUN...

Trains BERT from the weights in the folder FIRST on the sequences of the file BATCH, four a step, in float64, with the
mean over all targets of a step as its loss. Each run has losses in RUN.json and its last weights in the folder RUN:
first losses are to be within 1e-6, weights within 1e-5."""
import json
import sys

import torch
import transformers
from safetensors.torch import load_file

EACH = 4  # sequences a step


def train(folder, inputs, targets):
    model = transformers.BertForMaskedLM.from_pretrained(folder, local_files_only=True).double().train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.01},
            {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0},
        ],
        lr=1e-3,
        eps=1e-4,
    )
    losses = []
    for x, t in zip(inputs.split(EACH), targets.split(EACH)):
        logits = model(input_ids=x).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), t.reshape(-1))
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses, model.state_dict()


def compare(run, losses, weights):
    with open(run + ".json", encoding="utf-8") as file:
        ours = json.load(file)["runs"][0]["losses"]
    tensors = load_file(run + "/model.safetensors")
    apart = max((value.double() - weights[name]).abs().max().item() for name, value in tensors.items())
    first = abs(ours[0] - losses[0])
    name = run.rpartition("/")[2]
    print(f"{name}: first loss {ours[0]:.7f}, apart by {first:.1e}, {len(tensors)} weights by {apart:.1e}")
    return len(ours) == len(losses) and first < 1e-6 and apart < 1e-5


def main():
    torch.set_num_threads(1)
    with open(sys.argv[2], encoding="utf-8") as file:
        batch = json.load(file)
    losses, weights = train(sys.argv[1], torch.tensor(batch["input_ids"]), torch.tensor(batch["targets"]))
    good = [compare(run, losses, weights) for run in sys.argv[3:]]
    return 0 if good and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
