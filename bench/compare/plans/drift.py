#!/usr/bin/env python3
"""Measures whether a run notices that its times have changed: two ranks, one of which is slowed by 40 % after step 50
(a process of a lower priority computes on its core), and two ranks in network namespaces whose link is halved after
step 50. The script says after how many steps the run measured and planned again, and how far the new plan's prediction
is from the steps that followed.

    bench/compare/plans/drift.py [--json FILE]      the link needs root, iproute2 and nsenter

Prints a table ("!" falls short of the aim) and writes bench/results/drift.json. Results are kept in the folder (--folder),
so that the same command goes on where it was interrupted. SLUICE=the command.
"""
import argparse
import glob
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../peers"))
from kept_runs import ROOT, KeptRuns, add_model, add_places, find_sluice, model_options, settings_of, take_result
from results import machine, write

AIMS = {"steps": 40, "prediction": 0.10}
NAMESPACES = os.path.join(ROOT, "bench/compare/networks/namespaces.sh")
# The scheduler gives a process of nice 4 a weight of 0.41 of that of nice 0: the rank beside it takes 1.41 times as long.
SLOWED_BY_40_PERCENT = 4


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each kind (default 3)")
    parser.add_argument("--steps", type=int, default=120, metavar="N", help="of a run (default 120)")
    parser.add_argument("--after", type=int, default=50, metavar="N", help="step after which times change (default 50)")
    parser.add_argument("--kinds", default="rank,link", metavar="LIST", help="rank, link (default both)")
    parser.add_argument("--rate", default="1gbit", metavar="RATE", help="of the link (default 1gbit)")
    parser.add_argument("--halved", default="500mbit", metavar="RATE", help="(default 500mbit)")
    add_model(parser)
    add_places(parser, "drift")
    return parser.parse_args()


def children_of(process):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == process:
                found.append(int(name))
    return found


def ranks_below(process):
    """Returns the processes of the ranks: those below this process that train."""
    found = []
    for child in children_of(process):
        try:
            with open(f"/proc/{child}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"train" in words[1:2] and words[0].endswith(b"sluice"):
            found.append(child)
        found += ranks_below(child)
    return found


class SlowRank:
    """Slows a rank: rank r computes on core r alone, and `change` starts a busy process on core 1."""

    def __init__(self, options, command):
        self.command = [find_sluice(), "run", "-n", "2", "--", "bash", "-c", 'exec taskset -c "$RANK" "$@"', "rank", *command]
        self.other = None

    def change(self, process):
        self.other = subprocess.Popen(["taskset", "-c", "1", "nice", "-n", str(SLOWED_BY_40_PERCENT), sys.executable, "-c",
                                       "while True: pass"])

    def end(self):
        if self.other:
            self.other.kill()
            self.other.wait()


class HalvedLink:
    def __init__(self, options, command):
        self.command = [NAMESPACES, "-n", "2", "--rate", options.rate, "--burst", "1mb", "--only", "0", "--", *command]
        self.halved = options.halved

    def change(self, process):
        ranks = ranks_below(process)
        if len(ranks) != 2:
            raise LookupError(f"{len(ranks)} ranks found, not 2")
        for rank in ranks:
            subprocess.run(["nsenter", "-t", str(rank), "-n", "tc", "qdisc", "change", "dev", "net0", "root", "handle", "1:",
                            "tbf", "rate", self.halved, "burst", "1mb", "latency", "50ms"], check=True)

    def end(self):
        pass


KINDS = {"rank": SlowRank, "link": HalvedLink}


def change_when_saved(change, run, folder, errors):
    """Waits until the run has saved, which it does at the step after which its times are to change, and changes
    them."""
    while run.poll() is None and not glob.glob(os.path.join(folder, "step-*")):
        time.sleep(0.002)
    try:
        if run.poll() is None:
            change.change(run.pid)
    except (OSError, subprocess.CalledProcessError, LookupError) as error:
        errors.append(str(error))


def follow(options, kind, scratch):
    """Runs, changes times after the step, and returns what was seen."""
    saved = os.path.join(options.folder, "saved")
    shutil.rmtree(saved, ignore_errors=True)
    command = [find_sluice(), "train", *model_options(options), "--steps", str(options.steps), "--eval-batches", "0",
               "--save", saved, "--save-every", str(options.after), "--replan-trials", "0", "--json", scratch]
    change = KINDS[kind](options, command)
    environment = os.environ | {"SLUICE_LOG_LEVEL": "info", "SLUICE": find_sluice()}
    run = subprocess.Popen(change.command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    errors = []
    changing = threading.Thread(target=change_when_saved, args=(change, run, saved, errors))
    changing.start()
    try:
        lines = list(run.stdout)
    finally:
        code = run.wait()
        changing.join()
        change.end()
        shutil.rmtree(saved, ignore_errors=True)
    if code or errors:
        sys.exit("\n" + "".join(lines) + "".join(errors) + f"\ncode {code}")
    result = take_result(scratch)
    found = [re.search(r"step (\d+): steps take .*measuring and planning again", line) for line in lines]
    return {"noticed": [{"step": int(match[1]), "why": match[0]} for match in found if match],
            "plans": [line.strip() for line in lines if re.search(r"\bplan \d+:", line)],
            "prediction": result["prediction"], "elapsed_s": result["elapsed_s"], "weights_sha256": result["weights_sha256"]}


def row_of(kind, round_number, after, run):
    elapsed = run["elapsed_s"]
    spent = [end - begin for begin, end in zip([0] + elapsed, elapsed)]
    later = [one["step"] - after for one in run["noticed"] if one["step"] > after]
    predicted = run["prediction"]["predicted"]["step_s"]
    measured = statistics.median(spent[-20:])
    return {"kind": kind, "round": round_number, "noticed_after_steps": later[0] if later else None,
            "noticed_before": any(one["step"] <= after for one in run["noticed"]),
            "step_before_s": statistics.median(spent[:after][-20:]), "step_s": measured, "predicted_step_s": predicted,
            "ratio": predicted / measured, "run": run}


def show(rows):
    print("ms a step: before, after, as the last plan predicted")
    print(f"{'what changed':14}{'before':>8}{'after':>8}{'predicted':>11}{'ratio':>7}  noticed after")
    for row in rows:
        late = row["noticed_after_steps"] is None or row["noticed_after_steps"] > AIMS["steps"]
        missed = abs(row["ratio"] - 1) > AIMS["prediction"]
        noticed = "never" if row["noticed_after_steps"] is None else f"{row['noticed_after_steps']} steps"
        noticed += ", and before" if row["noticed_before"] else ""
        print(f"{row['kind']:14}{1e3 * row['step_before_s']:8.1f}{1e3 * row['step_s']:8.1f}{1e3 * row['predicted_step_s']:11.1f}"
              f"{row['ratio']:7.3f}{'!' if missed else ' '} {noticed}{'!' if late else ''}")


def main():
    options = parse()
    kinds = options.kinds.split(",")
    runs = KeptRuns(options.folder, settings_of(options), options.rounds * len(kinds))
    rows = []
    for round_number in range(options.rounds):
        for kind in kinds:
            run = runs.take(f"{kind}.{round_number}",
                            lambda k=kind: follow(options, k, os.path.join(options.folder, "scratch")))
            rows.append(row_of(kind, round_number, options.after, run))
    runs.end()
    show(rows)
    write(options.json, {"rows": rows, "environment": machine()})


if __name__ == "__main__":
    main()
