"""The tables of the comparisons share this: medians, the machine's description, a result file that is whole or not
there."""
import json
import os
import platform
import statistics


def median(runs, field):
    return statistics.median(run[field] for run in runs)


def with_aim(ratio, aim, at_least=False):
    """Formats a ratio with its aim in 14 columns; a ! marks a ratio that falls short."""
    if aim is None:
        return f"{ratio:6.2f}" + 8 * " "
    reached = ratio >= aim if at_least else ratio <= aim
    return f"{ratio:6.2f} {'>=' if at_least else '<='}{aim:4.2f}" + (" " if reached else "!")


def machine():
    with open("/proc/cpuinfo") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return {"processor": names[0] if names else "unknown", "cores": os.cpu_count(), "kernel": platform.release(),
            "python": platform.python_version()}


def write(path, everything):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + ".part", "w") as file:
        json.dump(everything, file, indent=2)
        file.write("\n")
    os.replace(path + ".part", path)
    print(f"written: {path}")
