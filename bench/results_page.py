#!/usr/bin/env python3
"""Writes docs/results.md from the files in bench/results: for each comparison the newest file, as a table; and puts the
figures of the same files into the sentences of other pages that tell them (FIGURES).

results_page.py [--check]: with --check nothing is written; the exit code is 1 if a page differs from the files.
--self-test checks that figures that differ are found and replaced."""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench" / "compare" / "peers"))
from kept_runs import interval_text  # pylint: disable=wrong-import-position
from predictions_table import AIMS as PREDICTION_AIMS  # pylint: disable=wrong-import-position

PAGE = ROOT / "docs" / "results.md"
NAME = re.compile(r"(\d{4}-\d\d-\d\d)-(.*)\.json")


def mib(count):
    return f"{count / 2**20:.0f}"


def seconds(value):
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.1f} ms"


def against_pytorch(data):
    yield "Sluice", "PyTorch", "Sluice's step", "PyTorch's", "times faster", "Sluice's memory, MiB", "PyTorch's"
    for row in data["rows"]:
        yield (row["sluice"], row["pytorch"], seconds(row["sluice_step_s"]), seconds(row["pytorch_step_s"]),
               f"{1 / row['ratio']:.2f}", mib(row["sluice_rss_bytes"]), mib(row["pytorch_rss_bytes"]))


def over_a_network(data):
    yield "network", "Sluice", "PyTorch", "Sluice's step", "PyTorch's", "times faster", "compute alone", "step / bound"
    for row in data["rows"]:
        yield (row["rate"], row["sluice"], row["pytorch"], seconds(row["sluice_step_s"]),
               seconds(row["pytorch_step_s"]), f"{1 / row['ratio']:.2f}", seconds(row["compute_s"]),
               f"{row['bound_ratio']:.2f}")


def one_rank(data):
    """Older files lack what products alone do."""
    yield ("batch x tokens", "precision", "Sluice's step", "PyTorch's", "times faster", "products alone, times faster",
           "memory, share of PyTorch's")
    for row in data["rows"]:
        yield (row["shape"], row["precision"], seconds(row["sluice_step_s"]), seconds(row["pytorch_step_s"]),
               f"{1 / row['ratio']:.2f}", f"{1 / row['products_ratio']:.2f}" if "products_ratio" in row else "-",
               f"{row['rss_ratio']:.2f}")


def compressed_network(data):
    yield "network", "optimizer", "strategy", "step", "exposed", "compute alone", "step / compute", "MB sent a step"
    for row in data["rows"]:
        yield (row["rate"], row["optimizer"], row["strategy"], seconds(row["step_s"]), seconds(row["exposed_s"]),
               seconds(row["compute_s"]), f"{row['ratio']:.2f}", f"{row['bytes_sent'] / 1e6:.1f}")


def compressed_losses(data):
    yield "ranks", "optimizer", "steps", "final loss", "of AdamW's", "held-out loss", "of AdamW's"
    for row in data["rows"]:
        yield (row["ranks"], row["optimizer"], row["steps"], f"{row['final']:.4f}", f"{row['final_of_adamw']:.3f}",
               f"{row['held_out']:.4f}", f"{row['held_out_of_adamw']:.3f}")


def against_openmpi(data):
    yield "ranks", "operation", "KiB", "Sluice, GB/s", "Open MPI, GB/s", "times faster"
    for row in data["rows"]:
        yield (row["ranks"], row["op"], row["size"] // 1024, f"{row['sluice_busbw']:.1f}",
               f"{row['openmpi_busbw']:.1f}", f"{row['ratio']:.1f}")


def attention(data):
    yield "shape", "type", "direction", "Sluice", "PyTorch", "times faster"
    for row in data["rows"]:
        yield (row["case"], row["dtype"], row["direction"], seconds(row["ours_s"]), seconds(row["pytorch_s"]),
               f"{row['speedup']:.1f}")


def transformers(data):
    yield "model", "parameters", "largest logit", "logits apart", "gradients apart, of their norm"
    for row in data["rows"]:
        yield (row["model"], row["parameters"], f"{row['largest_logit']:.2f}",
               f"{row['logits_from_transformers']:.1e}", f"{row['gradient_error']:.1e}")


def precision(data):
    yield "seed", "steps", "loss", "fp32", "bf16", "apart"
    for row in data["rows"]:
        yield (row["seed"], row["steps"], row["loss"], f"{row['fp32']:.4f}", f"{row['bf16']:.4f}", f"{row['apart']:.4f}")


