#!/usr/bin/env python3
"""Profiles of programs that train as DDP and FSDP do, on the host's CUDA and NCCL: sizes are exact, what the link hides
is marked, a run on one rank takes the mark away, `sluice plan` takes the profile, and records without times are refused
with the remedy. No time is compared; bench/nccl_profile.py prints how true they are.

    profiles.py --bed DIR:DIR --shim LIBRARY --programs DIR
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

SIZES = [98304, 49152, 147456, 196608]  # of layers, in bytes: what the programs need not round
LAYERS = "3,2,4,3"
SLUICE = os.environ["SLUICE_COMMAND"]
FULL, FREE = {"HOSTNCCL_BANDWIDTH": "5e6"}, {}


def expect(holds, fault):
    if not holds:
        sys.exit(f"profiles.py: {fault}")


def call(command, environment=None, fails=False):
    """Returns what a command said on both outputs; it must end well, or, if `fails`, with status 2."""
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=240, check=False)
    expect(done.returncode == (2 if fails else 0),
           f"{' '.join(command)}: it ended with status {done.returncode}\n{done.stdout}")
    return done.stdout


class Program:
    def __init__(self, options, name):
        self.path = os.path.join(options.programs, f"nccl_{name}")
        self.name = name
        self.bed = dict(os.environ, LD_LIBRARY_PATH=options.bed, LD_PRELOAD=options.shim)

    def record(self, folder, link, *more, time="1"):
        call([self.path, "--layers", LAYERS, "--bytes", ",".join(map(str, SIZES)), "--steps", "8", *more],
             dict(self.bed, SLUICE_SHIM_DIR=folder, SLUICE_SHIM_TIME=time, **link))
        return folder


def read(path):
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    expect([unit["parameters"] * 4 for unit in profile["units"]] == SIZES, f"{path}: sizes are not {SIZES}")
    expect([layer["name"] for layer in profile["layers"]] == [f"unit.{i}" for i in range(len(SIZES))],
           f"{path}: layers have other names")
    expect(profile["world"] == 2 and profile["reserved_bytes"] == 1 << 20, f"{path}: world or reserved bytes are wrong")
    return profile


def plan_with(profile, folder):
    for strategy in ("dp", "oss", "sdp", "fsdp", "auto"):
        plan = os.path.join(folder, f"{strategy}.json")
        call([SLUICE, "plan", "--profile", profile, "--strategy", strategy, "--effort", "0.1", "-o", plan])
        call([SLUICE, "check", "--profile", profile, "--plan", plan])
    call([SLUICE, "plan", "--profile", profile, "--world", "16", "--budget", "70%", "--effort", "0.1"])


def check_program(program, folder):
    def at(name):
        return os.path.join(folder, f"{program.name}-{name}")

    make = ["-o", at("profile.json"), "--reserved", "1MiB"]
    operation = {"ddp": "4 all_reduce", "fsdp": "4 reduce_scatter"}[program.name]
    free = program.record(at("free"), FREE, "--processes")
    call([SLUICE, "nccl", free, *make])
    expect(operation in read(at("profile.json"))["source"], f"{program.name}: the source does not say {operation}")
    plan_with(at("profile.json"), folder)

    full = program.record(at("full"), FULL)
    call([SLUICE, "nccl", full, *make])
    expect("Upper bounds" in read(at("profile.json"))["source"], f"{program.name}: a full link leaves no mark")
    alone = program.record(at("alone"), FREE, "-n", "1")
    call([SLUICE, "nccl", full, *make, "--compute", alone])
    expect("of a run on one rank" in read(at("profile.json"))["source"], f"{program.name}: the run on one rank is not said")

    said = call([SLUICE, "nccl", program.record(at("untimed"), FREE, time="0"), "-o", at("none.json")], fails=True)
    expect("SLUICE_SHIM_TIME=1" in said, f"{program.name}: the remedy is not there\n{said}")
    said = call([SLUICE, "nccl", alone, "-o", at("none.json")], fails=True)
    expect("one rank" in said and not os.path.exists(at("none.json")), f"{program.name}: one rank is no link\n{said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--bed", "--shim", "--programs"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="sluice-profiles-")
    try:
        for name in ("ddp", "fsdp"):
            check_program(Program(options, name), folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
