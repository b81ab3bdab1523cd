#!/usr/bin/env python3
"""Documents of log-normal length (deviation 1): what sorting by length inside groups of 50 steps gives, beside the drawn
order.

    length_groups.py [--sluice PATH] [--steps N] [--seeds N] [--size NAME] [--ways NAMES] [--json FILE]

Documents are words of the system's licences, from drawn places, of a median of a fifth of the context (each byte a
token), cut at the context; 8 a step, GPT-2 of --size (mini, or nano). For each seed three runs:

  mixed    groups of 50 steps, a step of 4 micro-batches of 2: each of like length, and the step of all lengths
  alike    groups of 50 steps, a step of one micro-batch of 8, all of like length
  drawn    one micro-batch of 8, as they are drawn

The share of padding, real tokens a second (from the sum of step times), and the loss on held-out documents after --steps
(2000)."""
import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

LICENCES = pathlib.Path("/usr/share/common-licenses")
CONTEXTS, DOCUMENTS = {"nano": 128, "mini": 256}, 20000
WAYS = {"mixed": (50, 2, 4), "alike": (50, 8, 1), "drawn": (1, 8, 1)}  # steps of a group, batch, micro-batches


def write_documents(path, median):
    random.seed(1)
    text = " ".join(" ".join(p.read_text(errors="replace").split()) for p in sorted(LICENCES.iterdir())
                    if p.is_file() and not p.is_symlink())
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(DOCUMENTS):
            length = max(8, int(median * math.exp(random.gauss(0, 1))))
            at = random.randrange(len(text) - length if length < len(text) // 2 else 1)
            file.write(json.dumps({"text": text[at:at + length]}) + "\n")


def train(args, data, folder, seed, way):
    group, batch, micro_batches = WAYS[way]
    out = folder / "run.json"
    command = [args.sluice, "train", "--size", args.size, "--context", str(CONTEXTS[args.size]), "--data", data,
               "--sequences", "documents", "--length-groups", str(group), "--batch", str(batch), "--micro-batches",
               str(micro_batches), "--steps", str(args.steps), "--seed",
               str(seed), "--eval-batches", "100", "--schedule", "one_ahead", "--json", out]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"length_groups.py: {' '.join(map(str, command))}: exit code {run.returncode}\n{run.stderr}")
    result = json.loads(out.read_text())["runs"][0]
    examples = result["examples"]
    return {"seed": seed, "way": way, "padding": 1 - examples["tokens"] / examples["places"],
            "tokens_per_s": examples["tokens"] / result["train_s"], "held_out_loss": result["evaluation_loss"],
            "cut": examples["cut"], "examples": examples["taken"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", type=pathlib.Path, default="build/release/bench/sluice")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--size", default="mini", choices=CONTEXTS)
    parser.add_argument("--ways", default="mixed,alike,drawn")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_documents(folder / "documents.jsonl", CONTEXTS[args.size] // 5)
        print(f"{'seed':>4} {'way':>6} {'padding':>8} {'tokens/s':>9} {'held-out':>9}")
        for seed in range(1, args.seeds + 1):
            found = {}
            for way in args.ways.split(","):
                row = found[way] = train(args, folder / "documents.jsonl", folder, seed, way)
                rows.append(row)
                print(f"{seed:4} {way:>6} {100 * row['padding']:6.1f} % {row['tokens_per_s']:9.0f} "
                      f"{row['held_out_loss']:9.4f}", flush=True)
            for way in found if "drawn" in found else ():
                if way != "drawn":
                    print(f"     {way}: real tokens a second x {found[way]['tokens_per_s'] / found['drawn']['tokens_per_s']:.2f}, "
                          f"held-out loss x {found[way]['held_out_loss'] / found['drawn']['held_out_loss']:.4f}", flush=True)
    if args.json:
        args.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
