#!/usr/bin/env python3
"""Measures what the play-off of plans costs a run of 200 steps, and what it brings: GPT-2 mini on two ranks,
unthrottled and throttled, within budgets of the least that dp works in, with the play-off of `sluice train` and with
--replan-trials 0, by turns. All runs of a cell must end with the same weights.

    cost    how much longer the steps from the re-plan to the play-off's end take than the same steps without one, as a
            share of the whole run without
    whole   the whole run over that without

    bench/compare/plans/play_off.py [--json FILE]

Prints a table ("!" falls short of the aim) and writes bench/results/play_off.json. Results are kept in the folder
(--folder), so that the same command goes on where it was interrupted. SLUICE=the command.
"""
import argparse
import os
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../peers"))
from kept_runs import KeptRuns, add_model, add_places, interval_text, mean_ratio, model_options, settings_of, train
from results import machine, write

AIM = 0.02
FIRST = 3  # steps before the re-plan
LAST = 3 + 4 * 4 * 2  # a play-off has at most four plans of four steps in two rounds


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=5, metavar="N", help="turns of a cell (default 5)")
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="of a run (default 200)")
    parser.add_argument("--throttles", default="none,1gbit,4gbit", metavar="LIST")
    parser.add_argument("--budgets", default="60%,100%", metavar="LIST", help="of the least that dp works in (default 60%%,100%%)")
    add_model(parser)
    add_places(parser, "play_off")
    return parser.parse_args()


def train_cell(options, throttle, budget, trials):
    how = ["-n", "2", *model_options(options), "--steps", str(options.steps), "--eval-batches", "0", "--budget", budget]
    how += ["--throttle", throttle] if throttle != "none" else []
    run = train(how + ([] if trials else ["--replan-trials", "0"]), os.path.join(options.folder, "scratch"))
    if not run:
        sys.exit(f"\nthe budget {budget} is too small")
    return {key: run.get(key) for key in ("elapsed_s", "train_s", "step_s", "weights_sha256", "trials", "predicted_step_s")}


def cost_of(with_it, without):
    """Returns how much longer the steps of the play-off take, as a share of the run."""
    last = min(LAST, len(without["elapsed_s"]) - 1)
    longer = [run["elapsed_s"][last] - run["elapsed_s"][FIRST - 1] for run in (with_it, without)]
    return (longer[0] - longer[1]) / without["train_s"]


def row_of(options, runs, throttle, budget):
    pairs = []
    for pair in range(options.pairs):
        found = {}
        for trials in (True, False) if pair % 2 else (False, True):
            found[trials] = runs.take(f"{throttle}.{budget.strip('%')}.{pair}.{'with' if trials else 'without'}",
                                      lambda t=trials: train_cell(options, throttle, budget, t))
        pairs.append((found[True], found[False]))
    weights = {run["weights_sha256"] for pair in pairs for run in pair}
    mean, low, high = mean_ratio([one["train_s"] / other["train_s"] for one, other in pairs])
    stayed = [next((trial["plan"] for trial in one["trials"] or [] if trial["stays"]), None) for one, _ in pairs]
    return {"throttle": throttle, "budget": budget, "costs": [cost_of(*pair) for pair in pairs],
            "cost": statistics.median(cost_of(*pair) for pair in pairs), "whole": mean, "low": low, "high": high,
            "tried": [len(one["trials"] or []) for one, _ in pairs], "stayed": stayed, "weights": len(weights)}


def show(rows):
    print(f"{'throttle':10}{'budget':>7}{'cost':>8} {'whole':>8}  interval         plans tried; which stayed")
    for row in rows:
        stayed = ", ".join(sorted({name for name in row["stayed"] if name})) or "-"
        print(f"{row['throttle']:10}{row['budget']:>7}{row['cost']:+8.2%}{'!' if row['cost'] > AIM else ' '}"
              f"{row['whole']:8.3f}  {interval_text(row):16} {statistics.median(row['tried']):.0f}; {stayed}"
              f"{'' if row['weights'] == 1 else '; OTHER WEIGHTS'}")


def main():
    options = parse()
    throttles, budgets = options.throttles.split(","), options.budgets.split(",")
    runs = KeptRuns(options.folder, settings_of(options), 2 * options.pairs * len(throttles) * len(budgets))
    rows = [row_of(options, runs, throttle, budget) for throttle in throttles for budget in budgets]
    runs.end()
    show(rows)
    write(options.json, {"rows": rows, "steps": options.steps, "environment": machine()})
    if any(row["weights"] != 1 for row in rows):
        sys.exit("runs that differ in the play-off alone end with different weights")


if __name__ == "__main__":
    main()
