"""Joins the runs that pipeline.sh left in a folder: medians over rounds, ratios to PyTorch's fastest schedule and to the
fastest run without a pipeline, a table and a JSON file.

    pipeline_table.py FOLDER RESULT.json BURST RANKS LINK...

reads FOLDER/LINK/ROUND.WHO.NAME.json, WHO being sluice or pytorch; NAME is alone, a strategy, pipeline-SCHEDULE, or a
schedule of PyTorch's.
"""
import os
import statistics
import sys

from pytorch_table import read, write_links
from results import median, with_aim

PYTORCH_AIM = 0.6         # time over PyTorch's fastest schedule
OF_ALONE_AIM = 0.9        # that ratio over the ratio of one rank alone
PREDICTED_AIM = 0.10      # a step in namespaces, off its prediction before the first one
# Over the fastest without a pipeline: by link, ranks and schedule.
WITHOUT_AIM = {("1gbit", 2, "1f1b"): 0.33, ("1gbit", 2, "interleaved"): 0.30, ("4gbit", 2, "interleaved"): 0.90,
               ("1gbit", 4, "1f1b"): 0.50, ("1gbit", 4, "interleaved"): 0.50}


def fastest(runs, wanted):
    names = [key for key in runs if wanted(*key)]
    return min(names, key=lambda key: median(runs[key], "step_s")) if names else None


def predicted(runs):
    """The step that was predicted before the first one, and the measured one over it; nothing where some run has none."""
    both = [(run["pipeline"]["predicted_step_s"], run["pipeline"]["measured_step_s"]) for run in runs]
    if any(value is None for pair in both for value in pair):
        return {}
    return {"predicted_step_s": statistics.median(before for before, _ in both),
            "off": statistics.median(after / before - 1 for before, after in both)}


def compare(link, ranks, runs):
    both = ("pytorch", "alone") in runs
    alone = median(runs["sluice", "alone"], "step_s") / median(runs["pytorch", "alone"], "step_s") if both else None
    peer = fastest(runs, lambda who, name: who == "pytorch" and name != "alone")
    without = fastest(runs, lambda who, name: who == "sluice" and name != "alone" and not name.startswith("pipeline-"))
    for who, name in sorted(runs):
        if not name.startswith("pipeline-"):
            continue
        mine = runs[who, name]
        small = mine[0]["size"] == "small"
        row = {"link": link, "schedule": name.removeprefix("pipeline-"), "rounds": len(mine),
               "step_s": median(mine, "step_s"), "peak_bytes": median(mine, "peak_bytes"),
               "cuts": mine[0]["pipeline"]["cuts"], "alone_ratio": alone, "aimed": small,
               "idle_s": [stage["idle_s"] for stage in mine[0]["pipeline"]["stages"]]} | predicted(mine)
        if peer:
            row |= {"pytorch": peer[1], "pytorch_step_s": median(runs[peer], "step_s"),
                    "ratio": row["step_s"] / median(runs[peer], "step_s")}
            row["of_alone"] = row["ratio"] / alone
        if without:
            row |= {"without": without[1], "without_step_s": median(runs[without], "step_s"),
                    "without_ratio": row["step_s"] / median(runs[without], "step_s"),
                    "without_aim": WITHOUT_AIM.get((link, ranks, row["schedule"])) if small else None}
        yield row


def show(link, runs, rows):
    peer = f", PyTorch {median(runs['pytorch', 'alone'], 'step_s'):.2f} s" if ("pytorch", "alone") in runs else ""
    print(f"\n{link}: one rank alone: ours {median(runs['sluice', 'alone'], 'step_s'):.2f} s{peer}")
    for who, name in sorted(runs):
        if name != "alone" and not name.startswith("pipeline-"):
            peak = f"  {median(runs[who, name], 'peak_bytes') / 2**20:6.0f} MiB" if who == "sluice" else ""
            print(f"  {who:<8} {name:<12} {median(runs[who, name], 'step_s'):7.2f} s{peak}")
    print(f"{'ours':<12} {'cuts':<14} {'step s':>7} {'MiB':>5} {'PyTorch':<12} {'its s':>6} {'ratio':>6}  aim   {'of alone':>8}  aim"
          f"   {'without':<8} {'its s':>6} {'ratio':>6}")
    for row in rows:
        line = f"{row['schedule']:<12} {','.join(row['cuts']):<14} {row['step_s']:7.2f} {row['peak_bytes'] / 2**20:5.0f} "
        if "pytorch" in row:
            line += (f"{row['pytorch']:<12} {row['pytorch_step_s']:6.2f}"
                     f" {with_aim(row['ratio'], PYTORCH_AIM if row['aimed'] else None)}"
                     f" {with_aim(row['of_alone'], OF_ALONE_AIM if row['aimed'] else None)} ")
        else:
            line += f"{'':<42} "
        if "without" in row:
            line += f"{row['without']:<8} {row['without_step_s']:6.2f} {with_aim(row['without_ratio'], row['without_aim'])}"
        print(line)
        if "off" in row:
            off = with_aim(abs(row["off"]), None if link == "host" else PREDICTED_AIM)
            print(f"{'':<12} predicted {row['predicted_step_s']:.2f} s before the first step, off by {off}")


def main():
    folder, result, burst, ranks = sys.argv[1:5]
    rows, by_link = [], {}
    for link in sys.argv[5:]:
        runs = read(os.path.join(folder, link))
        for (who, name), list_ in runs.items():
            if any(run["step_s"] is None for run in list_):
                sys.exit(f"{link}: {who} {name} made too few steps for a median; give STEPS=8 or more")
        mine = list(compare(link, int(ranks), runs))
        show(link, runs, mine)
        rows += mine
        by_link[link] = runs
    write_links(result, rows, by_link, burst, int(ranks))


if __name__ == "__main__":
    main()
