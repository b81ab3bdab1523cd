#!/usr/bin/env python3
"""Measures what --log costs as a whole: a GPT-2 is trained with a log and without one, by turns.

    log_cost.py [--sluice PATH] [--size NAME] [--steps N] [--pairs N] [--json FILE]

Each pair is two runs of the same steps, the one with --log first in every second pair. Processor time of a step (user and
system, of the whole run over its steps) is what a busy machine disturbs least; the median step by the clock stands beside
it. The cost is the median over pairs of what the run with a log took more."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile


def train(args, folder, log):
    out = folder / "run.json"
    command = [str(args.sluice), "train", "--size", args.size, "--steps", str(args.steps), "--eval-batches", "0",
               "--schedule", "one_ahead", "--json", str(out)] + (["--log", str(folder / "log"), "--overwrite"] if log else [])
    with open(folder / "out", "w+", encoding="utf-8") as text:
        run = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=text, stderr=text)
        _, code, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(code)
        if run.returncode:
            text.seek(0)
            sys.exit(f"log_cost.py: {' '.join(command)}: exit code {run.returncode}\n{text.read()}")
    return {"log": log, "cpu_ms": 1e3 * (used.ru_utime + used.ru_stime) / args.steps,
            "step_ms": 1e3 * json.loads(out.read_text())["runs"][0]["step_s"]}


def costs(pairs, figure):
    """Returns for each pair the per cent of the run without a log by which the other one took more."""
    return [100 * (on[figure] / off[figure] - 1) for on, off in pairs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", type=pathlib.Path, default="build/release/bench/sluice")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    pairs = []
    print(f"{'':>8} {'CPU ms a step':>20} {'step, ms':>20}\n{'pair':>8} {'log':>10} {'none':>9} {'log':>10} {'none':>9}")
    with tempfile.TemporaryDirectory() as name:
        for number in range(args.pairs):
            order = (True, False) if number % 2 else (False, True)
            rows = {log: train(args, pathlib.Path(name), log) for log in order}
            on, off = rows[True], rows[False]
            pairs.append((on, off))
            print(f"{number + 1:8} {on['cpu_ms']:10.2f} {off['cpu_ms']:9.2f} {on['step_ms']:10.2f} {off['step_ms']:9.2f}",
                  flush=True)
    for figure, words in (("cpu_ms", "processor time"), ("step_ms", "median step")):
        all_of_them = costs(pairs, figure)
        print(f"{words}: {statistics.median(all_of_them):+.2f} % with a log (pairs {min(all_of_them):+.2f} to "
              f"{max(all_of_them):+.2f} %)")
    if args.json:
        args.json.write_text(json.dumps({"size": args.size, "steps": args.steps,
                                         "pairs": [{"log": on, "none": off} for on, off in pairs]}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
