"""Sends the log of `sluice train --log DIR` to Weights & Biases, while the run goes on or later:

    pip install wandb && wandb login
    python to_wandb.py DIR [--project NAME] [--follow]

With --follow it goes on until the run's last step. Sluice itself needs none of this: DIR has a JSON object a step."""
import argparse
import json
import os
import time


def lines(path, follow, last):
    """The objects of metrics.jsonl; half a line is one that is still being written."""
    rest = ""
    with open(path, encoding="utf-8") as file:
        while True:
            rest += file.read()
            *whole, rest = rest.split("\n")
            for line in whole:
                entry = json.loads(line)
                yield entry
                if entry["step"] >= last and "loss" in entry:
                    follow = False
            if not follow:
                return
            time.sleep(2)


def names_of(entry):
    """Figures under the names that TensorBoard's files have."""
    groups = {"loss": "train", "smoothed_loss": "train", "learning_rate": "train", "gradient_norm": "train",
              "passes": "train", "tokens": "train", "step_s": "speed", "exposed_s": "speed", "peak_bytes": "memory",
              "evaluation_loss": "eval", "evaluation_accuracy": "eval"}
    return {f"{groups[key]}/{key}": value for key, value in entry.items() if key in groups and value is not None}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the folder of --log")
    parser.add_argument("--project", default="sluice")
    parser.add_argument("--follow", action="store_true", help="wait for steps that are still to come")
    options = parser.parse_args()
    import wandb

    with open(os.path.join(options.folder, "run.json"), encoding="utf-8") as file:
        about = json.load(file)
    run = wandb.init(project=options.project, name=os.path.basename(os.path.abspath(options.folder)),
                     config=about["settings"] | {"world": about["world"], "parameters": about["parameters"]})
    last = about["settings"]["steps"] if "steps" in about["settings"] else 0
    for entry in lines(os.path.join(options.folder, "metrics.jsonl"), options.follow, last):
        run.log(names_of(entry), step=entry["step"])
    run.finish()


if __name__ == "__main__":
    main()
