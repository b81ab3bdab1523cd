#!/usr/bin/env python3
"""Measures what plans of their own bring to short steps: `sluice estimate` of a step of each length under the plan of
the longest one, and under a plan that was made for that length, within the same budget. Nothing runs.

usage: length_plans.py SLUICE [OPTION OF sluice estimate]..."""
import json
import subprocess
import sys

CONTEXT, LENGTHS, BUDGETS = 1024, (128, 256, 512), (80, 60, 50, 40, 30)
USUAL = ["-n", "8", "--ranks-a-host", "1", "--size", "medium", "--batch", "4", "--pace", "10000gflops,800GB", "--throttle",
         "10gbit,50us"]


def estimate(sluice, options):
    """The JSON of one estimate; None if nothing fits."""
    made = subprocess.run([sluice, "estimate", *options, "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if made.returncode:
        return None
    return json.loads(made.stdout)


def main():
    sluice, options = sys.argv[1], sys.argv[2:] or USUAL
    gains = []
    print(f"{'budget':>8} {'length':>7} {'longest plan':>13} {'own plan':>10} {'faster':>8} {'own bytes / budget':>20}")
    for share in BUDGETS:
        stretches = ",".join(f"{length}@{i + 1}" for i, length in enumerate(LENGTHS)) + f",{CONTEXT}"
        whole = estimate(sluice, [*options, "--context", str(CONTEXT), "--budget", f"{share}%", "--curriculum", stretches,
                                  "--steps", str(len(LENGTHS) + 1)])
        if not whole:
            print(f"{share:>7}%  does not fit")
            continue
        budget = whole["plan"]["budget_bytes"]
        for phase in whole["phases"]:
            length = phase["length"]
            if length == CONTEXT:
                continue
            own = estimate(sluice, [*options, "--context", str(length), "--budget", str(budget)])
            longest_s, own_s = phase["predicted_step_s"], own["plan"]["step_s"]
            gains.append(longest_s / own_s - 1)
            print(f"{share:>7}% {length:>7} {longest_s:>11.3f} s {own_s:>8.3f} s {100 * gains[-1]:>6.1f} %"
                  f" {own['plan']['planned_bytes'] / budget:>20.3f}", flush=True)
    if gains:
        print(f"mean {100 * sum(gains) / len(gains):.1f} %, least {100 * min(gains):.1f} %, most {100 * max(gains):.1f} %")


if __name__ == "__main__":
    main()