def overhead(data):
    yield "ranks", "plan", "operations", "engine's share of a step", "step / the same plan by hand"
    for run in data["runs"]:
        for row in run["rows"]:
            yield (run["world"], f"{row['strategy']}:{row['schedule']}", row["operations"],
                   f"{row['engine_share'] * 100:.2f} %", f"{row['wall_over_same']:.3f}")


def pipelines(data):
    """PyTorch's columns are there where it ran beside."""
    beside = any("ratio" in row for row in data["rows"])
    yield ("link", "schedule", "cuts", "step", "predicted before the first step",
           *(("PyTorch's fastest", "times faster") if beside else ()),
           "without a pipeline", "times faster", "idle share of each stage", "MiB a rank")
    for row in data["rows"]:
        if beside and "ratio" not in row:
            continue
        pytorch = (f"{seconds(row['pytorch_step_s'])} ({row['pytorch']})", f"{1 / row['ratio']:.2f}") if beside else ()
        predicted = seconds(row["predicted_step_s"]) if "predicted_step_s" in row else "-"
        without = ((f"{seconds(row['without_step_s'])} ({row['without']})", f"{1 / row['without_ratio']:.2f}")
                   if "without" in row else ("-", "-"))
        yield (row["link"], row["schedule"], " ".join(row["cuts"]), seconds(row["step_s"]), predicted, *pytorch, *without,
               ", ".join(f"{100 * s / row['step_s']:.0f} %" for s in row["idle_s"]), f"{mib(row['peak_bytes'])}")


def generation(data):
    yield ("precision", "prompt", "first token", "transformers'", "times faster", "further token", "transformers'",
           "times faster", "rate of reading weights, of PyTorch's sum")
    for row in data["rows"]:
        yield (row["precision"], row["prompt"], *map(seconds, row["first_s"]), f"{1 / row['first_ratio']:.2f}",
               *map(seconds, row["further_s"]), f"{1 / row['further_ratio']:.2f}", f"{row['share_of_reading']:.2f}")


def recipes(data):
    def figure(value):
        return "-" if value is None else f"{value:.4g}" if value < 1e5 else f"{float(f'{value / 1e6:.3g}'):g} million"
    yield "recipe", "model", "setting", "what", "with it", "without", "ratio", "aim"
    for row in data["rows"]:
        yield (row["part"], row["model"], row["setting"], row["what"], figure(row["value"]), figure(row["beside"]),
               "-" if row["ratio"] is None else f"{row['ratio']:.3f}", "-" if row["aim"] is None else row["aim"])


def beside_uniform(data):
    yield "link", "budget, MB", "beside", "auto", "uniform", "ratio", "95 % interval"
    for row in data["rows"]:
        yield (row["throttle"], f"{row['budget_bytes'] / 1e6:.1f}", row["strategy"], seconds(row["auto_step_s"]),
               seconds(row["step_s"]), f"{row['ratio']:.3f}", interval_text(row))


def play_off(data):
    yield ("link", "budget", "the play-off's own cost", "whole run, over one without", "95 % interval", "plans tried",
           "which stayed")
    for row in data["rows"]:
        yield (row["throttle"], row["budget"], f"{100 * row['cost']:+.1f} %", f"{row['whole']:.3f}", interval_text(row),
               " ".join(map(str, row["tried"])), ", ".join(sorted({name for name in row["stayed"] if name})) or "-")


def drift(data):
    yield "what changed", "step before", "after", "as the last plan predicted", "ratio", "noticed after"
    for row in data["rows"]:
        steps = row["noticed_after_steps"]
        yield (row["kind"], seconds(row["step_before_s"]), seconds(row["step_s"]), seconds(row["predicted_step_s"]),
               f"{row['ratio']:.3f}", "never" if steps is None else f"{steps} steps")


def predictions(data):
    """Names the part of the step that missed most where a cell falls short of its aim."""
    yield ("link", "burst", "precision", "strategy", "predicted", "measured", "ratio", "aim", "where it misses: most of it")
    for row in data["rows"]:
        aim = PREDICTION_AIMS[row["aims"]][0]
        parts = {part: row[f"miss_{part}_s"] for part in ("compute", "transfer", "waiting", "outside")}
        part = max(parts, key=lambda name: abs(parts[name]))
        missed = f"{part} {1e3 * parts[part]:+.0f} ms" if abs(row["ratio"] - 1) > aim else "-"
        yield (f"{row['rate']} {row['link']}", row["burst"] or "-", row["precision"], row["strategy"],
               seconds(row["predicted_step_s"]), seconds(row["step_s"]), f"{row['ratio']:.2f}", f"{100 * aim:.0f} %", missed)


