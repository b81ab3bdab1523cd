#!/usr/bin/env python3
"""`sluice-lab study ablation`, a profile at a time: it takes hours, so each profile's rows are kept in a folder, and the same
command goes on where it was interrupted. Prints the tables of docs/planning.md from all rows that are there, and writes them
to bench/results/study_ablation.json.

    bench/compare/plans/study_ablation.py [--profiles N] [--minutes M]      --minutes: ends with what is there after M minutes

SLUICE_LAB=the command.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../peers"))
from kept_runs import ROOT, KeptRuns, add_places
from results import machine, write

PARTS = ("strategies", "order", "blocks", "recomputation")
ALL = ", ".join(PARTS)
NONE = "none of them"
LINKS = ("slow", "even", "fast")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--profiles", type=int, default=200, metavar="N", help="drawn profiles (default 200)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the first one (default 1)")
    parser.add_argument("--budgets", type=int, default=5, metavar="N", help="of each (default 5)")
    parser.add_argument("--effort", type=float, default=0, metavar="S", help="of a plan (default: the planner's own)")
    parser.add_argument("--minutes", type=float, default=math.inf, metavar="M")
    add_places(parser, "study_ablation")
    return parser.parse_args()


def study(options, lab, seed):
    command = [lab, "study", "ablation", "--seed", str(seed), "--count", "1", "--budgets", str(options.budgets), "--json", "-"]
    command += ["--effort", str(options.effort)] if options.effort else []
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"\n{done.stderr}{' '.join(command)}: code {done.returncode}")
    return json.loads(done.stdout)["rows"]


def arm_of(parts):
    return ", ".join(part for part in PARTS if part in parts) or NONE


# From none of the parts to all of them.
ARMS = [arm_of([part for place, part in enumerate(PARTS) if arm >> place & 1]) for arm in range(1 << len(PARTS))]


def speed_ups(rows, arm, than):
    """Returns how many times faster `arm` is than `than` in each case in which both fit, sorted, and how often only
    `arm` fits."""
    steps = [(row["step_s"][arm], row["step_s"][than]) for row in rows]
    return sorted(b / a for a, b in steps if a and b), sum(bool(a and not b) for a, b in steps)


def at_share(values, share):
    return values[int(share * (len(values) - 1) + 0.5)]


def show_arms(rows):
    print("| parts | mean | 10th percentile | median | 90th percentile | fits where none of the parts does |")
    print("|---|---|---|---|---|---|")
    for name in ARMS[1:]:
        both, only = speed_ups(rows, name, NONE)
        if both:
            print(f"| {name} | {statistics.fmean(both):.3f} | {at_share(both, 0.1):.3f} | {at_share(both, 0.5):.3f} | "
                  f"{at_share(both, 0.9):.3f} | {only} |")


def show_parts(rows, to_others):
    shares = sorted({row["budget_share"] for row in rows})
    cases = [[row for row in rows if row["budget_share"] == share] for share in shares]
    cases += [[row for row in rows if row["link"] == link] for link in LINKS] + [rows]
    print(f"\nAdded to {'all others' if to_others else 'none of the parts'}:\n")
    print("| part | " + " | ".join([f"{share:.0%}".replace("%", " %") for share in shares] +
                                   [f"{link} link" if link == LINKS[0] else link for link in LINKS]) + " | all |")
    print("|---" * (len(cases) + 1) + "|")
    for part in PARTS if to_others else (*PARTS, ALL):
        than = arm_of([other for other in PARTS if other != part]) if to_others else NONE
        arm = ALL if to_others else part
        cells = []
        for case in cases:
            both, only = speed_ups(case, arm, than)
            cells.append((f"{statistics.fmean(both):.3f}" if both else "-") + (f" (+{only})" if only else ""))
        print(f"| {'all four' if part == ALL else part} | " + " | ".join(cells) + " |")


def show_slower(rows):
    """Prints how often another arm is faster than all parts together."""
    behind = [row["step_s"][ALL] / min(step_s for step_s in row["step_s"].values() if step_s) - 1 for row in rows
              if row["step_s"][ALL]]
    worse = [one for one in behind if one > 0.001]
    print(f"\nin {len(worse)} of {len(behind)} cases another arm is faster than all parts by more than 0.1 %; the distance is "
          f"{statistics.fmean(behind):.1%} in the mean and {max(behind):.1%} at most")


def main():
    options = parse()
    lab = os.path.realpath(os.environ.get("SLUICE_LAB", os.path.join(ROOT, "build/release/bench/sluice-lab")))
    settings = {"seed": options.seed, "budgets": options.budgets, "effort": options.effort}
    runs = KeptRuns(options.folder, settings, options.profiles, lab)
    began, rows, profiles = time.monotonic(), [], 0
    for seed in range(options.seed, options.seed + options.profiles):
        if not os.path.exists(runs.path(str(seed))) and time.monotonic() - began > 60 * options.minutes:
            break
        rows += runs.take(str(seed), lambda s=seed: study(options, lab, s))
        profiles += 1
    runs.end()
    if not rows:
        sys.exit("no profile is done")
    both, _ = speed_ups(rows, ALL, NONE)
    print(f"{profiles} profiles, {len(rows)} cases; both fit in {len(both)}\n")
    show_arms(rows)
    show_parts(rows, False)
    show_parts(rows, True)
    show_slower(rows)
    for row in rows:  # the names of the arms, which each row repeats, are most of a row
        row["step_s"] = [row["step_s"][arm] and float(f"{row['step_s'][arm]:.6g}") for arm in ARMS]
    write(options.json, {"profiles": profiles, "arms": ARMS, "rows": rows, "environment": machine()})


if __name__ == "__main__":
    main()
