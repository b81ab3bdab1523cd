"""Joins the runs that onebit_network.sh left in a folder: medians over rounds, a step after the freeze over the step
without communication, bytes beside the formula, a table and a JSON file.

    onebit_network_table.py FOLDER RESULT.json BURST RATE... -- OPTIMIZER...

reads FOLDER/RATE/ROUND.tcp.json, FOLDER/RATE/ROUND-RANK.alone.json and FOLDER/RATE/ROUND.OPTIMIZER.json.
"""
import glob
import json
import os
import statistics
import sys

from results import machine, with_aim, write

RANKS = 2
AIMS = {("1gbit", "onebit_adam"): 1.15}  # of GPT-2 124M: a step over the compute alone


def read(pattern):
    contents = []
    for path in sorted(glob.glob(pattern)):
        with open(path) as file:
            content = json.load(file)
        contents.append(content["runs"][0] if "runs" in content else content)
    return contents


def phase_of(run):
    return run["compressed"] or run["warm_up"]


def formula_bytes(run):
    """Returns the bytes that a rank sends in a step: a bit an element to each other rank and the averages, or gradients
    twice."""
    value = 4 / 32 if run["compressed"] else 4
    return 2 * run["parameters"] * value * (RANKS - 1) / RANKS


def compare(rate, folder, optimizers):
    alone = read(os.path.join(folder, "*.alone.json"))
    compute = statistics.median(run["step_s"] for run in alone)
    goodput = statistics.median(run["bytes_per_s"] for run in read(os.path.join(folder, "*.tcp.json")))
    for name in optimizers:
        runs = read(os.path.join(folder, f"*[0-9].{name}.json"))
        phases = [phase_of(run) for run in runs]
        row = {"rate": rate, "optimizer": name, "strategy": runs[0]["strategy"], "rounds": len(runs),
               "step_s": statistics.median(phase["step_s"] for phase in phases),
               "exposed_s": statistics.median(phase["exposed_s"] for phase in phases),
               "compute_s": compute, "goodput_bytes_per_s": goodput,
               "bytes_sent": statistics.median(phase["bytes_sent"] for phase in phases),
               "formula_bytes": formula_bytes(runs[0]), "peak_bytes": runs[0]["peak_bytes"],
               "aim": AIMS.get((rate, name)) if runs[0]["size"] == "small" else None}
        row["ratio"] = row["step_s"] / compute
        row["bytes_ratio"] = row["bytes_sent"] / row["formula_bytes"]
        yield row, runs


def show(rate, rows):
    print(f"\n{rate}: TCP {rows[0]['goodput_bytes_per_s'] / 1e6:.1f} MB/s each way; a step without communication "
          f"{rows[0]['compute_s']:.3f} s")
    print(f"{'optimizer':<14} {'strategy':<8} {'step s':>7} {'of compute':>10}  aim  {'exposed s':>9} {'MB sent':>9}"
          f" {'formula':>7} {'peak MiB':>8}")
    for row in rows:
        print(f"{row['optimizer']:<14} {row['strategy']:<8} {row['step_s']:7.3f}"
              f"     {with_aim(row['ratio'], row['aim'])}"
              f" {row['exposed_s']:9.3f} {row['bytes_sent'] / 1e6:9.2f} {row['bytes_ratio']:7.3f}"
              f" {row['peak_bytes'] / 2**20:8.0f}")


def main():
    folder, result, burst = sys.argv[1:4]
    split = sys.argv.index("--")
    rows, kept = [], {}
    for rate in sys.argv[4:split]:
        mine = list(compare(rate, os.path.join(folder, rate), sys.argv[split + 1:]))
        show(rate, [row for row, _ in mine])
        rows += [row for row, _ in mine]
        kept[rate] = {row["optimizer"]: runs for row, runs in mine}
    print()
    write(result, {"rows": rows, "runs": kept,
                   "environment": {"network": "network namespaces, veth, tc tbf", "burst": burst, "ranks": RANKS,
                                   **machine()}})


if __name__ == "__main__":
    main()
