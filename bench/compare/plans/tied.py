#!/usr/bin/env python3
"""GPT-2 124M with its token table joint and split, on networks of several ranks and rates: the predicted step of the
fastest plan of each at ten budgets, up to the memory that all sdp needs.

bench/compare/plans/tied.py [--budgets N] [--json FILE]; SLUICE is the command. The case: 4,096 tokens on each rank, so that
the look-up touches at most 12.6 MB of the table's 154.4; 1.703 s of compute in a step, 50 us for a message, nothing is
recomputed."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../peers"))
import results

SLUICE = os.environ.get("SLUICE", "build/release/bench/sluice")
COMPUTE_S, UPDATE_S_PER_ELEMENT, TABLE = 1.703, 2e-11, "embed.wte.weight"


def sluice(*words):
    """Returns what the command says; None if it fails."""
    run = subprocess.run([SLUICE, *words], capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else None


def write_profile(path, tied, ranks, gbit):
    cluster = "8xcpu-10gbit" if gbit == 10 else "2xcpu-1gbit"  # for the size of the blocks, which follows the rate
    sluice("profile", "--made", "gpt2-small", "--cluster", cluster, "--world", str(ranks), "--batch", "4",
           "--context", "1024", "--tied", tied, "-o", path)
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    factor = COMPUTE_S / sum(layer["forward_s"] + layer["backward_s"] for layer in profile["layers"])
    for layer in profile["layers"]:
        layer.update({key: layer[key] * factor for key in ("forward_s", "backward_s", "recompute_s")})
    for direction in ("reduce_scatter", "all_gather"):
        profile["link"][direction]["bytes_per_s"] = gbit * 1e9 / 8
    profile["link"].update(kappa=0, sigma=1)
    profile["update_s_per_element"] = UPDATE_S_PER_ELEMENT
    with open(path, "w", encoding="utf-8") as file:
        json.dump(profile, file)


def plan(path, *words):
    """Returns the plan and the bytes of its arena, or None if no plan fits."""
    text = sluice("plan", "--profile", path, "--recompute", "none", "-o", path + ".plan", *words)
    if text is None:
        return None
    with open(path + ".plan", encoding="utf-8") as file:
        made = json.load(file)
    return {"step_s": made["forecast"]["step_s"], "exposed_s": made["forecast"]["exposed_s"],
            "table": made["strategies"][TABLE], "bytes": int(re.search(r"^memory .*\((\d+) bytes\)", text, re.M)[1])}


def least_bytes(path):
    run = subprocess.run([SLUICE, "plan", "--profile", path, "--recompute", "none", "--budget", "1B"],
                         capture_output=True, text=True, check=False)
    return int(re.search(r"--budget (\d+)\)", run.stderr)[1])


def shown(made):
    return f"{made['step_s']:8.3f} {made['exposed_s']:8.3f} {made['table']:6}" if made else f"{'-':>8} {'-':>8}       "


def main():
    parser = argparse.ArgumentParser(description="GPT-2's token table joint and split, at ten budgets.")
    parser.add_argument("--budgets", type=int, default=10)
    parser.add_argument("--json", help="write the rows there")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        joint, split = (os.path.join(folder, name) for name in ("joint.json", "split.json"))
        for ranks in (2, 8):
            for gbit in (1, 4, 10):
                write_profile(joint, "joint", ranks, gbit), write_profile(split, "split", ranks, gbit)
                least, most = least_bytes(joint), plan(joint, "--strategy", "sdp", "--schedule", "one_ahead")["bytes"]
                print(f"\n{ranks} ranks, {gbit} Gbit/s: the least that works {least / 1e6:.0f} MB joint, all sdp "
                      f"{most / 1e6:.0f} MB\n{'budget MB':>10} {'%':>6} {'joint s':>8} {'exposed':>8} {'table':6} "
                      f"{'split s':>8} {'exposed':>8} {'table':6} {'faster %':>8}")
                for share in range(1, options.budgets + 1):
                    budget = least + (most - least) * share // options.budgets
                    both = [plan(path, "--budget", str(budget)) for path in (joint, split)]
                    gain = 1 - both[1]["step_s"] / both[0]["step_s"] if all(both) else None
                    print(f"{budget / 1e6:10.0f} {100 * share // options.budgets:6} {shown(both[0])} {shown(both[1])}"
                          + (f" {100 * gain:8.1f}" if all(both) else ""), flush=True)
                    rows.append({"world": ranks, "gbit_per_s": gbit, "limit_bytes": budget, "joint": both[0],
                                 "split": both[1], "gain": gain})
    gains = [row["gain"] for row in rows if row["gain"] is not None]
    print(f"\nsplit is faster at {sum(gain > 0.001 for gain in gains)} of {len(gains)} budgets, slower at "
          f"{sum(gain < -0.001 for gain in gains)} (by more than 0.1 %); {100 * statistics.mean(gains):.1f} % faster in "
          "the mean")
    if options.json:
        results.write(options.json, {"rows": rows})


main()