def forecasts(data):
    yield "model", "setting", "what", "predicted, s", "measured, s", "ratio", "aim"
    for row in data["rows"]:
        yield (row["model"], row["setting"], row["what"], f"{row['value']:.4g}", f"{row['beside']:.4g}",
               f"{row['ratio']:.3f}", row["aim"])


# The file's kind: heading, the command that repeats it, one line of conditions, its table.
SECTIONS = {
    "pytorch": ("Two ranks on one machine, next to DDP and FSDP2", "bench/compare/training/pytorch.sh",
                "GPT-2 124M, fp32, 4 sequences of 64 tokens a rank, 2 ranks of one thread, PyTorch over gloo. "
                "`fsdp2_keep` is FSDP2 with `reshard_after_forward=False`.", against_pytorch),
    "pytorch-network": ("Two ranks over a network, next to DDP and FSDP2", "bench/compare/networks/pytorch_network.sh",
                        "The same training, the ranks in two network namespaces with a shaped link between them. `+split` is "
                        "`--tied split`. The bound is the longer of compute and the bytes at the goodput measured in the "
                        "run.", over_a_network),
    "pipeline": ("Pipelines over a network, next to torch.distributed.pipelining", "bench/compare/training/pipeline.sh",
                 "GPT-2 124M, fp32, 2 ranks of one thread in two network namespaces, 4 micro-batches of 2 sequences of 64 "
                 "tokens a step, PyTorch over gloo with an untied table. Without a pipeline: data parallelism on the same "
                 "batch, the fastest of dp and sdp.", pipelines),
    "pipeline-4gbit": ("The same at 4 Gbit/s", "LINKS=4gbit THEIRS=1f1b bench/compare/training/pipeline.sh",
                       "As above; 1F1B was PyTorch's fastest at 1 Gbit/s.", pipelines),
    "pipeline-4-ranks": ("Pipelines of four ranks, next to torch.distributed.pipelining",
                         "RANKS=4 MICRO_BATCHES=8 bench/compare/training/pipeline.sh 1",
                         "GPT-2 124M, fp32, 16 sequences of 64 tokens a step, 4 ranks of one thread on two cores, one round. On one "
                         "host a rank alone is 1.59 times as fast as PyTorch's, at 1 Gbit/s 1.46 times.", pipelines),
    "pipeline-750mib": ("Pipelines of four ranks within 750 MiB each",
                        "RANKS=4 MICRO_BATCHES=8 BATCH=2 DATA_BATCH=4 BUDGET=750MiB DATA_PARALLEL=auto THEIRS= LINKS=1gbit "
                        "bench/compare/training/pipeline.sh",
                        "GPT-2 124M, fp32, 16 sequences of 64 tokens a step, 4 ranks of one thread on two cores, a network "
                        "namespace each. Without a pipeline: the planner's choice of exact sharding within the same budget.",
                        pipelines),
    "training": ("One rank, next to PyTorch", "bench/compare/training/training.sh",
                 "GPT-2 124M, one thread; PyTorch eager with fused AdamW, bf16 by autocast. Products alone are those of "
                 "both sides' libraries (oneDNN here, MKL in PyTorch's fp32).", one_rank),
    "onebit-network": ("A compressed optimizer over a network", "bench/compare/networks/onebit_network.sh",
                       "GPT-2 124M, fp32, 2 ranks at 1 Gbit/s; steps after the freeze.", compressed_network),
    "onebit-loss": ("Losses of compressed optimizers", "bench/compare/losses/onebit_loss.sh",
                    "GPT-2 mini on real text, the same global batch on 2 and 4 ranks. `final` is the mean of the last "
                    "tenth of the steps.", compressed_losses),
    "onebit-loss-16-sequences": ("The same, with 16 sequences a step", "bench/compare/losses/onebit_loss.sh",
                                 "The same training, each step on 16 sequences of all ranks together.", compressed_losses),
    "onebit-loss-freeze-500": ("The same, frozen after half of the steps", "bench/compare/losses/onebit_loss.sh",
                               "16 sequences a step; the warm-up takes 500 of the 1000 steps.", compressed_losses),
    "recipes": ("Recipes of training", "bench/compare/losses/recipes.py",
                "The source of Python's library, each byte a token. Times at 1 Gbit/s are simulated, those of BERT are "
                "seconds of the processor.", recipes),
    "beside-uniform": ("The strategy `auto` next to uniform ones", "bench/compare/plans/beside_uniform.py",
                       "GPT-2 mini, 2 ranks on 2 cores, runs of 60 steps by turns; both sides are scheduled by the planner. The "
                       "two fastest uniform strategies that fit; medians of a step.", beside_uniform),
    "play-off": ("What the play-off of plans costs", "bench/compare/plans/play_off.py",
                 "GPT-2 mini, 2 ranks on 2 cores, 200 steps with and without by turns; the budget is a share of the least that "
                 "dp works in. The cost: how much longer the steps of the play-off took than the same steps without it, as a "
                 "share of the run. All runs end in the same weights.", play_off),
    "drift": ("Runs whose times change", "bench/compare/plans/drift.py",
              "GPT-2 mini, 2 ranks on 2 cores: after step 50 one rank computes 40 % longer, or the link of 1 Gbit/s has half "
              "of its rate.", drift),
    "predictions": ("Steps as predicted and as measured", "bench/compare/plans/predictions.sh",
                    "ViT small, one image a rank, 2 ranks on 2 cores; what the plan predicted before its first step.",
                    predictions),
    "recipe-forecasts": ("Steps that leave layers out, predicted", "bench/compare/losses/recipes.py --parts forecast --folder out/forecast "
                         "--json bench/results/recipe-forecasts.json",
                         "Two ranks, a core each, on a machine that did nothing else.", forecasts),
    "recipe-network": ("Steps that leave layers out, between two hosts", "bench/compare/losses/recipes.py --parts network --folder "
                       "out/network --json bench/results/recipe-network.json",
                       "GPT-2 124M, two network namespaces joined by 1 Gbit/s, on a machine that did nothing else. The step in the "
                       "mean of all draws saves as much a layer as the steps that were measured.", recipes),
    "openmpi": ("Collectives, next to Open MPI", "bench/compare/networks/openmpi.sh",
                "Ranks of one host, fp32 sums, bus bandwidth as nccl-tests counts it.", against_openmpi),
    "attention": ("Attention, next to PyTorch", "bench/compare/kernels/attention.py",
                  "One thread, `scaled_dot_product_attention` on PyTorch's side.", attention),
    "transformers": ("Logits and gradients, next to transformers", "bench/compare/models/beside_transformers.py",
                     "The same weights and inputs, fp32; differences from transformers' logits, and of each gradient from "
                     "its float64 value.", transformers),
    "generate": ("Going on with a text, next to transformers", "bench/compare/models/generate.py --processor",
                 "GPT-2 124M of random weights, one thread, greedy. Seconds of the processor, since others used the machine; it "
                 "is a Zen 4, which has AVX-512 and products of bf16.", generation),
    "precision": ("fp32 and bf16", "bench/compare/losses/precision.sh", "GPT-2 mini, 300 steps, the same seeds.", precision),
    "overhead": ("The engine's own cost", "bench/compare/training/overhead.sh",
                 "A model that computes a fixed time, under the engine and by hand.", overhead),
}

