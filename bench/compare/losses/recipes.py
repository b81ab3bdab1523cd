#!/usr/bin/env python3
"""Measures what the recipes of docs/training.md cost in quality and save in time, each beside the same training without it.

    pld         layers that steps leave out (theta 0.5): held-out loss at equal steps, and at equal time at 1 Gbit/s
    curriculum  8 times the batch and 4 times the rate, with and without a curriculum over length: steps whose loss jumps,
                tokens and time to the same held-out loss
    onebit      1-bit Adam on 4 ranks with a cosine rate beside AdamW: final loss, and bytes of a run
    lamb        LAMB with 8 times the batch and the square-root rate beside AdamW, on equal tokens: final loss
    bert        steps of BERT with norms before its branches that leave layers out: seconds of the processor
    forecast    two ranks with layers that steps leave out, and a link throttled to 1 Gbit/s: the mean step that the run's last
                plan predicts, and the time that `sluice plan --recipe` predicts of the whole run from a profile, beside
                what was measured; it needs a core a rank, and a machine that does nothing else
    network     GPT-2 124M on two hosts, which are network namespaces joined by 1 Gbit/s, with layers that steps leave out:
                the mean step and its bytes; it needs root, a core a rank, and a machine that does nothing else

The text is the source of Python's library, each byte a token; its last tenth is held out. Since the ranks of a step end in
the weights that one rank has with the same sequences, one rank stands for several (the part onebit compares them). Times at
1 Gbit/s are those that `sluice estimate` simulates, at a fixed pace of compute.

Prints a table ("!" falls short of the aim) and writes bench/results/recipes.json; rows of other settings that the file has
stay there. Results are kept in the folder (--folder), so that the same command goes on where it was interrupted.
SLUICE=the command.
"""
import argparse
import collections
import hashlib
import itertools
import json
import math
import os
import pathlib
import resource
import shutil
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../peers"))
import processor_clock
from kept_runs import ROOT, KeptRuns, add_places, find_sluice, mean_ratio, run_quietly, train
from library_text import read_library
from results import machine, write

EXAMPLES = """examples:
  bench/compare/losses/recipes.py                                         all of the table
  bench/compare/losses/recipes.py --parts lamb,onebit --cores 0           two parts, bound to one core
  bench/compare/losses/recipes.py --parts lamb --lamb-rates 0.003,0.03    further settings: what is there does not run again
  bench/compare/losses/recipes.py --parts pld@nano:5                      smaller, and with more seeds
  bench/compare/losses/recipes.py --parts forecast --json recipe-forecasts.json   on a quiet machine
  bench/compare/losses/recipes.py --parts network --json recipe-network.json      on a quiet machine, as root
"""
PARTS = ("pld", "curriculum", "onebit", "lamb", "bert", "forecast", "network")
QUIET = ("forecast", "network")  # parts that want a machine which does nothing else, and a file of their own
SIZES = {"bert": "base", "network": "small"}  # of a part's model; mini elsewhere
BATCH, CONTEXT, RATE, LEAST_RATE = 4, 64, 1e-3, 1e-4  # of the training that the others stand beside
MORE, LONG = 8, 128  # times the batch; tokens of a sequence where a curriculum grows to them
THETA, RANKS, JUMP, BERT_BATCH = 0.5, 4, 1.2, 1
AT_1GBIT = ("-n", "2", "--ranks-a-host", "1", "--throttle", "1gbit,50us", "--pace", "100gflops,10GB", "--strategy", "dp",
            "--effort", "0.3")
THROTTLED = ("-n", "2", "--throttle", "1gbit,50us")
TWO_HOSTS = (os.path.join(ROOT, "bench/compare/networks/namespaces.sh"), "-n", "2", "--rate", "1gbit", "--burst", "1mb",
             "--only", "0", "--")
SETTLED = 8  # steps on two hosts that do not count: plans from measured times, and for other depths, begin in them
AIMS = {"equal steps": 1.02, "equal time": 1.0, "jumps": 0.1, "tokens": 0.8, "onebit": 1.01, "bytes": 0.2, "lamb": 1.02,
        "bert": 0.82, "network": 0.88}
