"""GPT-2 as a pipeline of torch.distributed.pipelining over gloo, or on one rank: AdamW, no dropout, text as bytes.

    pytorch_pipeline.py --schedule alone|gpipe|1f1b|interleaved|zbv --micro-batches M [--cuts h.4,head] [--size small]
                        [--batch 2] [--context 64] [--steps 8]

A rank has one stage, or two with interleaved (P stages apart) and zbv (in a V). Without --cuts blocks are shared out
evenly, the head counting as the blocks that its products take. The head has a table of its own, which spares this
pipeline the exchange of a shared one's gradients. Rank 0 prints one line of JSON, as pytorch_gpt2.py does.
"""
import argparse
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from pytorch_gpt2 import SIZES, Block, make_optimizer, read_text, run, windows


class Embed(nn.Module):
    def __init__(self, channels, positions, vocabulary):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, channels)
        self.wpe = nn.Embedding(positions, channels)

    def forward(self, tokens):
        return self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]


class Head(nn.Module):
    def __init__(self, channels, vocabulary):
        super().__init__()
        self.ln_f = nn.LayerNorm(channels)
        self.table = nn.Linear(channels, vocabulary, bias=False)

    def forward(self, x):
        return self.table(self.ln_f(x))


def layer_makers(size):
    """Returns a function that makes each layer, so that a rank makes its own alone."""
    blocks, channels, heads, positions, vocabulary = SIZES[size]
    return ([lambda: Embed(channels, positions, vocabulary)] + blocks * [lambda: Block(channels, heads)]
            + [lambda: Head(channels, vocabulary)])


def even_cuts(size, pieces):
    """Returns the first layer of each piece but the first; the head weighs as much as its product next to a block's."""
    blocks, channels, _, _, vocabulary = SIZES[size]
    weights = [0.0] + blocks * [1.0] + [vocabulary / (12 * channels)]
    cuts, done, left = [], 0, sum(weights)
    for piece in range(pieces - 1):
        share, taken, first = left / (pieces - piece), 0.0, done
        while done < len(weights) - (pieces - piece - 1) and (done == first or taken + weights[done] / 2 <= share):
            taken += weights[done]
            done += 1
        left -= taken
        cuts.append(done)
    return cuts


def read_cuts(text, size):
    last = SIZES[size][0] + 1
    return [last if name == "head" else int(name.removeprefix("h.")) + 1 for name in text.split(",")]


def pieces_of(schedule, rank, ranks):
    if schedule == "interleaved":
        return [rank, rank + ranks]
    return [rank, 2 * ranks - 1 - rank] if schedule == "zbv" else [rank]


def loss_of(logits, targets):
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def make_schedule(options, rank, ranks):
    """Returns the schedule of a rank, its modules, and whether it holds the first and the last piece."""
    from torch.distributed import pipelining

    own = pieces_of(options.schedule, rank, ranks)
    pieces = ranks * len(own)
    cuts = read_cuts(options.cuts, options.size) if options.cuts else even_cuts(options.size, pieces)
    makers = layer_makers(options.size)
    bounds = [0] + cuts + [len(makers)]
    if len(bounds) != pieces + 1:
        sys.exit(f"--cuts {options.cuts}: {pieces} pieces need {pieces - 1}")
    modules = [nn.Sequential(*(make() for make in makers[bounds[p]:bounds[p + 1]])) for p in own]
    stages = [pipelining.PipelineStage(module, p, pieces, torch.device("cpu")) for p, module in zip(own, modules)]
    kind = {"gpipe": pipelining.ScheduleGPipe, "1f1b": pipelining.Schedule1F1B,
            "interleaved": pipelining.ScheduleInterleaved1F1B, "zbv": pipelining.ScheduleZBVZeroBubble}[options.schedule]
    schedule = kind(stages if len(own) > 1 else stages[0], options.micro_batches, loss_fn=loss_of)
    return schedule, nn.ModuleList(modules), 0 in own, pieces - 1 in own


class Pipelined:
    def __init__(self, options, rank, ranks):
        self.schedule, self.modules, self.first, self.last = make_schedule(options, rank, ranks)

    def step(self, tokens, targets):
        losses = []
        arguments = (tokens,) if self.first else ()
        if self.last:
            self.schedule.step(*arguments, target=targets, losses=losses)
        else:
            self.schedule.step(*arguments)
        return float(sum(losses) / len(losses)) if self.last else 0.0


class Alone:
    def __init__(self, options):
        self.modules = nn.Sequential(*(make() for make in layer_makers(options.size)))
        self.micro_batches = options.micro_batches

    def step(self, tokens, targets):
        total = 0.0
        for x, y in zip(tokens.chunk(self.micro_batches), targets.chunk(self.micro_batches)):
            loss = loss_of(self.modules(x), y) / self.micro_batches
            loss.backward()
            total += loss.item()
        return total


def train(options, rank, ranks):
    torch.manual_seed(1)
    trained = Alone(options) if options.schedule == "alone" else Pipelined(options, rank, ranks)
    optimizer, kind = make_optimizer(trained.modules, options.lr)
    text = read_text(options.data)
    generator = torch.Generator().manual_seed(1)  # each rank draws the same windows
    times, losses = [], []
    for _ in range(options.steps):
        tokens, targets = windows(text, generator, options.batch * options.micro_batches, options.context)
        start = time.perf_counter()
        loss = trained.step(tokens, targets)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if ranks > 1:  # a step is over when all stages have ended it
            value = torch.tensor([loss])
            dist.all_reduce(value)
            loss = value.item()
        times.append(time.perf_counter() - start)
        losses.append(loss)
    return times, losses, kind


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedule", choices=["alone", "gpipe", "1f1b", "interleaved", "zbv"], default="1f1b")
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--cuts", default="")
    run(parser, "schedule", 2, train)


if __name__ == "__main__":
    main()
