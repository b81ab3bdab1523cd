#!/usr/bin/env python3
"""Trains under `auto` next to the two best uniform strategies, in every budget and on every link: GPT-2 mini on two
ranks, by default within five budgets (between the smallest that works and what all sdp needs), unthrottled and throttled.
A survey finds the two fastest uniform strategies that fit, all under the planned schedule; then all three train by turns.
The ratio is the median step of `auto` over that of the uniform strategy in the same turn.

    bench/compare/plans/beside_uniform.py [--json FILE]

Prints a table ("!" falls short of the aim) and writes bench/results/beside_uniform.json. Results are kept in the folder
(--folder), so that the same command goes on where it was interrupted. SLUICE=the command.
"""
import argparse
import os
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../peers"))
from ablation_table import budgets as budgets_of
from kept_runs import (KeptRuns, add_model, add_places, find_sluice, interval_text, mean_ratio, model_options, run_quietly,
                       settings_of, train)
from results import machine, write

UNIFORM = ("dp", "oss", "sdp", "fsdp")
AIMS = {"mean": 0.97, "cell": 1.03}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=5, metavar="N", help="turns of a cell (default 5)")
    parser.add_argument("--steps", type=int, default=60, metavar="N", help="of a run (default 60)")
    parser.add_argument("--survey-steps", type=int, default=20, metavar="N", help="of a run that looks for the best (default 20)")
    parser.add_argument("--throttles", default="none,1gbit,4gbit", metavar="LIST")
    parser.add_argument("--budgets", type=int, default=5, metavar="N", help="number of budgets (default 5)")
    add_model(parser)
    add_places(parser, "beside_uniform")
    return parser.parse_args()


class Cells:
    def __init__(self, options):
        self.options = options
        self.throttles = options.throttles.split(",")
        cells = len(self.throttles) * options.budgets
        self.runs = KeptRuns(options.folder, settings_of(options), 1 + cells * (len(UNIFORM) + 3 * options.pairs))
        self.model = ["-n", "2", *model_options(options)]
        self.scratch = os.path.join(options.folder, "scratch")

    def find_budgets(self):
        sweep = os.path.join(self.options.folder, "budgets")
        run_quietly([find_sluice(), "bench", *self.model, "--strategy", "sdp", "--schedule", "one_ahead", "--steps", "8",
                     "--repeat", "1", "--budget", f"auto:{self.options.budgets}", "-o", sweep], refused="fit")
        return budgets_of(sweep)

    def train(self, throttle, budget, strategy, steps):
        how = [*self.model, "--budget", str(budget), "--strategy", strategy, "--steps", str(steps), "--eval-batches", "0"]
        if throttle != "none":
            how += ["--throttle", throttle]
        if strategy != "auto":
            how += ["--replan-trials", "0"]  # it is compared as it was planned
        run = train(how, self.scratch)
        if not run:
            return {"fits": False}
        return {"fits": True, "step_s": run["step_s"], "weights_sha256": run["weights_sha256"], "trials": run.get("trials"),
                "predicted_step_s": run["predicted_step_s"]}

    def survey(self, throttle, budget):
        """Returns the uniform strategies that fit the budget, the fastest first."""
        found = []
        for strategy in UNIFORM:
            run = self.runs.take(f"{throttle}.{budget}.survey.{strategy}",
                                 lambda s=strategy: self.train(throttle, budget, s, self.options.survey_steps))
            if run["fits"]:
                found.append((run["step_s"], strategy))
        return [strategy for _, strategy in sorted(found)[:2]]

    def measure(self, throttle, budget):
        best = self.survey(throttle, budget)
        arms, steps = ["auto", *best], {}
        weights = set()
        for pair in range(self.options.pairs):
            for arm in arms[pair % len(arms):] + arms[:pair % len(arms)]:
                run = self.runs.take(f"{throttle}.{budget}.{pair}.{arm}",
                                     lambda arm=arm: self.train(throttle, budget, arm, self.options.steps))
                steps.setdefault(arm, []).append(run["step_s"])
                weights.add(run["weights_sha256"])
        if len(weights) != 1:
            sys.exit(f"{throttle} {budget}: runs end with {len(weights)} different weights")
        for place, arm in enumerate(best):
            ratios = [auto / uniform for auto, uniform in zip(steps["auto"], steps[arm])]
            mean, low, high = mean_ratio(ratios)
            yield {"throttle": throttle, "budget_bytes": budget, "strategy": arm, "place": place + 1,
                   "auto_step_s": statistics.median(steps["auto"]), "step_s": statistics.median(steps[arm]),
                   "ratios": ratios, "ratio": mean, "low": low, "high": high}


def show(rows):
    print("median step of `auto` over that of a uniform strategy, 95 % interval over turns")
    print(f"{'throttle':10}{'budget, MB':>11} {'strategy':9}{'auto, ms':>9}{'its, ms':>9}{'ratio':>8}  interval")
    for row in rows:
        slower = row["ratio"] > AIMS["cell"] or (row["low"] is not None and row["low"] > 1)
        print(f"{row['throttle']:10}{row['budget_bytes'] / 1e6:11.1f} {row['strategy']:9}{1e3 * row['auto_step_s']:9.1f}"
              f"{1e3 * row['step_s']:9.1f}{row['ratio']:8.3f}{'!' if slower else ' '} {interval_text(row)}")
    mean = statistics.fmean(row["ratio"] for row in rows)
    worst = max(row["ratio"] for row in rows)
    above = sum(row["low"] is not None and row["low"] > 1 for row in rows)
    print(f"mean of {len(rows)} cells {mean:.3f} (aim {AIMS['mean']:.2f}){'' if mean <= AIMS['mean'] else '!'}, "
          f"most {worst:.3f} (aim {AIMS['cell']:.2f}), {above} with an interval above 1 (aim 0)")


def main():
    options = parse()
    cells = Cells(options)
    cells.runs.take("budgets.found", cells.find_budgets)
    rows = []
    for throttle in cells.throttles:
        for budget in cells.runs.read("budgets.found"):
            rows.extend(cells.measure(throttle, budget))
    cells.runs.end()
    show(rows)
    write(options.json, {"rows": rows, "steps": options.steps, "environment": machine()})


if __name__ == "__main__":
    main()
