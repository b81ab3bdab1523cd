#!/usr/bin/env python3
"""Training steps and evaluations of BERT, ViT and BEiT by Sluice beside transformers, on the same random weights, by turns,
bound to the same cores.

    steps.py [--sluice PATH] [--models bert,vit,beit] [--work train,eval] [--precisions fp32,bf16] [--layers N]
             [--batch N] [--length N] [--steps N] [--threads N] [--cores LIST] [--rounds N] [--json FILE]

Needs torch and transformers. Shapes are those of the published base models;
--layers takes fewer layers of them. transformers trains by AdamW (fused) without dropout, in bf16 by autocast, on inputs
that it has in memory; Sluice reads tokens or images of a file, which its time includes. Medians over steps, then over --rounds; the ratio
is Sluice's time by that of transformers.

Beside each row in fp32 stands what products alone do, since they are of other libraries on either side: the ratio of
the times of three products of the model's shapes, by `sluice-lab gemm`'s library and by torch.mm.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import torch
    import transformers
except ImportError as missing:
    sys.exit(f"steps.py: {missing}; run it with a Python that has torch and transformers")

QUIET = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def bert(args):
    model = transformers.BertForMaskedLM(transformers.BertConfig(num_hidden_layers=args.layers or 12, **QUIET))
    tokens = torch.randint(1, 200, (args.batch, args.length))
    labels = tokens.masked_fill(torch.rand(tokens.shape) > 0.15, -100)
    return model, dict(input_ids=tokens, labels=labels), ["--context", args.length]


def seen(kind, config):
    def make(args):
        model = kind(config(num_hidden_layers=args.layers or 12, num_labels=10, **QUIET,
                            **({"drop_path_rate": 0.0} if config is transformers.BeitConfig else {})))
        return model, dict(pixel_values=torch.randn(args.batch, 3, 224, 224), labels=torch.randint(10, (args.batch,))), []
    return make


MODELS = {"bert": bert, "vit": seen(transformers.ViTForImageClassification, transformers.ViTConfig),
          "beit": seen(transformers.BeitForImageClassification, transformers.BeitConfig)}


IMAGES = "train-images-idx3-ubyte"


def write_data(args, folder):
    """A text in tokens, and images of 28 x 28 with ten classes: so many that an evaluation has ten batches of each."""
    tokens = torch.randint(1000, 30000, (10 * args.batch * args.length + 1,), dtype=torch.int16)
    (folder / "tokens").write_bytes(tokens.numpy().tobytes())
    count = 10 * args.batch
    (folder / IMAGES).write_bytes(struct.pack(">IIII", 0x803, count, 28, 28) + random.randbytes(count * 784))
    labels = struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count))
    (folder / IMAGES.replace("images-idx3", "labels-idx1")).write_bytes(labels)


def ours(args, folder, work, precision, more):
    report = folder / "report.json"
    command = [args.sluice, work, "--weights", folder, "--batch", args.batch, "--threads", args.threads, "--precision",
               precision, "--json", report, *more]
    if work == "train":
        command += ["--steps", args.steps + 5, "--eval-batches", 0, "--strategy", "dp", "--schedule", "serial"]
    command += ["--data", folder / "tokens", "--data-type", "uint16"] if more else ["--data", folder / IMAGES]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"steps.py: {done.stderr}")
    result = json.loads(report.read_text(encoding="utf-8"))
    if work == "train":
        return result["runs"][0]["step_s"]
    return args.batch * args.length / result["tokens_per_s"] if more else args.batch / result["images_per_s"]


def theirs(args, model, inputs, work, precision):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    times = []
    for _ in range(args.steps + 1):
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"), torch.set_grad_enabled(work == "train"):
            loss = model(**inputs).loss
        if work == "train":
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def products(args, rows):
    """Returns the time of products alone in fp32, Sluice's by PyTorch's: the mean of the ratios over all that are
    measured."""
    lines = subprocess.run([args.lab, "gemm", "--rows", str(rows)], check=True, capture_output=True,
                           text=True).stdout.splitlines()[1:]
    ratios = []
    for name, kind, m, n, k, pace in ((f[1], f[0], *map(int, f[2:5]), float(f[5])) for f in map(str.split, lines)):
        if kind != "fp32" or name not in ("y=xW", "dx=dyW'", "dW=x'dy"):
            continue
        a, b = torch.rand(m, k), torch.rand(k, n)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            torch.mm(a, b)
            times.append(time.perf_counter() - start)
        ratios.append(2e-9 * m * n * k / pace / statistics.median(times))
    return statistics.median(ratios) if ratios else None


def compare(args, name, work, precision, alone):
    torch.manual_seed(1)
    model, inputs, more = MODELS[name](args)
    model.train(work == "train")
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root)
        model.save_pretrained(folder)
        write_data(args, folder)
        runs = [(ours(args, folder, work, precision, more), theirs(args, model, inputs, work, precision))
                for _ in range(args.rounds)]
    own, other = (statistics.median(run[side] for run in runs) for side in (0, 1))
    row = {"model": name, "work": work, "precision": precision, "sluice_s": own, "transformers_s": other,
           "ratio": own / other, "products_ratio": alone if precision == "fp32" else None}
    print(f"{name:6} {work:6} {precision:6} {1e3 * own:10.1f} {1e3 * other:14.1f} {row['ratio']:7.2f} "
          f"{alone if precision == 'fp32' and alone else float('nan'):10.2f}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    built = pathlib.Path(__file__).resolve().parents[3] / "build/release/bench"
    parser.add_argument("--sluice", default=built / "sluice")
    parser.add_argument("--lab", default=built / "sluice-lab")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--work", default="train,eval")
    parser.add_argument("--precisions", default="fp32,bf16")
    for option, default in (("layers", 0), ("batch", 4), ("length", 128), ("steps", 5), ("threads", 1), ("rounds", 5)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--cores", default="0", help="both sides are bound to these, as 0,1")
    parser.add_argument("--json")
    args = parser.parse_args()
    os.sched_setaffinity(0, map(int, args.cores.split(",")))
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(args.threads)
    print(f"{args.threads} thread{'s' * (args.threads > 1)}, cores {args.cores}; torch {torch.__version__}, transformers "
          f"{transformers.__version__}; ms a micro-batch of {args.batch}")
    print(f"{'':6} {'':6} {'':6} {'sluice':>10} {'transformers':>14} {'ratio':>7} {'products':>10}")
    alone = products(args, args.batch * args.length) if "fp32" in args.precisions and args.threads == 1 else None
    rows = [compare(args, name, work, precision, alone) for name in args.models.split(",")
            for work in args.work.split(",") for precision in args.precisions.split(",")]
    if args.json:
        result = {"rows": rows, "arguments": {k: str(v) for k, v in vars(args).items()}, "torch": torch.__version__,
                  "transformers": transformers.__version__}
        pathlib.Path(args.json).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
