#!/usr/bin/env python3
"""Measures how long a save of GPT-2 with AdamW holds the training, and how long it takes, beside PyTorch's, in the same
run.

    saves.py [--sluice PATH] [--before PATH] [--folder DIR] [--size NAME] [--context N] [--threads N] [--rounds N]
             [--peers LIST] [--json FILE]

--before is the command of another build, which takes turns with --sluice. --peers: save (torch.save, fsync, rename),
async (torch.distributed.checkpoint.async_save), with commas between, or none; both need torch. All write to --folder,
on the disk that is to be measured, and keep one checkpoint. Medians over all saves but the last of a run, which nothing
comes after:

    held     from the end of the step before to the beginning of the next one
    slower   what the three steps behind it took longer than a step without a save
    last     the last save of a run, which is awaited
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

STEPS, EVERY, BEHIND = 20, 5, 3
COMPARE = pathlib.Path(__file__).resolve().parents[1]


def cost_of(steps):
    """steps: (end on the clock, length) of each, in order. The saves lie behind every EVERY-th."""
    usual = statistics.median(length for i, (_, length) in enumerate(steps) if i % EVERY in (EVERY - 1, 0) and i > 1)
    held, slower = [], []
    for i in range(EVERY - 1, len(steps) - BEHIND, EVERY):
        held.append(steps[i + 1][0] - steps[i][0] - steps[i + 1][1])
        slower.append(sum(steps[i + b][1] for b in range(1, 1 + BEHIND)) - BEHIND * usual)
    return {"held": held, "slower": slower, "usual": usual}


def ours(args, sluice):
    with tempfile.TemporaryDirectory(dir=args.folder) as work:
        environment = dict(os.environ, SLUICE_CHECKPOINT_KEEP="1")
        command = [sluice, "train", "--size", args.size, "--batch", "1", "--context", str(args.context), "--threads",
                   str(args.threads), "--steps", str(STEPS), "--eval-batches", "0", "--schedule", "one_ahead", "--strategy",
                   "dp", "--save", f"{work}/run", "--save-every", str(EVERY), "--log", f"{work}/log", "--json",
                   f"{work}/result.json"]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        lines = [json.loads(line) for line in pathlib.Path(f"{work}/log/metrics.jsonl").read_text("utf-8").splitlines()]
        lines = [line for line in lines if "step_s" in line]
        result = json.loads(pathlib.Path(f"{work}/result.json").read_text("utf-8"))["runs"][0]
        saved = os.stat(f"{work}/run/step-{STEPS:06}/manifest.json").st_mtime
        cost = cost_of([(line["time"], line["step_s"]) for line in lines])
        cost["last"] = [saved - lines[-1]["time"]]
        if result.get("saves"):
            cost["held_s"] = [result["saves"]["held_s"]]
            cost["whole_s"] = [result["saves"]["whole_s"]]
        return cost


def theirs(args, way):
    with tempfile.TemporaryDirectory(dir=args.folder) as work:
        command = [sys.executable, str(COMPARE / "peers/pytorch_saves.py"), "--way", way, "--size", args.size, "--context",
                   str(args.context), "--threads", str(args.threads), "--steps", str(STEPS), "--every", str(EVERY), "--folder",
                   work]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        result = json.loads(said.decode().splitlines()[-1])
        cost = cost_of([tuple(step) for step in result["steps"]])
        cost["last"] = [result["last"]]
        return cost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=str(COMPARE.parents[1] / "build/release/bench/sluice"))
    parser.add_argument("--before")
    parser.add_argument("--folder", default=".")
    parser.add_argument("--size", default="small")
    parser.add_argument("--peers", default="save,async")
    parser.add_argument("--json")
    for name, default in (("context", 256), ("threads", 2), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    ways = {"sluice": lambda: ours(args, args.sluice)}
    if args.before:
        ways["before"] = lambda: ours(args, args.before)
    for peer in args.peers.split(","):
        if peer != "none":
            ways[f"torch {peer}"] = lambda peer=peer: theirs(args, peer)
    all_costs = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, run in ways.items():
            os.sync()
            all_costs[name].append(run())
            time.sleep(1)
    free = shutil.disk_usage(args.folder).free
    print(f"{'':>12} {'held':>8} {'slower':>8} {'last':>8} {'step':>8}   s, medians; {free >> 30} GiB are free")
    table = {}
    for name, costs in all_costs.items():
        row = {key: statistics.median(value for cost in costs for value in cost.get(key, []) or [float("nan")])
               for key in ("held", "slower", "last", "held_s", "whole_s")}
        row["step"] = statistics.median(cost["usual"] for cost in costs)
        table[name] = row
        print(f"{name:>12} {row['held']:8.3f} {row['slower']:8.3f} {row['last']:8.3f} {row['step']:8.3f}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    return 0


sys.exit(main())
