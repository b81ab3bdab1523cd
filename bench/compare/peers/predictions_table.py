"""Joins the runs that predictions.sh left in a folder: medians over rounds of predicted and measured steps and of the
link's measured lines, a table and a JSON file.

    predictions_table.py FOLDER RESULT.json

reads FOLDER/RATE-BURST/ROUND.goodput.json and FOLDER/LINK/ROUND.PRECISION.STRATEGY.json, .profile and .load, LINK
being RATE-BURST or RATE-throttle.
"""
import json
import os
import re
import statistics
import sys

from results import machine, median, write

AIMS = {"throttle": (0.05, 0.9), "namespaces": (0.10, 0.9), "10gbit": (0.15, 0.8)}  # |predicted / measured - 1|; cells
UNITS = {"bit": 1 / 8, "kbit": 1e3 / 8, "mbit": 1e6 / 8, "gbit": 1e9 / 8}
PARTS = ("compute", "transfer", "waiting", "outside")
ORDER = {"fp32": 0, "bf16": 1, "dp": 0, "oss": 1, "sdp": 2, "fsdp": 3, "auto": 4}


def bytes_per_s(rate):
    number, unit = re.fullmatch(r"([0-9.]+)([a-z]+)", rate).groups()
    return float(number) * UNITS[unit]


def size_of(burst):
    number, unit = re.fullmatch(r"([0-9.]+)(kb|mb)", burst).groups()
    return float(number) * {"kb": 1 << 10, "mb": 1 << 20}[unit]


def read(path):
    with open(path) as file:
        return json.load(file)


def goodput_of(folder, link, rate):
    """Returns the bytes a second of each direction: those that plain TCP carried, or those that the throttle was asked
    for."""
    found = [read(os.path.join(folder, link, name)) for name in os.listdir(os.path.join(folder, link))
             if name.endswith(".goodput.json")]
    return median(found, "bytes_per_s") if found else bytes_per_s(rate)


def read_load(path):
    with open(path) as file:
        return float(file.read())


def read_link(folder, link):
    """Returns {(precision, strategy): [(run, link of its profile)]}."""
    runs = {}
    for name in sorted(os.listdir(os.path.join(folder, link))):
        found = re.fullmatch(r"[0-9]+\.(fp32|bf16)\.(.+)\.json", name)
        if found:
            path = os.path.join(folder, link, name[:-len("json")])
            run = read(path + "json")["runs"][0] | {"load": read_load(path + "load")}
            runs.setdefault(found.groups(), []).append((run, read(path + "profile")["link"]))
    return runs


def rows_of(folder, link):
    rate, _, burst = link.partition("-")
    kind = "throttle" if burst == "throttle" else "namespaces"
    goodput = goodput_of(folder, link, rate)
    for (precision, strategy), pairs in sorted(read_link(folder, link).items(), key=lambda item: (
            ORDER[item[0][0]], ORDER.get(item[0][1].partition("@")[0], 9))):
        runs, links = [run for run, _ in pairs], [line for _, line in pairs]
        row = {"link": kind, "rate": rate, "burst": None if kind == "throttle" else burst, "precision": precision,
               "strategy": strategy, "rounds": len(runs), "goodput_bytes_per_s": goodput,
               "predicted_step_s": median(runs, "predicted_step_s"), "step_s": median(runs, "step_s"),
               "exposed_s": median(runs, "exposed_s"), "bytes_sent": runs[0]["warm_up"]["bytes_sent"],
               "load": median(runs, "load")}
        for part in PARTS:
            row[f"miss_{part}_s"] = median([run["prediction"]["miss"] for run in runs], part + "_s")
        for line in ("reduce_scatter", "all_gather"):
            row[line + "_bytes_per_s"] = median([one[line] for one in links], "bytes_per_s")
            row[line + "_latency_s"] = median([one[line] for one in links], "latency_s")
        for field in ("kappa", "sigma", "update_kappa", "block_bytes"):
            row[field] = statistics.median(one.get(field, 0) for one in links)
        row["ratio"] = statistics.median(run["predicted_step_s"] / run["step_s"] for run in runs)
        row["aims"] = "10gbit" if bytes_per_s(rate) >= 1.25e9 else kind  # there compute sets the pace
        yield row


def show(rows):
    print("predicted before the plan's first step; missed by so many ms of each part")
    print("link              precision strategy   predicted ms  measured ms   ratio   load" +
          "".join(f"{part:>9}" for part in PARTS) + "  wire ms  RS/TCP  AG/TCP  kappa  sigma")
    for row in rows:
        link = f"{row['rate']} {row['burst'] or 'throttle'}"
        goodput = row["goodput_bytes_per_s"]
        print(f"{link:18}{row['precision']:10}{row['strategy']:10}{row['predicted_step_s'] * 1e3:13.1f}"
              f"{row['step_s'] * 1e3:13.1f}{row['ratio']:8.3f}{' ' if abs(row['ratio'] - 1) <= AIMS[row['aims']][0] else '!'}"
              f"{row['load']:7.1f}" + "".join(f"{row[f'miss_{part}_s'] * 1e3:+9.1f}" for part in PARTS) +
              f"{row['bytes_sent'] / goodput * 1e3:9.1f}{row['reduce_scatter_bytes_per_s'] / goodput:8.3f}"
              f"{row['all_gather_bytes_per_s'] / goodput:8.3f}{row['kappa']:7.2f}{row['sigma']:7.2f}")
    for kind, (aim, share) in AIMS.items():
        ratios = [row["ratio"] for row in rows if row["aims"] == kind]
        if ratios:
            off = sorted(abs(ratio - 1) for ratio in ratios)
            within = sum(one <= aim for one in off)
            print(f"{kind}: {within} of {len(off)} within {aim:.0%} (aim {share:.0%} of them)"
                  f"{'' if within >= share * len(off) else '!'}; off by {statistics.median(off):.1%} in the median, "
                  f"{off[-1]:.1%} at most")


def order_of(link):
    rate, _, burst = link.partition("-")
    return burst == "throttle", bytes_per_s(rate), 0 if burst == "throttle" else size_of(burst)


def main():
    folder, out = sys.argv[1:]
    links = [name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))]
    rows = [row for link in sorted(links, key=order_of) for row in rows_of(folder, link)]
    if not rows:
        sys.exit(f"{folder}: no runs in it")
    show(rows)
    write(out, {"rows": rows, "environment": machine()})


if __name__ == "__main__":
    main()
