"""Makes two steps of GPT-2 in transformers, from weights and a text that are on the disk; run by
bench/compare/training/starts.py.

    transformers_start.py FOLDER CONTEXT THREADS bytes|tokens

Tokens of the text are kept beside it from one run to the next, as the `datasets` library keeps them. Prints the times of
the ends of both steps."""
import json
import os
import sys
import time

import numpy
import torch
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast


def read_tokens(folder, kind):
    if kind == "bytes":
        return numpy.fromfile(f"{folder}/text", dtype=numpy.uint8)
    kept = f"{folder}/kept.npy"
    if not os.path.exists(kept):
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")
        with open(f"{folder}/text", encoding="utf-8") as file:
            numpy.save(kept, numpy.array(tokenizer(file.read())["input_ids"], dtype=numpy.uint16))
    return numpy.load(kept, mmap_mode="r")


def main():
    folder, context, threads, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(threads)
    tokens = read_tokens(folder, kind)
    model = GPT2LMHeadModel.from_pretrained(f"{folder}/{kind}").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ends = []
    for step in range(2):
        begin = step * context
        batch = torch.from_numpy(tokens[begin:begin + context].astype(numpy.int64))[None]
        model(batch, labels=batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        ends.append(time.time())
    print(json.dumps(ends))


main()