HEAD = """<!-- Made by bench/results_page.py from the files in bench/results. -->
# Results

Each table shows the newest file of its kind in [bench/results](../bench/results), with the command that repeats it, the
date and the machine. All machines had two cores; others used them at
the same time, unless a section says otherwise. Both sides of a ratio ran by turns on
the same machine within the same hour. Figures are medians over steps, and over rounds if there were several.

A step's ratio in fp32 is to be read beside that of matrix products alone, since both sides leave these to libraries. PyTorch's
wheels multiply in fp32 by MKL, whose pace on processors of AMD is less than half of oneDNN's: on a core of an EPYC (Zen 5) 106
billion operations a second beside 220 to 260. On one of Intel's the two are alike. `bench/compare/kernels/gemm.py` measures both.

No measurement here is of a GPU, and none of more than 4 ranks. [benchmarks.md](benchmarks.md) explains commands and columns.
"""


def only(rows, **wanted):
    """Returns the one row that has these values."""
    found = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    if len(found) != 1:
        sys.exit(f"bench/results: {len(found)} rows have {wanted}")
    return found[0]


def beside_pytorch(rows):
    alone, dp, fsdp = (only(rows, sluice=name) for name in ("alone", "dp", "fsdp"))
    steps = [(alone, "sluice"), (alone, "pytorch"), (dp, "sluice"), (fsdp, "sluice"), (dp, "pytorch"),
             (fsdp, "pytorch")]
    return ([f"{row[side + '_step_s']:.2f}" for row, side in steps] +
            [mib(row[f"{side}_rss_bytes"]) for side in ("sluice", "pytorch") for row in (dp, fsdp)])


