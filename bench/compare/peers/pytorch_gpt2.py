"""GPT-2 in plain PyTorch, trained as `sluice train` trains it: no dropout, AdamW, text as bytes.

    pytorch_gpt2.py --mode alone|ddp|fsdp2|fsdp2_keep [--size small] [--batch 4] [--context 64] [--steps 8]
                    [--precision fp32|bf16]

bf16 is torch.autocast around forward and loss.

Run by bench/compare/training/pytorch.sh, for ddp and fsdp2 under torch.distributed.run with gloo. fsdp2 shards each block and reshards
it after forward; fsdp2_keep does not reshard. Rank 0 prints one line of JSON: the median and least time of a step after
two of warm-up, the largest resident set over the ranks after the last step, and the losses.
"""
import argparse
import json
import math
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WARM_UP = 2
SIZES = {  # layers, channels, heads, positions, vocabulary
    "nano": (4, 64, 4, 128, 256),
    "small": (12, 768, 12, 1024, 50257),
    "medium": (24, 1024, 16, 1024, 50257),
}


class Block(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(channels)
        self.c_attn = nn.Linear(channels, 3 * channels)
        self.attn_proj = nn.Linear(channels, channels)
        self.ln_2 = nn.LayerNorm(channels)
        self.c_fc = nn.Linear(channels, 4 * channels)
        self.mlp_proj = nn.Linear(4 * channels, channels)

    def attention(self, x):
        batch, tokens, channels = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, channels // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(channels, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.attn_proj(y.transpose(1, 2).reshape(batch, tokens, channels))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, layers, channels, heads, positions, vocabulary):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, channels)
        self.wpe = nn.Embedding(positions, channels)
        self.blocks = nn.ModuleList(Block(channels, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(channels)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if "proj" in name else 0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def distribute(model, mode):
    if mode == "alone":
        return model
    if mode == "ddp":
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(model, gradient_as_bucket_view=True)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=mode == "fsdp2")
    return fully_shard(model, mesh=mesh, reshard_after_forward=mode == "fsdp2")


def read_text(path):
    paths = [path]
    if os.path.isdir(path):
        paths = sorted(os.path.join(path, name) for name in os.listdir(path))
    data = b"".join(open(p, "rb").read() for p in paths if os.path.isfile(p))
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).long()


def windows(text, generator, batch, context):
    starts = torch.randint(len(text) - context - 1, (batch,), generator=generator).tolist()
    pieces = torch.stack([text[s : s + context + 1] for s in starts])
    return pieces[:, :-1], pieces[:, 1:]


def resident_bytes():
    """Returns the most bytes that were resident at one time; those of a rank of Sluice stay the same from commit on."""
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmHWM"].split()[0]) * 1024


def make_optimizer(model, learning_rate):
    settings = dict(lr=learning_rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    try:
        return torch.optim.AdamW(model.parameters(), fused=True, **settings), "fused"
    except (RuntimeError, TypeError, NotImplementedError):  # not for this device or kind of tensor
        return torch.optim.AdamW(model.parameters(), **settings), "default"


def train(options, rank, _):
    torch.manual_seed(1)
    model = distribute(GPT2(*SIZES[options.size]), options.mode)
    optimizer, kind = make_optimizer(model, options.lr)
    text = read_text(options.data)
    generator = torch.Generator().manual_seed(1 + rank)
    times, losses = [], []
    for _ in range(options.steps):
        tokens, targets = windows(text, generator, options.batch, options.context)
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            loss = model(tokens, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
    return times, losses, kind


def run(parser, way, batch, train):
    """Adds the options that all of these programs have, `batch` being the usual one, and lets train(options, rank, ranks)
    make the steps; without a process group if the option `way`, which the parser has, is "alone". Rank 0 prints one line
    of JSON with that option and what train returns: seconds and losses of each step, and the optimizer's kind."""
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--data", default="/usr/share/common-licenses")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if getattr(options, way) != "alone":
        dist.init_process_group("gloo")
    grouped = dist.is_initialized()
    rank, ranks = (dist.get_rank(), dist.get_world_size()) if grouped else (0, 1)
    times, losses, kind = train(options, rank, ranks)
    resident = torch.tensor([resident_bytes()], dtype=torch.int64)
    if grouped:
        dist.all_reduce(resident, op=dist.ReduceOp.MAX)
    if rank == 0:
        measured = times[WARM_UP:] or times
        print(json.dumps({way: getattr(options, way), "step_s": statistics.median(measured), "step_min_s": min(measured),
                          "rss_bytes": int(resident.item()), "losses": losses, "optimizer": kind,
                          "torch": torch.__version__}), flush=True)
    if grouped:
        dist.barrier()
        sys.stdout.flush()
        os._exit(0)  # gloo's threads now and then abort in destroy_process_group; everything is measured


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["alone", "ddp", "fsdp2", "fsdp2_keep"], default="alone")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    run(parser, "mode", 4, train)


if __name__ == "__main__":
    main()
