"""Joins the runs that pytorch_network.sh left in a folder: medians over rounds, ratios, the bound that compute
and the wire set, a table and a JSON file.

    pytorch_network_table.py FOLDER RESULT.json BURST RATE... -- OURS:THEIRS...

reads FOLDER/RATE/ROUND.WHO.NAME.json, WHO being sluice, pytorch or tcp.
"""
import os
import sys

from pytorch_table import read, write_links
from results import median, with_aim

RANKS = 2
BYTES = 4  # of a value
AIMS = {  # of GPT-2 124M: time over PyTorch's
    "1gbit": {("dp", "ddp"): 0.8, ("sdp", "fsdp2_keep"): 0.45, ("fsdp", "fsdp2"): 0.5},
    "4gbit": {("dp", "ddp"): 0.75, ("sdp", "fsdp2_keep"): 0.5, ("fsdp", "fsdp2"): 0.5},
}
BOUND_AIMS = {"1gbit": 1.15}  # time over max(compute, wire)
SHARED = {"small": 50257 * 768}  # numbers of the token table


def strategy_of(ours):
    """Takes a name such as "sdp+split@900MiB" apart: returns its strategy, and whether the token table is split."""
    strategy, _, split = ours.partition("@")[0].partition("+")
    return strategy, split == "split"


def wire_bytes(ours, run):
    """Returns the bytes that a rank sends in a step: gradients are reduced once, and values are gathered once, or twice
    under fsdp. Under fsdp a split table is gathered once too (besides the rows that are looked up, which are few)."""
    strategy, split = strategy_of(ours)
    numbers = (3 if strategy == "fsdp" else 2) * run["parameters"]
    if strategy == "fsdp" and split:
        numbers -= SHARED.get(run["size"], 0)
    return numbers * BYTES * (RANKS - 1) / RANKS


def compare(rate, runs, pairs):
    goodput = median(runs["tcp", "goodput"], "bytes_per_s")
    compute = median(runs["sluice", "alone"], "step_s")
    for ours, theirs in pairs:
        a, b = runs["sluice", ours], runs["pytorch", theirs]
        aimed = a[0]["size"] == "small"
        row = {"rate": rate, "sluice": ours, "pytorch": theirs, "rounds": min(len(a), len(b)),
               "sluice_step_s": median(a, "step_s"), "pytorch_step_s": median(b, "step_s"),
               "sluice_exposed_s": median(a, "exposed_s"), "sluice_peak_bytes": median(a, "peak_bytes"),
               "sluice_rss_bytes": median(a, "rss_bytes"), "pytorch_rss_bytes": median(b, "rss_bytes"),
               "aim": AIMS.get(rate, {}).get((strategy_of(ours)[0], theirs)) if aimed and "@" not in ours else None,
               "bound_aim": BOUND_AIMS.get(rate) if aimed else None,
               "goodput_bytes_per_s": goodput, "compute_s": compute,
               "wire_s": wire_bytes(ours, a[0]) / goodput}
        row["ratio"] = row["sluice_step_s"] / row["pytorch_step_s"]
        row["bound_ratio"] = row["sluice_step_s"] / max(row["compute_s"], row["wire_s"])
        yield row


def show(rate, runs, rows):
    print(f"\n{rate}: TCP {median(runs['tcp', 'goodput'], 'bytes_per_s') / 1e6:.1f} MB/s each way; a step without "
          f"communication: ours {median(runs['sluice', 'alone'], 'step_s'):.2f} s, "
          f"PyTorch {median(runs['pytorch', 'alone'], 'step_s'):.2f} s")
    print(f"{'ours':<12} {'PyTorch':<11} {'ours s':>7} {'its s':>7} {'ratio':>6}  aim   {'exposed':>8} {'wire s':>7}"
          f" {'bound':>6}  aim   {'ours MiB':>8} {'its MiB':>8}")
    for row in rows:
        print(f"{row['sluice']:<12} {row['pytorch']:<11} {row['sluice_step_s']:7.2f} {row['pytorch_step_s']:7.2f}"
              f" {with_aim(row['ratio'], row['aim'])} {row['sluice_exposed_s']:7.2f} {row['wire_s']:7.2f}"
              f" {with_aim(row['bound_ratio'], row['bound_aim'])} {row['sluice_rss_bytes'] / 2**20:8.0f}"
              f" {row['pytorch_rss_bytes'] / 2**20:8.0f}")


def main():
    folder, result, burst = sys.argv[1:4]
    split = sys.argv.index("--")
    rates, pairs = sys.argv[4:split], [tuple(pair.rsplit(":", 1)) for pair in sys.argv[split + 1:]]
    rows, by_link = [], {}
    for rate in rates:
        runs = read(os.path.join(folder, rate))
        mine = list(compare(rate, runs, pairs))
        show(rate, runs, mine)
        rows += mine
        by_link[rate] = runs
    write_links(result, rows, by_link, burst, RANKS)


if __name__ == "__main__":
    main()