OFF_BY = {"mean step": 0.05, "whole run": 0.07}  # aims of a prediction: |predicted / measured - 1|


Part = collections.namedtuple("Part", "name size seeds")


def read_part(parser, words):
    """Returns the part that PART[@SIZE[:SEEDS]] names."""
    name, _, more = words.partition("@")
    size, _, seeds = more.partition(":")
    if name not in PARTS or (seeds and not seeds.isdigit()):
        parser.error(f"--parts: {words}; there are {', '.join(PARTS)}, each as PART, PART@SIZE or PART@SIZE:SEEDS")
    return Part(name, size or SIZES.get(name, "mini"), int(seeds or 3))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)

    def add(option, default, words, kind=str, metavar="LIST"):
        parser.add_argument(option, default=default, type=kind, metavar=metavar, help=f"{words} (default {default})")
    add("--parts", ",".join(part for part in PARTS if part not in QUIET), "what is measured (there are also forecast and "
        "network, which want a quiet machine and a file of their own): each part as PART, PART@SIZE or PART@SIZE:SEEDS, with "
        "a size of GPT-2 (mini, for network small), for bert of BERT (base), and for pld so many runs of each kind, of seeds "
        "from 1 on (3)")
    add("--steps", 2000, "steps of the training with the small batch; other runs have shares of them", int, "N")
    add("--gammas", "100/steps", "how fast theta falls, of pld")
    add("--curricula", "16:128:half,16:128:half:tokens", "lengths, the steps over which they grow, and :tokens for folded "
        "windows")
    add("--curriculum-rates", str(4 * RATE), "its learning rates, with and without a curriculum")
    add("--freezes", "25,15", "per cent of the steps after which 1-bit Adam freezes")
    add("--lamb-rates", "0.01", "LAMB's rates for the small batch")
    add("--lamb-batches", str(MORE), "how many times the small batch it has")
    add("--lamb-times", "1", "how many times --steps it and what it stands beside train")
    add("--bert-steps", 12, "steps of each of its runs", int, "N")
    add("--draws", 3, "how many seeds its layers are drawn with, by turns with steps that keep all", int, "N")
    add("--forecast-steps", 200, "steps of each run whose time is predicted", int, "N")
    add("--forecast-gammas", "100,10/steps", "how fast theta falls in it")
    add("--network-steps", 20, f"steps of each run on two hosts; the first {SETTLED} do not count", int, "N")
    add("--megabytes", 4.0, "size of the text", float, "X")
    parser.add_argument("--cores", metavar="LIST", help="bind all runs to these cores, as 0 or 0,1 (default all)")
    add_places(parser, "recipes")
    options = parser.parse_args()
    options.parts = [read_part(parser, words) for words in options.parts.split(",")]
    if options.network_steps < SETTLED + 2:
        parser.error(f"--network-steps {options.network_steps}: give {SETTLED + 2} or more")
    return options


# ---- Runs ----

