#!/usr/bin/env python3
"""Measures how long a text takes to become tokens: `sluice-lab tokenize` beside Hugging Face's tokenizers, with the
same tokenizer.json, by turns, bound to the same core.

    text.py [--lab PATH] [--text FILE] [--megabytes N] [--vocabulary N] [--kinds bpe,wordpiece] [--cores LIST] [--rounds N]
            [--json FILE]

Needs tokenizers. It trains the tokenizers itself on the text, which is this Python's library where no other is named:
byte-level BPE as GPT-2 has it, and WordPiece as BERT has it. Times are of the processor, on one thread on both sides;
tokenizers reads the text in lines, by encode_batch, which is its fastest way. Medians over --rounds; the ratio is
Sluice's time by that of tokenizers. Exit code 1 where the tokens differ.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../peers"))
from library_text import read_files, read_library

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import tokenizers
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
except ImportError as missing:
    sys.exit(f"text.py: {missing}; run it with a Python that has tokenizers")


def read_text(args):
    return read_files([pathlib.Path(args.text)], args.megabytes) if args.text else read_library(args.megabytes)


def make(kind, lines, vocabulary):
    if kind == "bpe":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    else:
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=vocabulary, show_progress=False, special_tokens=["[UNK]"])
    made.train_from_iterator(lines, trainer)
    return made


def ours(args, folder, lines):
    """Each line is a text of its own, so that both sides cut at the same places."""
    given = b"".join(b"%d\n%s" % (len(line), line) for line in (line.encode() for line in lines))
    done = subprocess.run([args.lab, "tokenize", "--time", folder], input=given, capture_output=True, check=True)
    seconds = re.search(r"([0-9.]+) s", done.stderr.decode())
    if not seconds:
        sys.exit(f"text.py: no time in: {done.stderr.decode()}")
    return float(seconds[1]), done.stdout


def theirs(made, lines):
    start = time.process_time()
    encoded = made.encode_batch(lines, add_special_tokens=False)
    return time.process_time() - start, encoded


def same_tokens(out, encoded):
    """True if the laboratory's tokens are those of tokenizers. Of each text it writes the tokens in a line, the number
    of bytes in another, then the bytes and a line feed."""
    at = 0
    for one in encoded:
        end = out.index(b"\n", at)
        if list(map(int, out[at:end].split())) != one.ids:
            return False
        size_end = out.index(b"\n", end + 1)
        at = size_end + 1 + int(out[end + 1:size_end]) + 1
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", default=str(pathlib.Path(__file__).resolve().parents[3] / "build/release/bench/sluice-lab"))
    parser.add_argument("--text")
    parser.add_argument("--megabytes", type=float, default=4)
    parser.add_argument("--vocabulary", type=int, default=20000)
    parser.add_argument("--kinds", default="bpe,wordpiece")
    parser.add_argument("--cores", default="0")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    os.sched_setaffinity(0, map(int, args.cores.split(",")))
    text = read_text(args)
    lines, rows = text.splitlines(keepends=True), []
    print(f"{len(text.encode()) / 1e6:.1f} MB in {len(lines)} lines, cores {args.cores}; tokenizers {tokenizers.__version__}; MB/s")
    print(f"{'':10} {'sluice':>9} {'tokenizers':>11} {'time ratio':>11}")
    for kind in args.kinds.split(","):
        made = make(kind, lines, args.vocabulary)
        with tempfile.TemporaryDirectory() as folder:
            made.save(os.path.join(folder, "tokenizer.json"))
            runs = [(ours(args, folder, lines), theirs(made, lines)) for _ in range(args.rounds)]
        own, other = (statistics.median(run[side][0] for run in runs) for side in (0, 1))
        size, same = len(text.encode()) / 1e6, same_tokens(runs[0][0][1], runs[0][1][1])
        rows.append({"kind": kind, "sluice_s": own, "tokenizers_s": other, "ratio": own / other, "same_tokens": same})
        print(f"{kind:10} {size / own:9.1f} {size / other:11.1f} {own / other:11.2f}  {'the same' if same else 'OTHER'} tokens")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"rows": rows, "arguments": vars(args),
                                                       "tokenizers": tokenizers.__version__}, indent=1) + "\n",
                                           encoding="utf-8")
    return 0 if all(row["same_tokens"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
