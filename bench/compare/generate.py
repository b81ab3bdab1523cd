#!/usr/bin/env python3
"""Tokens a second of `sluice generate` beside transformers' greedy generate, on the same random GPT-2, in the same run.

    generate.py [--sluice PATH] [--layers N] [--channels N] [--heads N] [--prompt N] [--tokens N] [--threads N]
                [--repeats N] [--json FILE]

Needs torch and transformers. The shape is that of GPT-2 124M if nothing else is said. Both get the same prompt of
random tokens and make the same number of tokens; they take turns, and the medians over --repeats are printed with their
ratio. Exit code 1 if the tokens differ.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
except ImportError as missing:
    sys.exit(f"generate.py: {missing}; run it with a Python that has torch and transformers")


def ours(args, folder, ids):
    report = os.path.join(folder, "report.json")
    subprocess.run([args.sluice, "generate", "--weights", folder, "--prompt-tokens", ",".join(map(str, ids)), "--tokens",
                    str(args.tokens), "--threads", str(args.threads), "--json", report], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(report, encoding="utf-8") as file:
        result = json.load(file)
    return result["prompt_tokens_per_s"], result["tokens_per_s"], result["new_tokens"]


def theirs(args, model, ids):
    given = torch.tensor([ids])
    mask = torch.ones_like(given)

    def seconds(tokens):
        start = time.perf_counter()
        made = model.generate(given, attention_mask=mask, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False,
                              pad_token_id=0)
        return time.perf_counter() - start, made[0, len(ids):].tolist()
    with torch.no_grad():
        first, _ = seconds(1)
        whole, made = seconds(args.tokens)
    return len(ids) / first, (args.tokens - 1) / max(whole - first, 1e-9), made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=str(pathlib.Path(__file__).parents[2] / "build/release/bench/sluice"))
    for name, default in (("layers", 12), ("channels", 768), ("heads", 12), ("prompt", 64), ("tokens", 64),
                          ("threads", 1), ("repeats", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    config = GPT2Config(n_layer=args.layers, n_embd=args.channels, n_head=args.heads, initializer_range=0.1,
                        eos_token_id=None, bos_token_id=None)
    model = GPT2LMHeadModel(config).eval()
    ids = torch.randint(config.vocab_size, (args.prompt,)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        theirs(args, model, ids)  # threads and buffers are there from now on
        runs = [(ours(args, folder, ids), theirs(args, model, ids)) for _ in range(args.repeats)]
    same = all(a[2] == b[2] for a, b in runs)
    result = {"threads": args.threads, "prompt": args.prompt, "tokens": args.tokens, "same_tokens": same,
              "shape": {"layers": args.layers, "channels": args.channels, "heads": args.heads}}
    print(f"{'tokens a second':>16} {'sluice':>9} {'transformers':>13} {'ratio':>6}")
    for which, name in ((0, "prompt"), (1, "generation")):
        a, b = (statistics.median(run[side][which] for run in runs) for side in (0, 1))
        result[name] = {"sluice": a, "transformers": b, "ratio": a / b}
        print(f"{name:>16} {a:9.1f} {b:13.1f} {a / b:6.2f}")
    print("the same tokens" if same else "OTHER TOKENS")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0 if same else 1


sys.exit(main())
