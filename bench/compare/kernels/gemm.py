#!/usr/bin/env python3
"""The products of `sluice-lab gemm` by PyTorch on one thread: PYTHON bench/compare/kernels/gemm.py [--rows N] [--json FILE], PYTHON
having torch.

Prints its billions of operations a second beside those of the `sluice` that SLUICE names (default:
build/release/bench/sluice), which runs before and after: the better one counts. Times are of the process's processor
time, as sluice-lab gemm's are."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("gemm.py: this Python has no torch; run it with one that has, as docs/benchmarks.md says")


def sluice(rows):
    command = [os.environ.get("SLUICE_LAB", "build/release/bench/sluice-lab"), "gemm", "--rows", str(rows)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[1:]
    return {tuple(f[:5]): float(f[5]) for f in (line.split() for line in lines)}


def torch_product(name, m, n, k, dtype):
    turned_a, turned_b = name in ("dW=x'dy", "dW=dy'x", "dwte"), name in ("y=xW'", "dx=dyW'", "logits")
    a = torch.rand(k, m, dtype=dtype).t() if turned_a else torch.rand(m, k, dtype=dtype)
    b = torch.rand(n, k, dtype=dtype).t() if turned_b else torch.rand(k, n, dtype=dtype)
    c = torch.empty(m, n, dtype=dtype)
    torch.mm(a, b, out=c)
    times = []
    for _ in range(9):
        begin = time.process_time()
        torch.mm(a, b, out=c)
        times.append(time.process_time() - begin)
    return 2e-9 * m * n * k / statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description="The products of `sluice-lab gemm` by PyTorch on one thread.")
    parser.add_argument("--rows", type=int, default=256, help="tokens of a micro-batch (default 256)")
    parser.add_argument("--json", help="write the rows to this file too")
    args = parser.parse_args()
    rows, found = args.rows, []
    torch.set_num_threads(1)
    before = sluice(rows)
    peer = {}
    for key in before:
        dtype = torch.bfloat16 if key[0] == "bf16" else torch.float32
        peer[key] = torch_product(key[1], *map(int, key[2:]), dtype)
    after = sluice(rows)
    print(f"PyTorch {torch.__version__}, {rows} rows, one thread: billions of operations a second")
    print(f"{'type':5} {'product':10} {'m':>6} {'n':>6} {'k':>6} {'sluice':>8} {'torch':>8} {'ratio':>6}")
    for key, theirs in peer.items():
        ours = max(before[key], after[key])
        found.append({"type": key[0], "product": key[1], "m": int(key[2]), "n": int(key[3]), "k": int(key[4]),
                      "sluice_gflops": ours, "pytorch_gflops": theirs})
        print(f"{key[0]:5} {key[1]:10} {key[2]:>6} {key[3]:>6} {key[4]:>6} {ours:8.1f} {theirs:8.1f} {ours / theirs:6.2f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"rows": found, "torch": torch.__version__}, file, indent=2)


main()
