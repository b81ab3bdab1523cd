#!/usr/bin/env python3
"""Attention of GPT-2 124M (12 heads of 64, causal) and BEiT beside PyTorch's scaled_dot_product_attention on one
thread: rounds by turns, the fastest of a round, the median over rounds. "!" falls short of the aim.

  ninja -C build/release attention_times
  python3 bench/compare/kernels/attention.py [--times build/release/bench/attention_times] [--rounds 7] [--json FILE]

It needs an interpreter that has torch (pip install torch numpy)."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
try:
    import torch  # noqa: E402
except ImportError:
    sys.exit("attention.py: this Python has no torch; run it with one that has, as docs/benchmarks.md says")

HEADS, HEAD_SIZE = 12, 64
# name, type, batch, tokens, causal, window, repeats
CASES = [
    ("gpt2 4x64", "fp32", 4, 64, 1, 0, 40),
    ("gpt2 4x64", "bf16", 4, 64, 1, 0, 40),
    ("gpt2 1x1024", "fp32", 1, 1024, 1, 0, 3),
    ("gpt2 1x1024", "bf16", 1, 1024, 1, 0, 3),
    ("beit 2x197", "fp32", 2, 197, 0, 0, 10),
    ("beit 2x197", "bf16", 2, 197, 0, 0, 10),
    ("beit 2x197 bias", "fp32", 2, 197, 0, 14, 10),
    ("beit 2x197 bias", "bf16", 2, 197, 0, 14, 10),
]
AIMS = {"fp32": 1.3, "bf16": 1.0}  # PyTorch's time over ours
BIAS_AIM = 1.25  # our time with bias and its gradient over ours without


def fastest(call, repeats):
    call()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


class Theirs:
    """The side of PyTorch in one case. A bias is a whole matrix there, gathered from the table by transformers'
    index."""

    def __init__(self, dtype, batch, tokens, causal, window):
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
        qkv = torch.rand(batch, tokens, 3, HEADS, HEAD_SIZE).mul(2).sub(1).to(dtype)
        self.inputs = [qkv[:, :, i].transpose(1, 2).detach().requires_grad_() for i in range(3)]
        self.causal, self.bias = bool(causal), None
        if window:
            self.bias = torch.randn(1, HEADS, tokens, tokens).to(dtype).requires_grad_()
        self.wanted = self.inputs + ([self.bias] if window else [])
        with torch.no_grad():
            self.dout = torch.rand_like(self.forward()).transpose(1, 2).contiguous().transpose(1, 2)

    def forward(self):
        return torch.nn.functional.scaled_dot_product_attention(
            *self.inputs, attn_mask=self.bias, is_causal=self.causal)

    def times(self, repeats):
        forward = fastest(self.forward, repeats)
        out = self.forward()
        return forward, fastest(
            lambda: torch.autograd.grad(out, self.wanted, self.dout, retain_graph=True), repeats)


def ours(process, dtype, batch, tokens, causal, window, repeats):
    process.stdin.write(f"{dtype} {batch} {tokens} {HEADS} {HEAD_SIZE} {causal} {window} {repeats}\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        sys.exit("attention_times ended early")
    return tuple(float(x) for x in line.split())


def measure(arguments):
    torch.manual_seed(1)
    theirs = [Theirs(*case[1:6]) for case in CASES]
    times = [{"ours": ([], []), "theirs": ([], [])} for _ in CASES]
    with subprocess.Popen([arguments.times], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(arguments.rounds):
            for case, peer, kept in zip(CASES, theirs, times):
                for who, pair in (("ours", ours(process, *case[1:])), ("theirs", peer.times(case[6]))):
                    for direction in range(2):
                        kept[who][direction].append(pair[direction])
        process.stdin.close()
    rows = []
    for case, kept in zip(CASES, times):
        for direction, name in enumerate(("forward", "backward")):
            rows.append({"case": case[0], "dtype": case[1], "direction": name,
                         "ours_s": statistics.median(kept["ours"][direction]),
                         "pytorch_s": statistics.median(kept["theirs"][direction])})
    return rows


def show(rows):
    print(f"{'':18}{'':6}{'':10}{'ours ms':>9}{'PyTorch ms':>12}{'times faster':>14}{'with bias':>11}")
    plain = {(row["dtype"], row["direction"]): row["ours_s"] for row in rows if row["case"] == "beit 2x197"}
    for row in rows:
        row["speedup"] = row["pytorch_s"] / row["ours_s"]
        mark = "!" if row["speedup"] < AIMS[row["dtype"]] else " "
        text = f"{row['case']:18}{row['dtype']:6}{row['direction']:10}{row['ours_s'] * 1e3:9.3f}"
        text += f"{row['pytorch_s'] * 1e3:12.3f}{row['speedup']:13.2f}{mark}"
        if row["case"].endswith("bias"):
            row["with_bias"] = row["ours_s"] / plain[row["dtype"], row["direction"]]
            text += f"{row['with_bias']:10.2f}" + ("!" if row["with_bias"] > BIAS_AIM else " ")
        print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", default="build/release/bench/attention_times")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = measure(arguments)
    show(rows)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "rounds": arguments.rounds, "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
