#!/usr/bin/env python3
"""Measures what a second compute thread of a rank brings: a step of `sluice train` with 1 thread and with 2, by turns.

    threads.py [--sluice PATH] [--size NAME] [--context N] [--batch N] [--threads N] [--precisions fp32,bf16] [--steps N]
               [--rounds N] [--json FILE]

Prints the seconds of a step and those of the processor that it takes, medians over rounds. A rank's communication thread,
which carries updates out, has a core of its own beside one compute thread and none beside as many as there are cores:
so one thread is measured twice, on all cores and bound to one. `efficiency` is the step of one thread by that of N
threads times N: from the clock, against the run that is bound, and from the seconds of the processor, which other
programs on the machine disturb less. Threads sleep where they wait, so that waiting takes no such seconds.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile


def processor_seconds():
    """Returns the seconds of programs that have ended, without those of the kernel: what it takes to give a run its
    memory differs by seconds from run to run."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def train(args, precision, threads, cores, steps, folder):
    """Returns the processor's seconds of the whole run, and the seconds from the end of one step to that of the next."""
    log = os.path.join(folder, "log")
    subprocess.run(["rm", "-rf", log], check=True)
    before = processor_seconds()
    subprocess.run(["taskset", "-c", cores, args.sluice, "train", "--size", args.size, "--data", f"{folder}/text", "--batch",
                    str(args.batch), "--context", str(args.context), "--threads", str(threads), "--steps", str(steps),
                    "--precision", precision, "--eval-batches", "0", "--schedule", "one_ahead", "--strategy", "dp",
                    "--no-hash", "--log", log], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, GOMP_SPINCOUNT="0", OMP_WAIT_POLICY="passive"))
    used = processor_seconds() - before
    ends = [json.loads(line)["time"] for line in pathlib.Path(f"{log}/metrics.jsonl").read_text("utf-8").splitlines()]
    return used, [after - end for end, after in zip(ends, ends[1:])]


def measure(args, precision, threads, cores, folder):
    """A long run less a short one is what steps alone take."""
    short, _ = train(args, precision, threads, cores, 2, folder)
    long, steps = train(args, precision, threads, cores, 2 + args.steps, folder)
    return (long - short) / args.steps, statistics.median(steps[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=str(pathlib.Path(__file__).resolve().parents[3] / "build/release/bench/sluice"))
    parser.add_argument("--size", default="small")
    parser.add_argument("--precisions", default="fp32,bf16")
    for name, default in (("context", 512), ("batch", 1), ("threads", 2), ("steps", 3), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json")
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < args.threads:
        sys.exit(f"threads.py: {args.threads} threads want as many cores, and there are {len(cores)}")
    every = ",".join(map(str, cores[:args.threads]))
    ways = {"1 thread, all cores": (1, every), "1 thread, one core": (1, str(cores[0])),
            f"{args.threads} threads": (args.threads, every)}
    table = {}
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(f"{folder}/text").write_bytes(bytes(range(32, 127)) * 4000)
        for precision in args.precisions.split(","):
            runs = {way: [] for way in ways}
            for _ in range(args.rounds):
                for way, (threads, bound) in ways.items():
                    runs[way].append(measure(args, precision, threads, bound, folder))
            rows = {way: [statistics.median(run[i] for run in taken) for i in (0, 1)] for way, taken in runs.items()}
            one, many = rows["1 thread, one core"], rows[f"{args.threads} threads"]
            print(f"{precision:>20} {'step':>8} {'processor':>10}   s")
            for way, (processor, step) in rows.items():
                print(f"{way:>20} {step:8.3f} {processor:10.3f}")
            print(f"{'efficiency':>20} {one[1] / (args.threads * many[1]):8.2f} {one[0] / many[0]:10.2f}", flush=True)
            table[precision] = {way: {"step_s": step, "processor_s": processor} for way, (processor, step) in rows.items()}
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    return 0


sys.exit(main())
