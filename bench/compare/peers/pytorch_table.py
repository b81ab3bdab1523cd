"""Joins the runs that bench/compare/training/pytorch.sh left in a folder: medians over rounds, ratios, a table and a JSON file.

    pytorch_table.py FOLDER RESULT.json        reads FOLDER/ROUND.WHO.NAME.json, WHO being sluice or pytorch
"""
import json
import os
import sys

from results import machine, median, with_aim, write

ROWS = [  # ours, theirs, aim for time, aim for memory
    ("alone", "alone", 0.85, None),
    ("dp", "ddp", 0.8, None),
    ("sdp", "fsdp2_keep", 0.6, None),
    ("fsdp", "fsdp2", 0.5, 0.5),
]


def read(folder):
    runs = {}
    for name in sorted(os.listdir(folder)):
        parts = name.removesuffix(".json").split(".", 2)
        if len(parts) != 3 or not name.endswith(".json"):
            continue
        with open(os.path.join(folder, name)) as file:
            content = json.load(file)
        run = content["runs"][0] if parts[1] == "sluice" else content
        runs.setdefault((parts[1], parts[2]), []).append(run)
    return runs


def write_links(result, rows, by_link, burst, ranks):
    """Writes the rows, and the runs of each link, (who, name) -> list, as the JSON file of a comparison in namespaces."""
    torch = next((run.get("torch") for runs in by_link.values() for (who, _), list_ in runs.items() if who == "pytorch"
                  for run in list_), None)
    kept = {link: {f"{who} {name}": list_ for (who, name), list_ in runs.items()} for link, runs in by_link.items()}
    print()
    write(result, {"rows": rows, "runs": kept,
                   "environment": {"network": "network namespaces, veth, tc tbf", "burst": burst, "ranks": ranks,
                                   "torch": torch, **machine()}})


def compare(runs):
    for ours, theirs, aim, memory_aim in ROWS:
        a, b = runs.get(("sluice", ours)), runs.get(("pytorch", theirs))
        if not a or not b:
            continue
        row = {"sluice": ours, "pytorch": theirs, "sluice_step_s": median(a, "step_s"),
               "pytorch_step_s": median(b, "step_s"), "sluice_rss_bytes": median(a, "rss_bytes"),
               "pytorch_rss_bytes": median(b, "rss_bytes"), "rounds": min(len(a), len(b)),
               "aim": aim, "rss_aim": memory_aim, "pytorch_optimizer": b[0]["optimizer"]}
        row["ratio"] = row["sluice_step_s"] / row["pytorch_step_s"]
        row["rss_ratio"] = row["sluice_rss_bytes"] / row["pytorch_rss_bytes"]
        yield row


def show(row):
    print(f"{row['sluice']:<6} {row['pytorch']:<11} {row['sluice_step_s'] * 1e3:9.0f}"
          f" {row['pytorch_step_s'] * 1e3:9.0f} {with_aim(row['ratio'], row['aim'])}"
          f" {row['sluice_rss_bytes'] / 2**20:9.0f} {row['pytorch_rss_bytes'] / 2**20:9.0f}"
          f" {with_aim(row['rss_ratio'], row['rss_aim'])}")


def main():
    folder, result = sys.argv[1:]
    runs = read(folder)
    rows = list(compare(runs))
    print(f"{'ours':<6} {'PyTorch':<11} {'ours ms':>9} {'its ms':>9} {'ratio':>6}  aim   {'ours MiB':>9} {'its MiB':>9}"
          f" {'ratio':>6}  aim")
    for row in rows:
        show(row)
    peer = next((r for (who, _), r in runs.items() if who == "pytorch"), [{}])[0]
    write(result, {"rows": rows, "runs": {f"{who} {name}": list_ for (who, name), list_ in runs.items()},
                   "environment": {"torch": peer.get("torch"), **machine()}})


if __name__ == "__main__":
    main()
