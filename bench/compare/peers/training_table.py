"""Joins the runs that bench/compare/training.sh left in a folder: medians over rounds, ratios, a table and a JSON file.

    training_table.py FOLDER RESULT.json        reads FOLDER/ROUND.WHO.SHAPE.PRECISION.json, WHO being sluice or pytorch
"""
import json
import os
import sys

from results import machine, median, with_aim, write

AIMS = {"fp32": 0.8, "bf16": 0.5}  # of PyTorch's time
RSS_AIM = 0.7


def read(folder):
    runs = {}
    for name in sorted(os.listdir(folder)):
        _, who, shape, precision, _ = name.split(".")
        with open(os.path.join(folder, name)) as file:
            content = json.load(file)
        runs.setdefault((shape, precision), {}).setdefault(who, []).append(
            content["runs"][0] if who == "sluice" else content)
    return runs


def compare(runs):
    for (shape, precision), both in runs.items():
        ours, theirs = both["sluice"], both["pytorch"]
        row = {"shape": shape, "precision": precision, "rounds": min(len(ours), len(theirs)),
               "aim": AIMS[precision], "rss_aim": RSS_AIM, "pytorch_optimizer": theirs[0]["optimizer"],
               "torch": theirs[0]["torch"]}
        for who, side in (("sluice", ours), ("pytorch", theirs)):
            row[who + "_step_s"] = median(side, "step_s")
            row[who + "_rss_bytes"] = median(side, "rss_bytes")
        row["ratio"] = row["sluice_step_s"] / row["pytorch_step_s"]
        row["rss_ratio"] = row["sluice_rss_bytes"] / row["pytorch_rss_bytes"]
        yield row


def show(row):
    print(f"{row['shape']:<8} {row['precision']:<5} {row['sluice_step_s'] * 1e3:9.0f}"
          f" {row['pytorch_step_s'] * 1e3:9.0f} {with_aim(row['ratio'], row['aim'])}"
          f" {row['sluice_rss_bytes'] / 2**20:9.0f} {row['pytorch_rss_bytes'] / 2**20:9.0f}"
          f" {with_aim(row['rss_ratio'], row['rss_aim'])}")


def main():
    folder, result = sys.argv[1:]
    rows = list(compare(read(folder)))
    print(f"{'tokens':<8} {'type':<5} {'ours ms':>9} {'its ms':>9} {'ratio':>6}  aim   {'ours MiB':>9} {'its MiB':>9}"
          f" {'ratio':>6}  aim")
    for row in rows:
        show(row)
    write(result, {"machine": machine(), "rows": rows})


if __name__ == "__main__":
    main()