def beside_pytorch_at_1gbit(rows):
    dp, fsdp = (only(rows, rate="1gbit", sluice=name) for name in ("dp", "fsdp"))
    return [f"{row[key]:.1f}" for key in ("sluice_step_s", "pytorch_step_s") for row in (dp, fsdp)]


def split_at_1gbit(rows):
    return [f"{only(rows, rate='1gbit', sluice=name)['sluice_step_s']:.1f}" for name in ("dp+split", "fsdp+split")]


def onebit_step(rows):
    onebit, adamw = (only(rows, rate="1gbit", optimizer=name) for name in ("onebit_adam", "adamw"))
    return [f"{onebit['step_s']:.2f}", f"{adamw['step_s']:.2f}", f"{onebit['compute_s']:.2f}"]


def above_adamw(row):
    return f"{(row['final_of_adamw'] - 1) * 100:.1f}"


def onebit_losses(rows):
    return [above_adamw(only(rows, optimizer="onebit_adam", ranks=ranks)) for ranks in (2, 4)]


def onebit_worst(rows):
    return [above_adamw(only(rows, optimizer="onebit_adam"))]


def percent(share):
    return f"{share * 100:.1f}"


def beside_adamw(optimizer):
    def take(rows, rows_16):
        found = [only(rows, optimizer=optimizer, ranks=2), only(rows, optimizer=optimizer, ranks=4),
                 only(rows_16, optimizer=optimizer)]
        return [percent(row[key]) for row in found for key in ("final_of_adamw", "held_out_of_adamw")]
    return take


def onebit_lamb_beside_lamb(rows):
    figures = []
    for ranks in (2, 4):
        lamb, onebit = (only(rows, optimizer=name, ranks=ranks) for name in ("lamb", "onebit_lamb"))
        figures += [percent(onebit[key] / lamb[key]) for key in ("final", "held_out")]
    return figures


def frozen_later(rows):
    found = [only(rows, optimizer=name) for name in ("onebit_adam", "zero_one_adam")]
    return [percent(row[key]) for row in found for key in ("final_of_adamw", "held_out_of_adamw")]


# Sentences of other pages that tell figures of files: the page, the kinds of the files, the words with {} for each
# figure (a blank is any white space), and the figures from the files' rows. Each must be in its page once.
FIGURES = [
    ("README.md", ["pytorch"],
     "| step, 1 rank | {} s | {} s (plain PyTorch) | | | step, 2 ranks, one machine | dp {} s, fsdp {} s | {} s | "
     "{} s | | resident memory a rank | dp {} MiB, fsdp {} MiB | {} MiB | {} MiB |", beside_pytorch),
    ("README.md", ["pytorch-network"], "| step, 2 ranks, 1 Gbit/s | dp {} s, fsdp {} s | {} s | {} s |",
     beside_pytorch_at_1gbit),
    ("README.md", ["pytorch-network"], "| the same, `--tied split` | dp {} s, fsdp {} s |", split_at_1gbit),
    ("README.md", ["onebit-network"],
     "the step over 1 Gbit/s takes {} s where AdamW under dp takes {} s in the same run "
     "(`bench/compare/networks/onebit_network.sh`, compute alone: {} s)", onebit_step),
    ("README.md", ["onebit-loss"], "its loss was {} % above AdamW's on 2 ranks and {} % on 4;", onebit_losses),
    ("README.md", ["onebit-loss-16-sequences"], "at worst {} %, with 16 sequences a step", onebit_worst),
    ("docs/compression.md", ["onebit-loss", "onebit-loss-16-sequences"],
     "| `onebit_adam` | {} %, held-out {} % | {} %, {} % | {} %, {} % |", beside_adamw("onebit_adam")),
    ("docs/compression.md", ["onebit-loss", "onebit-loss-16-sequences"],
     "| `zero_one_adam` | {} %, {} % | {} %, {} % | {} %, {} % |", beside_adamw("zero_one_adam")),
    ("docs/compression.md", ["onebit-loss"],
     "| `onebit_lamb` (beside LAMB, both at 0.01) | {} %, {} % | {} %, {} % | |", onebit_lamb_beside_lamb),
    ("docs/compression.md", ["onebit-loss-freeze-500"],
     "the last column is {} % (held-out {} %) for 1-bit Adam and {} % ({} %) for 0/1 Adam.", frozen_later),
]


