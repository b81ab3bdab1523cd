#!/usr/bin/env python3
"""Pictures a second that are decoded and resized to a model's pixels: `sluice-lab pictures` beside PyTorch's DataLoader
with 0 and 1 workers, which decodes and resizes by Pillow, on the same JPEG files, by turns, bound to the same cores.

    pictures.py [--lab PATH] [--sizes 500x375,2400x1600] [--count N] [--side N] [--batch N] [--threads N] [--cores LIST]
                [--draft] [--rounds N] [--json FILE]

Needs torch and Pillow; it makes the files itself, of smooth noise with quality 90. A DataLoader's time is that of one
pass over all files by a loader whose workers run already; the medians over --rounds are printed with their ratios. With
--draft both decode at a reduced scale (Pillow's Image.draft).
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import torch
    from PIL import Image
except ImportError as missing:
    sys.exit(f"pictures.py: {missing}; run it with a Python that has torch and Pillow")


def make(folder, count, width, height):
    random.seed(1)
    for i in range(count):
        place = pathlib.Path(folder) / "ab"[i % 2]
        place.mkdir(exist_ok=True)
        noise = Image.frombytes("RGB", (width // 8, height // 8), random.randbytes(width // 8 * (height // 8) * 3))
        noise.resize((width, height), Image.BICUBIC).save(place / f"{i:03}.jpg", quality=90)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, folder, side, draft):
        self.paths = sorted(pathlib.Path(folder).glob("*/*.jpg"))
        self.side, self.draft = side, draft

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with Image.open(self.paths[i]) as picture:
            if self.draft:
                picture.draft("RGB", (self.side, self.side))
            small = picture.convert("RGB").resize((self.side, self.side), Image.BILINEAR)
        values = torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8).view(self.side, self.side, 3)
        return (values.permute(2, 0, 1).float() / 255 - 0.5) / 0.5


def theirs(loader):
    start = time.perf_counter()
    count = sum(len(batch) for batch in loader)
    return count / (time.perf_counter() - start)


def ours(args, folder):
    command = [args.lab, "pictures", "--side", args.side, "--batch", args.batch, "--threads", args.threads, "--rounds", 1]
    line = subprocess.run([*map(str, command), *(["--image-draft"] if args.draft else []), folder], check=True,
                          capture_output=True, text=True).stdout
    return float(re.search(r": ([0-9.]+) a second", line)[1])


def compare(args, folder, size):
    width, height = map(int, size.split("x"))
    make(folder, args.count, width, height)
    files = Pictures(folder, args.side, args.draft)
    loaders = [torch.utils.data.DataLoader(files, args.batch, num_workers=n, persistent_workers=n > 0) for n in (0, 1)]
    for loader in loaders:
        theirs(loader)
    runs = [(ours(args, folder), *map(theirs, loaders)) for _ in range(args.rounds)]
    own, none, one = (statistics.median(run[i] for run in runs) for i in range(3))
    row = {"size": size, "sluice": own, "loader_0": none, "loader_1": one, "ratio_0": none / own, "ratio_1": one / own}
    print(f"{size:>10} {own:9.1f} {none:10.1f} {one:10.1f} {none / own:12.2f} {one / own:8.2f}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", default=str(pathlib.Path(__file__).resolve().parents[3] / "build/release/bench/sluice-lab"))
    parser.add_argument("--sizes", default="500x375,2400x1600")
    for name, default in (("count", 32), ("side", 224), ("batch", 8), ("threads", 1), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--cores", default="0", help="both sides are bound to these, as 0,1")
    parser.add_argument("--draft", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    os.sched_setaffinity(0, map(int, args.cores.split(",")))
    torch.set_num_threads(args.threads)
    print(f"pictures a second, to {args.side} x {args.side}, {args.threads} thread{'s' * (args.threads > 1)}, cores "
          f"{args.cores}; torch {torch.__version__}, Pillow {Image.__version__}")
    print(f"{'':10} {'sluice':>9} {'0 workers':>10} {'1 worker':>10} {'time / 0':>12} {'/ 1':>8}")
    rows = []
    for size in args.sizes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(compare(args, folder, size))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"rows": rows, "arguments": vars(args), "torch": torch.__version__,
                                                       "pillow": Image.__version__}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
