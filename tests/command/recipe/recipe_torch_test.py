"""Trains what `sluice train` has trained, with PyTorch and transformers, and compares: recipe_torch_test.py WORK

WORK/init and WORK/trained hold weights before and after, WORK/run.json what the run says of itself, WORK/text the text.
The windows of text are those that lib/data/text.c draws (Philox 4x32-10; Salmon et al., SC 2011)."""
import json
import pathlib
import sys

import torch
import torch.nn.functional as F
import transformers
import transformers.optimization as hf

STREAM_WINDOWS = 0x74657874


def philox(seed, stream, index):
    low, high = (lambda x: x & 0xFFFFFFFF), (lambda x: x >> 32)
    c, k = [low(index), high(index), low(stream), high(stream)], [low(seed), high(seed)]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [high(p1) ^ c[1] ^ k[0], low(p1), high(p0) ^ c[3] ^ k[1], low(p0)]
        k = [low(k[0] + 0x9E3779B9), low(k[1] + 0xBB67AE85)]
    return c


def below(seed, stream, index, limit):
    word = philox(seed, stream, index)
    return ((word[1] << 32 | word[0]) * limit) >> 64


def windows(text, seed, first, count, length):
    places = len(text) - len(text) // 10 - length
    rows = [text[at:at + length + 1] for at in (below(seed, STREAM_WINDOWS, first + i, places) for i in range(count))]
    rows = torch.tensor([list(row) for row in rows])
    return rows[:, :-1], rows[:, 1:]


def depth(name, layers):  # as BEiT's get_num_layer_for_vit
    if name.startswith(("transformer.wte", "transformer.wpe")):
        return 0
    return int(name.split(".")[2]) + 1 if name.startswith("transformer.h.") else layers + 1


def main():
    work = pathlib.Path(sys.argv[1])
    run = json.loads((work / "run.json").read_text())["runs"][0]
    s, losses, rates = run["settings"], run["losses"], run["learning_rates"]
    text = (work / "text").read_bytes()
    model = transformers.GPT2LMHeadModel.from_pretrained(work / "init").train()
    trained = transformers.GPT2LMHeadModel.from_pretrained(work / "trained")
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    layers = model.config.n_layer
    groups = [{"params": [p], "weight_decay": s["weight_decay"] if p.dim() > 1 else 0.0,
               "scale": s["layer_decay"] ** (layers + 1 - depth(name, layers))} for name, p in model.named_parameters()]
    if s["optimizer"] == "sgd":
        optimizer = torch.optim.SGD(groups, lr=s["lr"], momentum=s["momentum"], dampening=s["dampening"],
                                    nesterov=s["nesterov"])
    else:
        optimizer = torch.optim.AdamW(groups, lr=s["lr"], betas=(s["beta1"], s["beta2"]), eps=s["epsilon"])
    warmup, horizon = s["warmup"], s["lr_horizon"]
    factor = hf.get_cosine_with_min_lr_schedule_with_warmup(optimizer, warmup, horizon, min_lr=s["lr_min"]).lr_lambdas[0]
    sequences = run["world"] * s["batch"]
    worst = 0
    for step in range(1, len(losses) + 1):
        rate = s["lr"] * factor(step if step <= warmup else step - 1)
        if abs(rate - rates[step - 1]) > 1e-12 * s["lr"]:
            sys.exit(f"step {step}: rate {rates[step - 1]}, transformers has {rate}")
        for group in optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        tokens, targets = windows(text, s["seed"], (step - 1) * sequences, sequences, s["context"])
        loss = F.cross_entropy(model(tokens).logits.flatten(0, 1), targets.flatten(), label_smoothing=s["label_smoothing"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        worst = max(worst, abs(loss.item() - losses[step - 1]))
        if worst > 1e-4:
            sys.exit(f"step {step}: loss {losses[step - 1]}, PyTorch has {loss.item()}")
    moved = apart = 0.0
    begun = transformers.GPT2LMHeadModel.from_pretrained(work / "init").state_dict()
    for name, value in model.state_dict().items():
        moved += (value - begun[name]).square().sum().item()
        apart += (value - trained.state_dict()[name]).square().sum().item()
    print(f"losses within {worst:.1e}, weights apart by {(apart / moved) ** 0.5:.1e} of how far they have moved")
    if not apart < 1e-8 * moved:
        sys.exit(1)


if __name__ == "__main__":
    main()
