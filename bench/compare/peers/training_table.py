"""Joins the runs that bench/compare/training/training.sh left in a folder: medians over rounds, ratios, a table and a JSON file.

    training_table.py FOLDER PRODUCTS.json CORES RESULT.json

It reads FOLDER/ROUND.WHO.SHAPE.PRECISION.json, WHO being sluice or pytorch, and what bench/compare/kernels/gemm.py wrote.
"""
import json
import os
import statistics
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


def products(path):
    """The median paces of products alone, of Sluice and of PyTorch, in billions of operations a second, by type."""
    with open(path) as file:
        rows = json.load(file)["rows"]
    return {kind: [statistics.median(row[side] for row in rows if row["type"] == kind)
                   for side in ("sluice_gflops", "pytorch_gflops")] for kind in sorted({row["type"] for row in rows})}


def compare(runs, alone):
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
        row["sluice_product_gflops"], row["pytorch_product_gflops"] = alone[precision]
        row["products_ratio"] = row["pytorch_product_gflops"] / row["sluice_product_gflops"]
        yield row


def show(row):
    print(f"{row['shape']:<8} {row['precision']:<5} {row['sluice_step_s'] * 1e3:9.0f}"
          f" {row['pytorch_step_s'] * 1e3:9.0f} {with_aim(row['ratio'], row['aim'])} {row['products_ratio']:8.2f}"
          f" {row['sluice_rss_bytes'] / 2**20:9.0f} {row['pytorch_rss_bytes'] / 2**20:9.0f}"
          f" {with_aim(row['rss_ratio'], row['rss_aim'])}")


def main():
    folder, alone, cores, result = sys.argv[1:]
    rows = list(compare(read(folder), products(alone)))
    print(f"{'tokens':<8} {'type':<5} {'ours ms':>9} {'its ms':>9} {'ratio':>6}  aim   {'products':>8} {'ours MiB':>9}"
          f" {'its MiB':>9} {'ratio':>6}  aim")
    for row in rows:
        show(row)
    write(result, {"machine": machine(), "cores": cores, "rows": rows})


if __name__ == "__main__":
    main()
