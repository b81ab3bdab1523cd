"""Runs of comparisons that take long: each run's result is kept in a folder, so that the same command goes on where it was
interrupted. The folder says what it holds, and another comparison in it is refused."""
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
REFUSAL = 2  # exit code of the command
# Quantiles of Student's distribution that leave out 2.5 % at each end, for 1, 2, ... degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145)


def find_sluice():
    path = os.environ.get("SLUICE", os.path.join(ROOT, "build/release/bench/sluice"))
    if not os.access(path, os.X_OK):
        sys.exit(f"{path} is not there: run ./dev build, or set SLUICE")
    return os.path.realpath(path)


def add_places(parser, name):
    """Adds the options that say where runs and rows are kept."""
    parser.add_argument("--folder", default=os.path.join(ROOT, "out", name))
    parser.add_argument("--json", default=os.path.join(ROOT, f"bench/results/{name}.json"), metavar="FILE")


def add_model(parser):
    """Adds the options of the model that two ranks train."""
    parser.add_argument("--size", default="mini")
    parser.add_argument("--batch", default="4")
    parser.add_argument("--context", default="64")


def model_options(options):
    """Returns the options for `sluice train` and `bench` that describe this model; a rank has one thread."""
    return ["--size", options.size, "--batch", options.batch, "--context", options.context, "--threads", "1"]


def settings_of(options):
    """Returns all options that results depend on: those that add_places has not added."""
    return {key: value for key, value in vars(options).items() if key not in ("folder", "json")}


def say_time(seconds):
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class KeptRuns:
    """`settings` are all that a result depends on besides its key and the command; `total`: how many runs there will
    be."""

    def __init__(self, folder, settings, total, command=None):
        self.folder, self.total, self.done, self.ran = folder, total, 0, 0
        self.began = time.monotonic()
        os.makedirs(folder, exist_ok=True)
        with open(command or find_sluice(), "rb") as file:
            build = hashlib.sha256(file.read()).hexdigest()
        mark, wanted = os.path.join(folder, "settings.json"), settings | {"command_sha256": build}
        if os.path.exists(mark):
            with open(mark, encoding="utf-8") as file:
                there = json.load(file)
            if there != wanted:
                other = sorted(key for key in there | wanted if there.get(key) != wanted.get(key))
                sys.exit(f"{folder} has runs of another comparison ({', '.join(other)}): give another --folder, or remove it")
        else:
            self.write("settings", wanted)

    def path(self, key):
        return os.path.join(self.folder, key + ".json")

    def write(self, key, value):
        with open(self.path(key) + ".part", "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(self.path(key) + ".part", self.path(key))

    def read(self, key):
        with open(self.path(key), encoding="utf-8") as file:
            return json.load(file)

    def take(self, key, measure):
        """Returns the result of this key: the kept one, or what measure() returns."""
        self.done += 1
        if not os.path.exists(self.path(key)):
            self.tell(key)
            value = measure()
            self.ran += 1
            self.write(key, value)
        return self.read(key)

    def tell(self, key):
        spent = time.monotonic() - self.began
        left = f", {say_time(spent / self.ran * (self.total - self.done + 1))} left" if self.ran else ""
        line = f"{self.done} of {self.total}, {say_time(spent)}{left}: {key}"
        print(f"\r{line:78}" if sys.stderr.isatty() else line, end="" if sys.stderr.isatty() else "\n", file=sys.stderr,
              flush=True)

    def end(self):
        if sys.stderr.isatty():
            print(f"\r{'':78}\r", end="", file=sys.stderr, flush=True)


def run_quietly(command, environment=None, refused=None):
    """Returns whether the command was successful. Ends this program with its output if it fails, unless it is a refusal
    that names `refused`."""
    done = subprocess.run(command, env=os.environ | (environment or {}), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode and not (done.returncode == REFUSAL and refused and refused in done.stdout):
        sys.exit(f"\n{done.stdout}{' '.join(command)}: code {done.returncode}")
    return not done.returncode


def train(options, scratch, environment=None, launcher=()):
    """Returns the result of `sluice train`, or None if it does not fit the budget. A launcher is the beginning of a command
    line that starts the ranks."""
    if not run_quietly([*launcher, find_sluice(), "train", *options, "--json", scratch], environment, refused="budget"):
        return None
    return take_result(scratch)


def take_result(scratch):
    """Returns the only run of a result file, and removes the file."""
    with open(scratch, encoding="utf-8") as file:
        run = json.load(file)["runs"][0]
    os.remove(scratch)
    return run


def mean_ratio(ratios):
    """Returns the geometric mean and the ends of its 95 % interval; an interval needs two ratios."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), None, None
    half = STUDENT[min(len(logs) - 2, len(STUDENT) - 1)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def interval_text(row):
    """Returns the interval of mean_ratio, which a row has as `low` and `high`, for a table."""
    return f"{row['low']:.3f} to {row['high']:.3f}" if row["low"] is not None else "-"
