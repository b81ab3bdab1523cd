"""Trains what `sluice train --pld` has trained, with PyTorch and transformers, and compares losses: pld_torch_test.py WORK

WORK/init holds the weights before, WORK/run.json what the run says of itself, WORK/first.json what its steps trained on.
A step draws the layers that it keeps as lib/recipe/depth.c does; a layer that is left out is not in the model, so that its
parameters have no gradient, which AdamW passes over."""
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
import transformers

from recipe_torch_test import philox

STREAM_LAYERS = 0x706C64 << 32


def places(model):
    """Returns the module whose list of layers steps change, the name of that list, and the product at the end of each
    branch of a layer."""
    if isinstance(model, transformers.GPT2LMHeadModel):
        return model.transformer, "h", lambda layer: [layer.attn.c_proj, layer.mlp.c_proj]
    return model.roberta_prelayernorm.encoder, "layer", lambda layer: [layer.attention.output.dense, layer.output.dense]


def main():
    work = pathlib.Path(sys.argv[1])
    run = json.loads((work / "run.json").read_text())["runs"][0]
    steps = json.loads((work / "first.json").read_text())["steps"]
    s, losses = run["settings"], run["losses"]
    kind = transformers.AutoConfig.from_pretrained(work / "init").architectures[0]
    model = getattr(transformers, kind).from_pretrained(work / "init").train()
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    holder, name, branches = places(model)
    layers, factors = list(getattr(holder, name)), {}
    for i, layer in enumerate(layers):
        for product in branches(layer):
            product.register_forward_hook(lambda module, inputs, out, i=i: out * factors[i])
    groups = [{"params": [p], "weight_decay": s["weight_decay"] if p.dim() > 1 else 0.0} for p in model.parameters()]
    optimizer = torch.optim.AdamW(groups, lr=s["lr"], betas=(s["beta1"], s["beta2"]), eps=s["epsilon"])
    least, gamma = map(float, s["pld"].split(","))
    worst, left_out = 0, 0
    for t, step in enumerate(steps):
        theta = (1 - least) * math.exp(-gamma * t) + least
        kept = []
        for i, layer in enumerate(layers):
            p = 1 - i * (1 - theta) / len(layers)
            if philox(s["seed"], STREAM_LAYERS + i, t)[0] / 2**32 < p:
                kept.append(layer)
                factors[i] = 1 / p
        left_out += len(layers) - len(kept)
        setattr(holder, name, torch.nn.ModuleList(kept))
        logits = model(torch.tensor(step["input_ids"]), use_cache=False).logits
        loss = F.cross_entropy(logits.flatten(0, 1), torch.tensor(step["targets"]).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        worst = max(worst, abs(loss.item() - losses[t]))
        if worst > 1e-4:
            sys.exit(f"step {t + 1}: loss {losses[t]}, PyTorch has {loss.item()}")
    print(f"{kind}: {len(steps)} steps, {left_out} of {len(steps) * len(layers)} layers left out, losses within {worst:.1e}")
    if not left_out:
        sys.exit("no layer was left out")


main()
