"""Joins the runs that onebit_loss.sh left in a folder: final and held-out losses beside those of AdamW, and of LAMB.

    onebit_loss_table.py FOLDER RESULT.json RANKS... -- OPTIMIZER...

reads FOLDER/RANKS.OPTIMIZER/STEP.json, the pieces of a run.
"""
import glob
import json
import os
import sys

from results import machine, write

AIM = 1.01  # of AdamW's final loss
LIKE = {"onebit_lamb": "lamb"}  # what a compressed optimizer is made of, if not AdamW


def read(folder):
    losses, last = [], None
    for path in sorted(glob.glob(os.path.join(folder, "[0-9]*.json"))):
        with open(path) as file:
            last = json.load(file)["runs"][0]
        losses = losses[:last["steps_before"]] + last["losses"]
    tail = losses[-((len(losses) + 9) // 10):]
    return {"final": sum(tail) / len(tail), "held_out": last["evaluation_loss"], "steps": len(losses),
            "lr": last["settings"]["lr"]}


def cell(value):
    return f"{'-':>9} " if value is None else f"{100 * value:7.2f} %"


def compare(folder, ranks, optimizers):
    runs = {name: read(os.path.join(folder, f"{ranks}.{name}")) for name in optimizers}
    for name, run in runs.items():
        aim = AIM if name.startswith(("onebit", "zero")) else None
        row = {"ranks": int(ranks), "optimizer": name, **run, "aim": aim}
        for key, other in (("adamw", "adamw"), ("like", LIKE.get(name))):
            row[f"final_of_{key}"] = run["final"] / runs[other]["final"] if other in runs else None
            row[f"held_out_of_{key}"] = run["held_out"] / runs[other]["held_out"] if other in runs else None
        yield row


def show(row):
    missed = row["aim"] and row["final_of_adamw"] and row["final_of_adamw"] > row["aim"]
    print(f"{row['ranks']:>5} {row['optimizer']:<14} {row['steps']:>5} {row['lr']:>7g} {row['final']:8.4f}"
          f" {cell(row['final_of_adamw'])}{'!' if missed else ' '} {row['held_out']:8.4f}"
          f" {cell(row['held_out_of_adamw'])}  {cell(row['final_of_like'])}")


def main():
    folder, result = sys.argv[1:3]
    split = sys.argv.index("--")
    rows = []
    print(f"{'ranks':>5} {'optimizer':<14} {'steps':>5} {'lr':>7} {'final':>8} {'of adamw':>9}  {'held-out':>8}"
          f" {'of adamw':>9}  {'of lamb':>9}")
    for ranks in sys.argv[3:split]:
        for row in compare(folder, ranks, sys.argv[split + 1:]):
            show(row)
            rows.append(row)
    print(f"final: mean loss of the last tenth of the steps; aim: at most {100 * AIM:.0f} % of adamw's")
    write(result, {"machine": machine(), "rows": rows})


if __name__ == "__main__":
    main()