def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Runs:
    """Trains and estimates, each under a key, and keeps what came of it. `size` is that of the present part's model."""

    def __init__(self, options, total):
        self.options, self.folder, self.size = options, options.folder, None
        self.text, self.scratch, self.log = (os.path.join(self.folder, name) for name in ("text", "scratch", "log"))
        text = read_library(options.megabytes).encode()
        settings = {"steps": options.steps, "bert_steps": options.bert_steps,
                    "text_sha256": hashlib.sha256(text).hexdigest()}
        self.kept = KeptRuns(self.folder, settings, total)
        if not os.path.exists(self.text):
            pathlib.Path(self.text + ".part").write_bytes(text)
            os.replace(self.text + ".part", self.text)

    def train(self, key, *flags, batch=BATCH, context=CONTEXT, steps, ranks=1, strategy="dp", schedule="one_ahead",
              environment=None, launcher=()):
        """Trains on `batch` sequences of all ranks together; a launcher starts the ranks, else the command does."""
        settings = ["--data", self.text, "--batch", str(batch // ranks), "--context", str(context), "--steps", str(steps),
                    "--threads", "1", "--strategy", strategy, "--schedule", schedule, "--no-hash", *flags]
        settings += ["-n", str(ranks)] if ranks > 1 and not launcher else []

        def measure():
            shutil.rmtree(self.log, ignore_errors=True)
            before = processor_seconds()
            run = train([*settings, "--log", self.log], self.scratch, environment, launcher)
            lines = [json.loads(line) for line in
                     pathlib.Path(self.log, "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
            return {"flags": settings, "processor_s": processor_seconds() - before,
                    "bytes_sent": [line.get("bytes_sent", 0) for line in lines],
                    "evaluations": [(line["step"], line["evaluation_loss"]) for line in lines
                                    if line.get("evaluation_loss") is not None],
                    **{name: run[name] for name in ("parameters", "losses", "final_loss", "evaluation_loss",
                                                    "tokens_seen", "elapsed_s", "warm_up", "compressed", "train_s",
                                                    "predicted_step_s", "step_mean_s")}}
        return self.kept.take(key, measure)

    def gpt2(self, key, *flags, **how):
        return self.train(f"{self.size}.{key}", "--size", self.size, *flags, **how)

    def estimate(self, key, *flags, steps):
        """Returns the phases of a run: stretches of steps that take the same time."""
        def measure():
            run_quietly([find_sluice(), "estimate", "--data", self.text, "--steps", str(steps), "--json", self.scratch,
                         *flags])
            with open(self.scratch, encoding="utf-8") as file:
                return json.load(file)
        return self.kept.take(key, measure)["phases"]

    def phases(self, key, *flags, batch=BATCH, context=CONTEXT, steps):
        """Estimates a run of this GPT-2 on two ranks at 1 Gbit/s."""
        return self.estimate(f"{self.size}.{key}", "--size", self.size, "--batch", str(batch // 2), "--context",
                             str(context), *AT_1GBIT, *flags, steps=steps)

    def times(self, key, *flags, context=CONTEXT, **how):
        """Returns when each step of such a run ends; the first item is 0. A curriculum that changes nothing makes the
        estimate list a run that has none."""
        phases = self.phases(key, *(flags or ("--curriculum", f"{context}@1,{context}")), context=context, **how)
        each = (phase["predicted_step_s"] for phase in phases for _ in range(phase["steps"]))
        return list(itertools.accumulate(each, initial=0.0))

    def forecast(self, key, strategy, recipe):
        """Returns the seconds of a run of two ranks on a throttled link, as `sluice plan` predicts them from a profile of
        this machine."""
        profile, file = os.path.join(self.folder, "forecast.profile"), os.path.join(self.folder, "forecast.recipe")

        def measure():
            run_quietly([find_sluice(), "profile", *THROTTLED, "--data", self.text, "--size", self.size, "--batch", str(BATCH),
                         "--context", str(CONTEXT), "--threads", "1", "--strategy", strategy, "-o", profile])
            pathlib.Path(file).write_text(json.dumps({"version": 1} | recipe), encoding="utf-8")
            run_quietly([find_sluice(), "plan", "--profile", profile, "--recipe", file, "--strategy", strategy, "--json",
                         self.scratch])
            with open(self.scratch, encoding="utf-8") as found:
                return sum(phase["steps"] * phase["predicted_step_s"] for phase in json.load(found)["phases"])
        return self.kept.take(f"{self.size}.{key}", measure)

    def measure_bytes(self, key, *flags):
        """Returns the bytes that a rank sends in a step of AdamW, and of 1-bit Adam before and after its freeze, as
        `sluice bench` counts them."""
        sweep = os.path.join(self.folder, "bytes")

        def measure():
            run_quietly([find_sluice(), "bench", "-n", str(RANKS), "--size", self.size, "--batch", "1", "--context",
                         "16", "--threads", "1", "--optimizer", "adamw,onebit_adam", "--schedule", "one_ahead", "--repeat",
                         "1", "-o", sweep, "--overwrite", *flags])
            with open(os.path.join(sweep, "results.json"), encoding="utf-8") as file:
                found = {run["optimizer"]: run for run in json.load(file)["runs"]}
            onebit = found["onebit_adam"]
            return [found["adamw"]["warm_up"]["bytes_sent"], onebit["warm_up"]["bytes_sent"],
                    onebit["compressed"]["bytes_sent"]]
        return self.kept.take(f"{self.size}.{key}", measure)


def falling(steps):
    """The rate's course: a short warm-up, then a cosine."""
    return ("--lr-schedule", "cosine", "--warmup", str(max(1, steps // 20)))


def plain(runs, seed, times=1):
    """Trains without a recipe, with the small batch; two parts stand beside it."""
    steps = times * runs.options.steps
    return runs.gpt2(f"adamw.{seed}" + (f".{times}_times" if times > 1 else ""), *falling(steps), "--lr", str(RATE),
                     "--lr-min", str(LEAST_RATE), "--seed", str(seed), "--eval-batches", "256", steps=steps)


def row(part, setting, what, values, aim=None):
    """`values`: that of the recipe, that of what stands beside it. The aim is one of AIMS, for the ratio."""
    value, beside = values
    ratio = value / beside if beside and value is not None else None
    good = None if aim is None or ratio is None else ratio < AIMS[aim] if aim == "equal time" else ratio <= AIMS[aim]
    return {"part": part, "setting": setting, "what": what, "value": value, "beside": beside, "ratio": ratio,
            "aim": AIMS.get(aim), "good": good}


def row_of_means(part, setting, what, pairs, aim):
    """Returns a row of the means over seeds, whose ratio is the geometric mean with its 95 % interval."""
    mean, low, high = mean_ratio([value / beside for value, beside in pairs])
    made = row(part, setting, what, [statistics.fmean(values) for values in zip(*pairs)], aim)
    good = mean < AIMS[aim] if aim == "equal time" else mean <= AIMS[aim]
    return made | {"ratio": mean, "low": low, "high": high, "good": good, "pairs": pairs}


# ---- The parts ----

def usually_left_out(blocks, theta):
    return (blocks - 1) * (1 - theta) / 2


def time_dropped(phases, gamma, steps):
    """Returns the time of all steps at the layers that are left out in the mean over all draws: the estimate looks at no
    more than 64 draws of a phase, whose mean is off by a per cent. A step gains in proportion to what it leaves out."""
    first, last = phases[0], phases[-1]
    gain = (first["predicted_step_s"] - last["predicted_step_s"]) / (first["layers"] - last["layers"])
    blocks = first["layers"] - 2
    left_out = (usually_left_out(blocks, (1 - THETA) * math.exp(-gamma * step) + THETA) for step in range(steps))
    return sum(first["predicted_step_s"] - gain * layers for layers in left_out)


def measure_pld(runs, seeds):
    options = runs.options
    for words in options.gammas.split(","):
        def gamma_of(steps, words=words):
            return 100 / steps if words == "100/steps" else float(words)

        def dropped(key, seed, steps, gamma_of=gamma_of):
            return runs.gpt2(f"{key}.{seed}", *falling(steps), "--lr", str(RATE), "--lr-min", str(LEAST_RATE), "--seed",
                             str(seed), "--eval-batches", "256", "--pld", f"{THETA},{gamma_of(steps):g}", steps=steps)
        name, setting = words.replace("/", "_over_"), f"theta {THETA:g}, gamma {words}"
        gamma = gamma_of(options.steps)
        whole_s = runs.times("time.adamw", steps=options.steps)[-1]
        phases = runs.phases(f"time.pld.{name}", "--pld", f"{THETA},{gamma:g}", steps=options.steps)
        dropped_s = time_dropped(phases, gamma, options.steps)
        longer = int(options.steps * whole_s / dropped_s)
        yield row("pld", setting, f"seconds of {options.steps} steps at 1 Gbit/s, 2 ranks, simulated", (dropped_s, whole_s))
        equal_steps, equal_time = [], []
        for seed in range(1, seeds + 1):
            beside = plain(runs, seed)["evaluation_loss"]
            equal_steps.append((dropped(f"pld.{name}", seed, options.steps)["evaluation_loss"], beside))
            equal_time.append((dropped(f"pld.{name}.longer", seed, longer)["evaluation_loss"], beside))
        seeds_words = f"mean of {seeds} seeds" if seeds > 1 else "one seed"
        yield row_of_means("pld", setting, f"held-out loss after {options.steps} steps, {seeds_words}", equal_steps,
                           "equal steps")
        yield row_of_means("pld", setting, f"held-out loss in equal time at 1 Gbit/s: {longer} steps, {seeds_words}",
                           equal_time, "equal time")


def mean_step_after(run, step):
    """Returns the mean time of a run's steps after number `step`."""
    elapsed_s = run["elapsed_s"]
    return (elapsed_s[-1] - elapsed_s[step - 1]) / (len(elapsed_s) - step)


def count_left_out(runs, key, *flags, steps):
    """Returns how many layers the steps of a run leave out, all together, and how many there are that could be."""
    phases = runs.estimate(f"{key}.{steps}", *flags, "--strategy", "dp", "--effort", "0.1", "--pace", "100gflops,10GB",
                           steps=steps)
    most = phases[0]["layers"]
    return sum(phase["steps"] * (most - phase["layers"]) for phase in phases), round(most) - 2


def count_jumps(losses):
    """Returns how many losses are above JUMP times the lowest before them."""
    lowest = itertools.accumulate(losses, min)
    return sum(loss > JUMP * least for loss, least in zip(losses[1:], lowest))


def first_step_at(run, target):
    """Returns the step, as a fraction between two evaluations, at which the held-out loss has come down to the target; None:
    it has not."""
    before = None
    for step, loss in run["evaluations"]:
        if loss <= target:
            return step if before is None else before[0] + (step - before[0]) * (before[1] - target) / (before[1] - loss)
        before = (step, loss)
    return None


def at_fraction(values, step):
    """Returns values[step], linear between two of them."""
    whole = min(int(step), len(values) - 2)
    return values[whole] + (step - whole) * (values[whole + 1] - values[whole])


def measure_curriculum(runs, _):
    """The rate is constant after its warm-up, so that a held-out loss does not hang on how near the end of a cosine is."""
    options = runs.options
    steps, batch = max(20, options.steps // 8), MORE * BATCH
    tokens = steps * batch * LONG

    def grown(key, rate, steps, *flags):
        return runs.gpt2(key, "--lr", rate, "--lr-over", "tokens", "--warmup", str(tokens // 10), "--eval-every",
                         str(max(1, steps // 25)), "--eval-batches", "4", *flags, batch=batch, context=LONG, steps=steps)
    large_ends = runs.times("time.large", batch=batch, context=LONG, steps=steps)
    for words in options.curricula.split(","):
        lengths, folded = words.removesuffix(":tokens").replace("half", str(steps // 2)), words.endswith(":tokens")
        flags = ("--curriculum", lengths, "--curriculum-batch", "tokens" if folded else "fixed")
        name, more = words.replace(":", "_"), steps if folded else steps + steps // 4  # cut windows have fewer tokens a step
        ends = runs.times(f"time.large.{name}", *flags, batch=batch, context=LONG, steps=more)
        for rate in options.curriculum_rates.split(","):
            pair = grown(f"large.{rate}.{name}", rate, more, *flags), grown(f"large.{rate}", rate, steps)
            yield from beside_large(f"rate {rate}, lengths {lengths}, {'folded' if folded else 'cut'} windows", pair,
                                    (ends, large_ends))


def beside_large(setting, pair, ends):
    """Yields the rows of a run with a curriculum and of that without; `ends` are the times of their steps' ends."""
    yield row("curriculum", setting, f"steps above {JUMP:g} times the lowest loss so far",
              [count_jumps(run["losses"]) for run in pair], "jumps")
    yield row("curriculum", setting, "held-out loss at the end", [run["evaluation_loss"] for run in pair])
    target = pair[1]["evaluations"][-1][1]
    reached = [first_step_at(run, target) for run in pair]
    what = f"tokens to the held-out loss {target:.3f}"
    if reached[0] is None:
        yield row("curriculum", setting, what + ", which it did not reach",
                  (None, pair[1]["tokens_seen"][-1])) | {"aim": AIMS["tokens"], "good": False}
        return
    yield row("curriculum", setting, what,
              [at_fraction([0, *run["tokens_seen"]], step) for run, step in zip(pair, reached)], "tokens")
    yield row("curriculum", setting, "seconds to it at 1 Gbit/s, 2 ranks, simulated",
              [at_fraction(times, step) for times, step in zip(ends, reached)], "tokens")


def measure_onebit(runs, _):
    options = runs.options
    steps, batch, few = max(20, options.steps // 2), 4 * BATCH, 20
    flags = (*falling(steps), "--lr", str(RATE), "--lr-min", str(LEAST_RATE), "--eval-batches", "64")
    alone, together = (runs.gpt2(f"ranks.{ranks}", "--lr", str(RATE), "--eval-batches", "0", batch=batch, steps=few,
                                 ranks=ranks) for ranks in (1, RANKS))
    apart = max(abs(a - b) for a, b in zip(alone["losses"], together["losses"]))
    yield row("onebit", f"AdamW, {RANKS} ranks beside one", f"losses of {few} steps apart by at most", (apart, None))
    beside = runs.gpt2("adamw.16", *flags, batch=batch, steps=steps)
    for freeze in map(int, options.freezes.split(",")):
        last = steps * freeze // 100
        run = runs.gpt2(f"onebit.{freeze}", *flags, "--optimizer", "onebit_adam", "--freeze-step", str(last), batch=batch,
                        steps=steps, ranks=RANKS, strategy="onebit")
        setting = f"{RANKS} ranks, {batch} sequences, frozen after {last} of {steps} steps"
        yield row("onebit", setting, "final loss", (run["final_loss"], beside["final_loss"]), "onebit")
        yield row("onebit", setting, "held-out loss", (run["evaluation_loss"], beside["evaluation_loss"]))
        whole, before, after = runs.measure_bytes("bytes", "--steps", "40", "--freeze-step", "20")
        yield row("onebit", setting, "bytes that a rank sends in the run, by `sluice bench`",
                  (last * before + (steps - last) * after, steps * whole), "bytes" if freeze <= 15 else None)


def measure_lamb(runs, _):
    """Trains LAMB with larger batches, and AdamW with the small one beside it."""
    lists = (getattr(runs.options, name).split(",") for name in ("lamb_batches", "lamb_times", "lamb_rates"))
    for batches, times, rate in itertools.product(*lists):
        more, steps = int(batches), max(20, int(times) * runs.options.steps // int(batches))
        suffix = (f".{times}_times" if times != "1" else "") + (f".{more}_batches" if more != MORE else "")
        run = runs.gpt2(f"lamb.{rate}{suffix}", *falling(steps), "--optimizer", "lamb", "--lr", rate, "--lr-min",
                        str(float(rate) / 10), "--lr-rule", "sqrt", "--lr-batch", str(BATCH), "--eval-batches",
                        str(256 // more), batch=more * BATCH, steps=steps)
        beside = plain(runs, 1, int(times))
        setting = f"{more * BATCH} sequences, {steps} steps, rate {rate} x sqrt({more})"
        yield row("lamb", setting, "final loss", (run["final_loss"], beside["final_loss"]), "lamb")
        yield row("lamb", setting, "held-out loss", (run["evaluation_loss"], beside["evaluation_loss"]))


def measure_bert(runs, _):
    """Step times are seconds of the processor, and those of the first step, which keeps all layers, do not count."""
    options = runs.options
    model = ("--model", "bert", "--size", runs.size, "--norm", "before")
    clock = processor_clock.build()
    pld, steps, seconds, drawn = ("--pld", f"{THETA},100"), options.bert_steps, [], []
    for seed in range(1, options.draws + 1):
        def mean_step(key, *flags, seed=seed):
            run = runs.train(f"bert.{runs.size}.{key}.{seed}", *model, *flags, "--seed", str(seed), "--eval-batches", "0",
                             batch=BERT_BATCH, context=128, steps=steps, environment={"LD_PRELOAD": clock})
            return mean_step_after(run, 1)
        seconds.append((mean_step("drawn", *pld), mean_step("whole")))
        left_out, blocks = count_left_out(runs, f"bert.{runs.size}.layers.{seed}", *model, *pld, "--context", "128",
                                          "--seed", str(seed), steps=steps)
        drawn.append(left_out / (steps - 1))
    usual = usually_left_out(blocks, THETA)
    setting = f"{BERT_BATCH} x 128 tokens, theta {THETA:g}, {options.draws} draws of {steps - 1} steps"
    kept = blocks - statistics.fmean(drawn)
    means = [statistics.fmean(values) for values in zip(*seconds)]
    yield row("bert", setting, f"seconds of the processor a step; {kept:.2f} of {blocks} layers were drawn", means, "bert")
    saved = sum(whole - some for some, whole in seconds) / sum(drawn) * usual
    yield row("bert", setting, f"the same at the mean of all draws, {blocks - usual:.2f} layers, a layer saving as much",
              (means[1] - saved, means[1]), "bert")


def row_of_forecast(setting, what, values, aim):
    made = row("forecast", setting, what, values)
    return made | {"aim": f"within {OFF_BY[aim]:.0%}", "good": abs(made["ratio"] - 1) <= OFF_BY[aim]}


def measure_forecast(runs, _):
    """The plan is the default's, made from measured times. Before each run its profile is measured, so that a machine whose
    pace changes in a minute changes little between the two."""
    steps = runs.options.forecast_steps
    for words, strategy in itertools.product(runs.options.forecast_gammas.split(","), ("dp", "sdp", "fsdp")):
        gamma = 10 / steps if words == "10/steps" else float(words)
        key = f"forecast.{steps}.{gamma:g}.{strategy}"
        setting = f"2 ranks, 1 Gbit/s, {strategy}, theta {THETA:g}, gamma {gamma:g}"
        pld = f"{THETA},{gamma:g}"
        whole_s = runs.forecast(f"{key}.plan", strategy, {"steps": steps, "depth": {"pld": pld}})
        run = runs.gpt2(key, *THROTTLED[2:], "--pld", pld, "--eval-batches", "0", batch=2 * BATCH, steps=steps, ranks=2,
                        strategy=strategy, schedule="ilp")
        yield row_of_forecast(setting, "mean step after the last plan",
                              (run["predicted_step_s"], run["step_mean_s"]), "mean step")
        yield row_of_forecast(setting, f"{steps} steps, from a profile",
                              (whole_s, run["train_s"]), "whole run")


def measure_network(runs, _):
    """Each strategy trains by turns with all layers and with those that steps keep. The saving at the mean of all draws is the
    measured one, scaled by the number of layers that were left out. --replan-trials is 0, because when one plan takes the place
    of another, operations that the last step has left over are sent outside of all steps."""
    steps, counted = runs.options.network_steps, runs.options.network_steps - SETTLED
    pld = ("--pld", f"{THETA},100")
    shape = ("--size", runs.size, *pld, "--batch", str(BATCH), "--context", str(CONTEXT), "-n", "2")
    (all_left_out, blocks), (before, _) = (count_left_out(runs, f"{runs.size}.network.layers", *shape, steps=last)
                                           for last in (steps, SETTLED))
    usual, drawn = usually_left_out(blocks, THETA), (all_left_out - before) / counted

    def run(key, *flags):
        made = runs.gpt2(f"network.{steps}.{strategy}.{key}", *flags, "--eval-batches", "0", "--replan-trials", "0", batch=2 * BATCH,
                         steps=steps, ranks=2, strategy=strategy, schedule="ilp", launcher=TWO_HOSTS)
        return mean_step_after(made, SETTLED), statistics.fmean(made["bytes_sent"][SETTLED:])
    for strategy in ("dp", "sdp", "fsdp"):
        whole, some = run("whole"), run("drawn", *pld)
        setting = f"2 hosts, 1 Gbit/s, {2 * BATCH} x {CONTEXT} tokens, {strategy}, theta {THETA:g}"
        for what, beside, value, aim in (("seconds of a step", whole[0], some[0], "network"),
                                         ("bytes that a rank sends in a step", whole[1], some[1], None)):
            yield row("network", setting, f"{what}, {blocks - drawn:.2f} of {blocks} layers drawn", (value, beside))
            usual_value = beside - (beside - value) / drawn * usual
            yield row("network", setting, f"{what}, {blocks - usual:.2f} layers as in the mean of all draws",
                      (usual_value, beside), aim)


# ---- The table ----

def figure(value):
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1e5 else f"{value:.3e}"


def show(rows):
    predicts = all(one["part"] == "forecast" for one in rows)
    print(f"| recipe | model | setting | what | {'predicted | measured' if predicts else 'with it | without'} | ratio | aim |\n"
          "|---|---|---|---|---|---|---|---|")
    for one in rows:
        ratio = "-" if one["ratio"] is None else f"{one['ratio']:.3f}{'!' if one['good'] is False else ''}"
        if one.get("low") is not None:
            ratio += f" ({one['low']:.3f} to {one['high']:.3f})"
        print(f"| {one['part']} | {one['model']} | {one['setting']} | {one['what']} | {figure(one['value'])} | "
              f"{figure(one['beside'])} | {ratio} | {'-' if one['aim'] is None else one['aim']} |")


MEASURES = {"pld": measure_pld, "curriculum": measure_curriculum, "onebit": measure_onebit, "lamb": measure_lamb,
            "bert": measure_bert, "forecast": measure_forecast, "network": measure_network}


def count_results(options):
    """Returns how many results the chosen parts ask for."""
    lists = {name: len(value.split(",")) for name, value in vars(options).items() if isinstance(value, str)}
    counts = {"curriculum": 1 + lists["curricula"] * (1 + 2 * lists["curriculum_rates"]), "onebit": 3 + 2 * lists["freezes"],
              "lamb": 2 * lists["lamb_batches"] * lists["lamb_times"] * lists["lamb_rates"], "bert": 3 * options.draws,
              "forecast": 6 * lists["forecast_gammas"], "network": 8}
    return sum(lists["gammas"] * (2 + 3 * part.seeds) if part.name == "pld" else counts[part.name] for part in options.parts)


def measure(runs, part):
    runs.size = part.size
    model = ("BERT-" if part.name == "bert" else "GPT-2 ") + part.size
    return [{"part": made["part"], "model": model} | made for made in MEASURES[part.name](runs, part.seeds)]


def join(path, rows, environment):
    """Returns these rows and those that the file has of other settings, in the order of the parts. A file of another machine
    or command has none."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            there = json.load(file)
        new = {(one["model"], one["setting"], one["what"]) for one in rows}
        if there["environment"] == environment:
            rows = [one for one in there["rows"] if (one["model"], one["setting"], one["what"]) not in new] + rows
    return sorted(rows, key=lambda one: PARTS.index(one["part"]))


def main():
    options = parse()
    if options.cores:
        os.sched_setaffinity(0, map(int, options.cores.split(",")))
    runs = Runs(options, count_results(options))
    rows = [made for part in options.parts for made in measure(runs, part)]
    runs.kept.end()
    environment = machine() | runs.kept.read("settings")
    rows = join(options.json, rows, environment)
    show(rows)
    write(options.json, {"rows": rows, "environment": environment})


if __name__ == "__main__":
    main()