def fill(text, words, figures):
    """Returns the text with these figures in the place of those that it has; None if the words are not there exactly
    once."""
    blank = [r"\s+".join(re.escape(word) for word in part.split(" ")) for part in words.split("{}")]
    matches = list(re.finditer(r"(-?[0-9][0-9.,]*)".join(blank), text))
    if len(matches) != 1 or len(matches[0].groups()) != len(figures):
        return None
    for place in reversed(range(len(figures))):
        begin, end = matches[0].span(place + 1)
        text = text[:begin] + figures[place] + text[end:]
    return text


def figures_of(found, page):
    """Returns the page as it should be, and what is wrong with it as it is."""
    text = before = (ROOT / page).read_text()
    faults = []
    for where, kinds, words, take in FIGURES:
        if where != page:
            continue
        rows = [json.loads(found[kind][0].read_text())["rows"] for kind in kinds]
        filled = fill(text, words, take(*rows))
        if filled is None:
            faults.append(f'{page}: it does not say, once, "{words}" (FIGURES of bench/results_page.py)')
        elif filled != text:
            faults.append(f'{page}: bench/results has other figures for "{words}": run bench/results_page.py')
        text = filled or text
    return text, text != before, faults


def self_test():
    text = "a step of 1.5 s,\nand 2,000 MiB; a step of 3 m"
    faults = []
    for words, figures, wanted in (
        ("step of {} s, and {} MiB", ["1.25", "2,100"], "a step of 1.25 s,\nand 2,100 MiB; a step of 3 m"),
        ("step of {} s", ["1.5"], text),
        ("step of {}", ["1"], None),
        ("step in {} s", ["1"], None),
        ("step of {} s", ["1", "2"], None),
    ):
        if fill(text, words, figures) != wanted:
            faults.append(f"results_page self-test: {words}: {fill(text, words, figures)!r}, not {wanted!r}")
    sys.exit("\n".join(faults) or 0)


def newest():
    """A file is called DATE-MACHINE-KIND.json. Returns the newest of each kind of SECTIONS, and the names of all other
    files."""
    found, others = {}, []
    for path in sorted((ROOT / "bench" / "results").glob("*.json")):
        match = NAME.fullmatch(path.name)
        kinds = [kind for kind in SECTIONS if match and match[2].endswith("-" + kind)]
        if not kinds:
            others.append(path.name)
            continue
        kind = max(kinds, key=len)
        if kind in found:
            others.append(found[kind][0].name)
        found[kind] = (path, match[1], match[2].removesuffix("-" + kind))
    return found, sorted(others)


def rounds_of(rows):
    """Returns how often each side ran, in words; nothing if the file does not say it."""
    rounds = max((row.get("rounds") or 0 for row in rows), default=0)
    return f", {rounds} round{'s' if rounds > 1 else ''}" if rounds else ""


def page():
    found, others = newest()
    lines = [HEAD]
    for kind, (heading, command, conditions, table) in SECTIONS.items():
        if kind not in found:
            continue
        path, date, machine = found[kind]
        data = json.loads(path.read_text())
        rows = [tuple(str(cell) for cell in row) for row in table(data)]
        lines += [f"## {heading}\n", conditions + "\n",
                  f"`{command}`, {date}, {machine.replace('-', ' ')}{rounds_of(data.get('rows', []))}: "
                  f"[{path.name}](../bench/results/{path.name})\n"]
        lines += [f"| {' | '.join(rows[0])} |", "|" + "---|" * len(rows[0])]
        lines += [f"| {' | '.join(row)} |" for row in rows[1:]] + [""]
    lines += ["## Other files\n"]
    lines += [f"- [{name}](../bench/results/{name})" for name in others] + [""]
    return "\n".join(lines)


def main():
    if "--self-test" in sys.argv[1:]:
        self_test()
    text, check = page(), "--check" in sys.argv[1:]
    faults = []
    if check and (not PAGE.exists() or PAGE.read_text() != text):
        faults.append("docs/results.md is not what the files in bench/results say: run bench/results_page.py")
    elif not check:
        PAGE.write_text(text)
    found, _ = newest()
    for other in sorted({where for where, *_ in FIGURES}):
        text, differs, wrong = figures_of(found, other)
        if differs and not check:
            (ROOT / other).write_text(text)
            wrong = [fault for fault in wrong if "has other figures" not in fault]
        faults += wrong
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
