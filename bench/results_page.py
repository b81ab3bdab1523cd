#!/usr/bin/env python3
"""Writes docs/results.md from the files in bench/results: for each comparison the newest file, as a table.

results_page.py [--check]: with --check nothing is written; the exit code is 1 where the page differs from the files."""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
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
    yield "batch x tokens", "precision", "Sluice's step", "PyTorch's", "times faster", "memory, share of PyTorch's"
    for row in data["rows"]:
        yield (row["shape"], row["precision"], seconds(row["sluice_step_s"]), seconds(row["pytorch_step_s"]),
               f"{1 / row['ratio']:.2f}", f"{row['rss_ratio']:.2f}")


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


# The file's kind: heading, the command that repeats it, one line of conditions, its table.
SECTIONS = {
    "pytorch": ("Two ranks on one machine, next to DDP and FSDP2", "bench/compare/pytorch.sh",
                "GPT-2 124M, fp32, 4 sequences of 64 tokens a rank, 2 ranks of one thread, PyTorch over gloo. "
                "`fsdp2_keep` is FSDP2 with `reshard_after_forward=False`.", against_pytorch),
    "pytorch-network": ("Two ranks over a network, next to DDP and FSDP2", "bench/compare/pytorch_network.sh",
                        "The same training, the ranks in two network namespaces with a shaped link between them. `+split` is "
                        "`--tied split`. The bound is the longer of compute and the bytes at the goodput measured in the "
                        "run.", over_a_network),
    "training": ("One rank, next to PyTorch", "bench/compare/training.sh",
                 "GPT-2 124M, one thread; PyTorch eager with fused AdamW, bf16 by autocast.", one_rank),
    "onebit-network": ("A compressed optimizer over a network", "bench/compare/onebit_network.sh",
                       "GPT-2 124M, fp32, 2 ranks at 1 Gbit/s; steps after the freeze.", compressed_network),
    "onebit-loss": ("Losses of compressed optimizers", "bench/compare/onebit_loss.sh",
                    "GPT-2 mini on real text, the same global batch on 2 and 4 ranks. `final` is the mean of the last "
                    "tenth of the steps.", compressed_losses),
    "onebit-loss-16-sequences": ("The same, with 16 sequences a step", "bench/compare/onebit_loss.sh",
                                 "The same training, each step on 16 sequences of all ranks together.", compressed_losses),
    "onebit-loss-freeze-500": ("The same, frozen after half of the steps", "bench/compare/onebit_loss.sh",
                               "16 sequences a step; the warm-up takes 500 of the 1000 steps.", compressed_losses),
    "openmpi": ("Collectives, next to Open MPI", "bench/compare/openmpi.sh",
                "Ranks of one host, fp32 sums, bus bandwidth as nccl-tests counts it.", against_openmpi),
    "attention": ("Attention, next to PyTorch", "bench/compare/attention.py",
                  "One thread, `scaled_dot_product_attention` on PyTorch's side.", attention),
    "transformers": ("Logits and gradients, next to transformers", "bench/compare/transformers.py",
                     "The same weights and inputs, fp32; differences from transformers' logits, and of each gradient from "
                     "its float64 value.", transformers),
    "precision": ("fp32 and bf16", "bench/compare/precision.sh", "GPT-2 mini, 300 steps, the same seeds.", precision),
    "overhead": ("The engine's own cost", "bench/compare/overhead.sh",
                 "A model that computes a fixed time, under the engine and by hand.", overhead),
}

HEAD = """# Results

Each table shows the newest file of its kind in [bench/results](../bench/results), with the command that repeats it. All
were measured on machines of two cores that others use at the same time; both sides of a ratio ran by turns on the same
machine within the same hour, and figures are medians over steps, and over rounds where there were several. No file here
is from a GPU yet. `bench/results_page.py` makes this page from the files.
[benchmarks.md](benchmarks.md) explains the commands and columns.
"""


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
    """In words, where a file says how often each side ran."""
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
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit("docs/results.md is not what the files in bench/results say: run bench/results_page.py")
    else:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
