"""Joins the runs that precision.sh left in a folder: losses in fp32 and in bf16, and how far apart they are.

    precision_table.py FOLDER RESULT.json        reads FOLDER/SEED.PRECISION.json
"""
import json
import os
import sys

from results import machine, write

AIM, LAST = 0.02, 20


def read(folder, seed, precision):
    with open(os.path.join(folder, f"{seed}.{precision}.json")) as file:
        run = json.load(file)["runs"][0]
    last = run["losses"][-LAST:]
    return {"held_out": run["evaluation_loss"], "training": sum(last) / len(last), "steps": len(run["losses"])}


def main():
    folder, result = sys.argv[1:]
    rows = []
    print(f"{'seed':>4} {'steps':>5}  {'loss':<9} {'fp32':>8} {'bf16':>8} {'apart':>8}  aim")
    for seed in sorted({name.split(".")[0] for name in os.listdir(folder) if name.endswith(".json")}, key=int):
        fp32, bf16 = read(folder, seed, "fp32"), read(folder, seed, "bf16")
        for kind in ("training", "held_out"):
            apart = abs(fp32[kind] - bf16[kind])
            rows.append({"seed": int(seed), "steps": fp32["steps"], "loss": kind, "fp32": fp32[kind],
                         "bf16": bf16[kind], "apart": apart, "aim": AIM})
            print(f"{seed:>4} {fp32['steps']:>5}  {kind:<9} {fp32[kind]:8.4f} {bf16[kind]:8.4f} {apart:8.4f}  <={AIM}"
                  f"{'' if apart <= AIM else '!'}")
    write(result, {"machine": machine(), "rows": rows})


if __name__ == "__main__":
    main()
