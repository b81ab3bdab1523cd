#!/usr/bin/env python3
"""Measures a large file of JSON lines: how long the first start takes to its first step, how long a later one, and how much
memory.

    large_records.py [--sluice PATH] [--gib X] [--ranks N] [--folder DIR] [--labels] [--json FILE]

Records are words of the system's licences, of 20 to 1500 bytes. GPT-2 nano (with --labels BERT with classes) takes one step
on them as documents, twice: the first run looks through all records and keeps an index beside the file, the second one
takes it. A rank's resident set stands beside that of the same run on a file of 1 MiB; the difference is the data's. The
file is made in --folder (TMPDIR) and removed."""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

LICENCES = pathlib.Path("/usr/share/common-licenses")


def write_records(path, size):
    """Writes records whose pieces come again and again: they are for reading, and not for learning."""
    random.seed(1)
    text = " ".join(" ".join(p.read_text(errors="replace").split()) for p in sorted(LICENCES.iterdir())
                    if p.is_file() and not p.is_symlink())
    lines = []
    for n in range(40000):
        at = random.randrange(len(text) - 1500)
        lines.append(json.dumps({"text": text[at:at + random.randrange(20, 1500)], "label": "abc"[n % 3]}) + "\n")
    piece = "".join(lines).encode()
    with open(path, "wb") as file:
        while file.tell() + len(piece) < size:
            file.write(piece)
        for line in lines:
            if file.tell() >= size:
                break
            file.write(line.encode())


def train(args, data):
    """Returns the seconds to the first step, those of the whole run, and a rank's resident bytes."""
    out = data.with_suffix(".json")
    model = ["--model", "bert", "--head", "classes"] if args.labels else ["--size", "nano"]
    command = [str(args.sluice), "train", "-n", str(args.ranks), *model, "--data", str(data), "--sequences", "documents",
               "--context", "64", "--batch", "4", "--steps", "1", "--eval-batches", "0", "--schedule", "one_ahead", "--json", str(out)]
    begun = time.monotonic()
    run = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    first = None
    said = []
    for line in run.stderr:
        said.append(line)
        if first is None and "step 1/" in line:
            first = time.monotonic() - begun
    if run.wait():
        sys.exit(f"large_records.py: {' '.join(command)}: exit code {run.returncode}\n{''.join(said)}")
    return first, time.monotonic() - begun, json.loads(out.read_text())["runs"][0]["rss_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", type=pathlib.Path, default="build/release/bench/sluice")
    parser.add_argument("--gib", type=float, default=9.32, help="size of the file (default 9.32, which is 10 GB)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--folder", default=os.environ.get("TMPDIR"))
    parser.add_argument("--labels", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        small, large = pathlib.Path(name) / "small.jsonl", pathlib.Path(name) / "large.jsonl"
        write_records(small, 1 << 20)
        write_records(large, int(args.gib * 2**30))
        _, _, usual = train(args, small)
        runs = [train(args, large) for _ in range(2)]
        row = {"bytes": large.stat().st_size, "ranks": args.ranks, "first_step_s": runs[0][0], "second_start_s": runs[1][0],
               "rss_mib": runs[0][2] / 2**20, "data_mib": (runs[0][2] - usual) / 2**20}
    print(f"{row['bytes'] / 1e9:.1f} GB, {args.ranks} ranks: first step after {row['first_step_s']:.1f} s, in a later run after "
          f"{row['second_start_s']:.1f} s; {row['rss_mib']:.1f} MiB a rank, {row['data_mib']:+.1f} for the data")
    if args.json:
        args.json.write_text(json.dumps(row, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
