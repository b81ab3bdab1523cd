#!/usr/bin/env python3
"""Measures how true the profile of an unchanged NCCL program is: programs whose layers take known times run on NCCL and
CUDA over the host's memory with the shim, `sluice nccl -o` makes profiles of them, and both are printed next to each
other.

    bench/nccl_profile.py [--steps N] [--scale X] [BUILD]

BUILD is a folder that is built already (build/release); the programs are in BUILD/tests/nccl. --scale makes all layers
longer, for machines with other work to do. A time with a > is marked in the profile's source as an upper bound. The
truth is what the programs' own clocks say, for a busy machine wakes sleepers late. The first unit of the backward and
all forwards are estimates; their sum with the optimizer is what can be seen ("rest").
Exit code 1: a size is wrong, an unmarked time is off by more than 10 %, a bound is below the truth, a step is off by
more than 5 %, or `sluice plan` does not take a profile.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BACKWARD_MS = [5, 8, 6, 12, 4, 10]
GRAIN = 48  # elements: what the programs round sizes down to
FAST, SLOW = (2e9, 20), (25e6, 200)  # links: bytes a second, latency of an operation in us
CASES = [
    # what it is, program, KiB of each layer, link, what else to say to the program
    ("DDP, fast link", "ddp", [128, 512, 256, 64, 512, 256], FAST, []),
    ("DDP, full link", "ddp", [512, 256], SLOW, []),
    ("FSDP, fast link", "fsdp", [128, 256, 256, 256, 128, 64], FAST, []),
    ("FSDP without prefetching", "fsdp", [256, 128, 256], FAST, ["--no-prefetch"]),
    ("FSDP, full link", "fsdp", [512, 256], SLOW, []),
]
SCHEDULES = {"ddp": ("dp", "bucketed"), "fsdp": ("fsdp", "one_ahead")}  # what the programs do themselves


class Bench:
    """The build whose programs are run, and what was found wrong."""

    def __init__(self, build, steps, scale):
        self.build = os.path.abspath(build)
        self.steps = steps
        self.backward_s = [ms * scale * 1e-3 for ms in BACKWARD_MS]
        self.faults = []

    def at(self, *path):
        return os.path.join(self.build, *path)

    def call(self, command, environment=None):
        """Returns what a command printed on standard output, and on standard error."""
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: it ended with status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def run(self, program, sizes, link, options, ranks, records):
        """Runs a program with the shim. Returns what its own clock says: the seconds of a step, and of the slowest
        rank's backwards and all the rest."""
        environment = dict(os.environ, SLUICE_SHIM_DIR=records, SLUICE_SHIM_TIME="1",
                           LD_LIBRARY_PATH=f"{self.at('tests/nccl/bed/hostcuda')}:{self.at('tests/nccl/bed/hostnccl')}",
                           HOSTNCCL_BANDWIDTH=str(link[0]), HOSTNCCL_LATENCY=str(link[1] if ranks > 1 else 1),
                           LD_PRELOAD=self.at("plugins/nccl/shim/libsluice_nccl.so"))
        layers = ",".join(f"{s * 1e3:g}" for s in self.backward_s)
        command = [self.at("tests/nccl", f"nccl_{program}"), "-n", str(ranks), "--processes", "--layers", layers,
                   "--bytes", ",".join(map(str, sizes)), "--optimizer", "1", "--steps", str(self.steps), *options]
        _, said = self.call(command, environment)
        lines = re.findall(r"^compute_s \d+ (.*)$", said, re.M)
        times = [max(column) for column in zip(*[map(float, line.split()) for line in lines])]
        count = len(self.backward_s)
        return float(re.search(r"^step_s (\S+)$", said, re.M)[1]), times[count:2 * count], times[-1]

    def expect(self, holds, fault):
        if not holds:
            self.faults.append(fault)
            print("   ", fault)


def marked_units(source):
    """Returns the numbers of the units whose backward the profile's source calls an upper bound, and whether forwards
    are bounds too."""
    found = re.search(r"Upper bounds: the backward of (.*?), whose", source)
    marked = set()
    for first, last in re.findall(r"unit\.(\d+)(?: to unit\.(\d+))?", found[1] if found else ""):
        marked |= set(range(int(first), int(last or first) + 1))
    return marked, "all forwards" in source


