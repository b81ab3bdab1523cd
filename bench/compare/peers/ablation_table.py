"""Joins the sweeps that bench/compare/plans/ablation.sh left in a folder: the fastest measured step of each arm, how many times
faster than the arm with none of the planner's parts, a table and a JSON file.

    ablation_table.py FOLDER RESULT.json    reads FOLDER/{whole,cut}-{baselines,planned}/results.json
    ablation_table.py --budgets SWEEP       the budgets of a sweep, in bytes, with commas between
"""
import json
import os
import statistics
import sys

from results import machine, write

PARTS = ("strategies", "order", "blocks", "recomputation")


def read(folder):
    with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
        return json.load(file)


def budgets(folder):
    sweep = read(folder)
    cells = sweep["runs"] + sweep["does_not_fit"]
    return sorted({cell["budget_bytes"] for cell in cells})


def arms_of(run, blocks, planned):
    """Returns the arms that this run may stand for; of each arm the fastest run counts. A baseline that may recompute
    recomputes all layers or none; a planner that may has said itself what it recomputes."""
    own = run["strategy"] in ("auto", "mixed")
    recomputes = run["settings"]["recompute"] != "none"
    for recomputation in ((False, True) if not (planned or recomputes) else (recomputes,)):
        yield (own, planned, blocks, recomputation)


def medians(folder):
    """Returns {throttle, budget and arm: the median step over repetitions of the fastest cell}."""
    steps = {}
    for blocks in ("whole", "cut"):
        for order in ("baselines", "planned"):
            cells = {}
            for run in read(os.path.join(folder, f"{blocks}-{order}"))["runs"]:
                if run["step_s"] is None:
                    continue
                key = (run["throttle"], run["budget_bytes"], run["strategy"], run["schedule"], run["settings"]["recompute"])
                cells.setdefault(key, []).append(run)
            for (throttle, budget, *_), runs in cells.items():
                step_s = statistics.median(run["step_s"] for run in runs)
                for arm in arms_of(runs[0], blocks == "cut", order == "planned"):
                    found = steps.setdefault((throttle, budget), {})
                    found[arm] = min(found.get(arm, step_s), step_s)
    return steps


def name_of(arm):
    return ", ".join(part for part, there in zip(PARTS, arm) if there) or "none of them"


def show(rows):
    arms = sorted({arm for row in rows for arm in row["steps"]}, key=lambda arm: (sum(arm), [not part for part in arm]))
    print(f"{'throttle':<10} {'budget, MB':>10} {'step, s':>9}  times faster than with none of the parts")
    for arm in arms:
        print(f"\n{name_of(arm)}")
        for row in rows:
            none, step_s = row["steps"].get((False,) * 4), row["steps"].get(arm)
            faster = f"{none / step_s:7.3f}" if none and step_s else f"{'-':>7}"
            print(f"{row['throttle']:<10} {row['budget_bytes'] / 1e6:10.1f} {step_s or 0:9.4f}  {faster}")


def main():
    if sys.argv[1] == "--budgets":
        print(",".join(f"{budget}B" for budget in budgets(sys.argv[2]))) # digits alone would be a decimal
        return
    folder, result = sys.argv[1:]
    rows = [{"throttle": throttle, "budget_bytes": budget, "steps": steps}
            for (throttle, budget), steps in sorted(medians(folder).items())]
    show(rows)
    for row in rows:
        row["steps"] = {name_of(arm): step_s for arm, step_s in row["steps"].items()}
    write(result, {"machine": machine(), "rows": rows})


if __name__ == "__main__":
    main()
