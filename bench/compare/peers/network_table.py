"""Joins the runs that network.sh left in a folder: medians over rounds, shares of plain TCP, a table and a JSON file.

    network_table.py FOLDER RESULT.json BURST RATE...        reads FOLDER/RATE/ROUND.NAME.json
"""
import json
import os
import statistics
import sys

from results import machine, median, with_aim, write

ROWS = [  # of perf's runs, the share of TCP's goodput that it should reach at 1gbit, that of compute's speed
    ("reduce_scatter", None, None),
    ("all_gather", None, None),
    ("pipelined", 0.97, None),
    ("beside", None, 0.8),
]


def read(folder):
    """Returns {name: runs}; a run of perf is its only row."""
    runs = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as file:
            content = json.load(file)
        runs.setdefault(name.split(".")[1], []).append(content["rows"][0] if "rows" in content else content)
    return runs


def compare(rate, runs):
    goodput = median(runs["tcp"], "bytes_per_s")
    for name, aim, compute_aim in ROWS:
        busbw = median(runs[name], "busbw") * 1e9
        row = {"rate": rate, "name": name, "rounds": len(runs[name]), "goodput_bytes_per_s": goodput,
               "busbw_bytes_per_s": busbw, "share": busbw / goodput, "aim": aim if rate == "1gbit" else None,
               "compute_share": None, "compute_aim": compute_aim if rate == "1gbit" else None}
        if name == "beside":
            row["compute_share"] = statistics.median(run["compute_beside_gflops"] / run["compute_alone_gflops"]
                                                     for run in runs[name])
        yield row


def show(row):
    compute = "" if row["compute_share"] is None else with_aim(row["compute_share"], row["compute_aim"], True)
    print(f"{row['rate']:<7} {row['name']:<15} {row['busbw_bytes_per_s'] / 1e6:8.1f}"
          f" {row['goodput_bytes_per_s'] / 1e6:8.1f} {with_aim(row['share'], row['aim'], True)} {compute}")


def main():
    folder, result, burst, *rates = sys.argv[1:]
    rows, kept = [], {}
    print(f"{'rate':<7} {'what':<15} {'MB/s':>8} {'TCP MB/s':>8} {'share':>6}  aim    {'compute':>7}  aim")
    for rate in rates:
        kept[rate] = read(os.path.join(folder, rate))
        for row in compare(rate, kept[rate]):
            show(row)
            rows.append(row)
    write(result, {"rows": rows, "runs": kept,
                   "environment": {"network": "network namespaces, veth, tc tbf", "burst": burst, **machine()}})


if __name__ == "__main__":
    main()