def check_profile(bench, name, path, sizes, truths, plan, prefetches):
    step_s, truth, true_rest = truths
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    backward = [layer["backward_s"] for layer in profile["layers"]]
    forward = [layer["forward_s"] for layer in profile["layers"]]
    marked, forward_marked = marked_units(profile["source"])
    elements = [size // 4 // GRAIN * GRAIN for size in (sizes + sizes[-1:] * len(truth))[:len(truth)]]
    bench.expect([unit["parameters"] for unit in profile["units"]] == elements, f"{name}: sizes are wrong")

    print(f"  {name}")
    cells = []
    for layer in range(len(truth) - 1):
        cells.append(f"{'>' if layer in marked else ''}{backward[layer] * 1e3:.2f} ({truth[layer] * 1e3:.2f})")
        off = backward[layer] / truth[layer] - 1
        bench.expect(layer in marked or abs(off) <= 0.1, f"{name}: unit.{layer} is off by {off:.1%} without a mark")
        bench.expect(layer not in marked or off >= -0.01, f"{name}: unit.{layer} is {-off:.1%} below the truth")
    rest = sum(forward) + backward[-1]
    off = rest / true_rest - 1
    bench.expect(off >= -0.05 if forward_marked else abs(off) <= 0.1, f"{name}: the rest is off by {off:.1%}")
    print(f"    backward ms (truth): {', '.join(cells)}; rest {'>' if forward_marked else ''}{rest * 1e3:.2f} "
          f"({true_rest * 1e3:.2f})")

    seen_s = float(re.search(r"A step takes (\S+) s", profile["source"])[1])
    with open(plan, encoding="utf-8") as file:
        forecast_s = json.load(file)["forecast"]["step_s"]
    print(f"    step {step_s * 1e3:.2f} ms by the program, "
          f"{seen_s * 1e3:.2f} by the records ({seen_s / step_s - 1:+.1%}), "
          f"{forecast_s * 1e3:.2f} forecast with these times ({forecast_s / step_s - 1:+.1%})")
    link = profile["link"]
    line = link.get("reduce_scatter", link)
    print(f"    link {line['bytes_per_s'] / 1e9:.2f} GB/s, {line['latency_s'] * 1e6:.1f} us a message")
    bench.expect(abs(seen_s / step_s - 1) <= 0.05, f"{name}: the step that was seen is off")
    bounds = marked or forward_marked
    longest = 1.05 if not bounds else float("inf")
    shortest = 0.95 if prefetches else 0  # a plan prefetches even where the program does not
    bench.expect(shortest <= forecast_s / step_s <= longest, f"{name}: the forecast of the step is off")


def plan_all(bench, program, profile, plan):
    """Plans with each strategy; the plan of what the program itself does is written."""
    sluice = bench.at("bench/sluice")
    own, schedule = SCHEDULES[program]
    for strategy in ("dp", "oss", "sdp", "fsdp", "auto"):
        bench.call([sluice, "plan", "--profile", profile, "--strategy", strategy, "--effort", "0.2"])
    bench.call([sluice, "plan", "--profile", profile, "--strategy", own, "--schedule", schedule, "-o", plan])


def run_case(bench, folder, title, program, kibs, link, options):
    sizes = [kib * 1024 for kib in kibs]
    os.makedirs(folder)
    ranks_dir, alone_dir = os.path.join(folder, "ranks"), os.path.join(folder, "alone")
    profile, plan = os.path.join(folder, "profile.json"), os.path.join(folder, "plan.json")
    sluice = bench.at("bench/sluice")
    truths = bench.run(program, sizes, link, options, 2, ranks_dir)
    _, alone_s, alone_rest_s = bench.run(program, sizes, link, options, 1, alone_dir)
    print(f"{title}: {link[0] / 1e9:g} GB/s, {link[1]} us an operation")
    for name, more, truth in (("by itself", [], truths),
                              ("with --compute", ["--compute", alone_dir], (truths[0], alone_s, alone_rest_s))):
        bench.call([sluice, "nccl", ranks_dir, "-o", profile, *more])
        plan_all(bench, program, profile, plan)
        check_profile(bench, name, profile, sizes, truth, plan, "--no-prefetch" not in options)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--scale", type=float, default=1)
    options = parser.parse_args()
    bench = Bench(options.build, options.steps, options.scale)
    folder = tempfile.mkdtemp(prefix="sluice-nccl-profile-")
    try:
        for number, case in enumerate(CASES):
            run_case(bench, os.path.join(folder, str(number)), *case)
    finally:
        shutil.rmtree(folder)
    print(f"{len(bench.faults)} faults" if bench.faults else "all as it must be",
          f"({os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}: a load beyond the cores makes steps longer)")
    sys.exit(1 if bench.faults else 0)


if __name__ == "__main__":
    main()
