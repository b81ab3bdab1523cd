#!/usr/bin/env python3
"""Measures the time from the command to the end of the first step, and that from the end of the last step to the exit,
for GPT-2 from a safetensors file, beside transformers in the same run.

    starts.py [--sluice PATH] [--before PATH] [--folder DIR] [--layers N] [--channels N] [--heads N] [--context N]
              [--threads N] [--megabytes N] [--rounds N] [--json FILE]

Needs torch, transformers and tokenizers. The shape is that of GPT-2 124M where nothing else is said. All train one
sequence a step with AdamW on a text of --megabytes: as bytes, with a vocabulary of 256, and in the tokens of a tokenizer
that is trained on it first, with GPT-2's. What a program keeps of a text between two runs is there from a run before. --before is the command of another
build. They take turns, and medians are printed, with the ratio to transformers.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
COMPARE = pathlib.Path(__file__).resolve().parents[1]
try:
    import tokenizers
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
except ImportError as missing:
    sys.exit(f"starts.py: {missing}; run it with a Python that has torch, transformers and tokenizers")


def make_text(path, megabytes):
    draw = random.Random(1)
    words = ["".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(draw.randint(2, 9))) for _ in range(20000)]
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(megabytes * 14):
            file.write(" ".join(draw.choices(words, k=11200))[:1 << 16] + "\n")


def make_tokenizer(text, path):
    made = tokenizers.ByteLevelBPETokenizer()
    made.train([text], vocab_size=5000)
    made.save(path)


def ours(args, sluice, folder, tokenizer, log):
    subprocess.run(["rm", "-rf", log], check=True)
    command = [sluice, "train", "--weights", f"{folder}/{'tokens' if tokenizer else 'bytes'}", "--data", f"{folder}/text", "--batch", "1", "--context",
               str(args.context), "--threads", str(args.threads), "--steps", "2", "--eval-batches", "0", "--schedule",
               "one_ahead", "--strategy", "dp", "--log", log]
    if tokenizer:
        command += ["--tokenizer", f"{folder}/tokenizer.json"]
    if args.no_hash and sluice == args.sluice:
        command += ["--no-hash"]
    began = time.time()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    ended = time.time()
    lines = [json.loads(line) for line in pathlib.Path(f"{log}/metrics.jsonl").read_text("utf-8").splitlines()]
    return lines[0]["time"] - began, ended - lines[1]["time"]


def theirs(args, folder, tokenizer):
    command = [sys.executable, str(COMPARE / "peers/transformers_start.py"), folder, str(args.context), str(args.threads),
               "tokens" if tokenizer else "bytes"]
    began = time.time()
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    ended = time.time()
    first, last = json.loads(said.decode().splitlines()[-1])
    return first - began, ended - last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=str(COMPARE.parents[1] / "build/release/bench/sluice"))
    parser.add_argument("--before")
    parser.add_argument("--folder", default=".")
    parser.add_argument("--json")
    parser.add_argument("--no-hash", action="store_true", help="end --sluice without the hash of the weights")
    for name, default in (("layers", 12), ("channels", 768), ("heads", 12), ("context", 128), ("threads", 2),
                          ("megabytes", 20), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    torch.manual_seed(1)
    table = {}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        make_text(f"{folder}/text", args.megabytes)
        make_tokenizer(f"{folder}/text", f"{folder}/tokenizer.json")
        for kind, vocabulary in (("tokens", 50257), ("bytes", 256)):
            config = GPT2Config(n_layer=args.layers, n_embd=args.channels, n_head=args.heads, vocab_size=vocabulary)
            GPT2LMHeadModel(config).save_pretrained(f"{folder}/{kind}")
        ways = {"transformers": lambda tokens: theirs(args, folder, tokens),
                "sluice": lambda tokens: ours(args, args.sluice, folder, tokens, f"{folder}/log")}
        if args.before:
            ways["before"] = lambda tokens: ours(args, args.before, folder, tokens, f"{folder}/log")
        for tokens in (False, True):
            runs = {name: [] for name in ways}
            for run in ways.values():
                run(tokens)  # files are in memory, and what is kept between runs is there
            for _ in range(args.rounds):
                for name, run in ways.items():
                    runs[name].append(run(tokens))
            what = "tokens" if tokens else "bytes"
            print(f"{what:>14} {'to step 1':>10} {'ratio':>6} {'the end':>8}   s")
            for name, times in runs.items():
                first, end = (statistics.median(pair[i] for pair in times) for i in (0, 1))
                ratio = first / statistics.median(pair[0] for pair in runs["transformers"])
                table[f"{name}, {what}"] = {"first_s": first, "end_s": end, "ratio": ratio}
                print(f"{name:>14} {first:10.3f} {ratio:6.2f} {end:8.3f}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    return 0


sys.exit(main())
