#!/usr/bin/env python3
"""`sluice generate` beside transformers' greedy generate, on the same random GPT-2, by turns, bound to the same cores.

    generate.py [--sluice PATH] [--layers N] [--channels N] [--heads N] [--prompts 16,256] [--tokens N] [--threads N]
                [--precisions fp32,bf16] [--cores LIST] [--repeats N] [--processor] [--json FILE]

Needs torch and transformers. The shape is that of GPT-2 124M if nothing else is said. Both get the same prompt of
random tokens and make the same number of tokens. The medians over --repeats are printed with their ratios, Sluice's time
by that of transformers: of the first token, which is the prompt's pass, and of each further one. The last column is the
rate at which Sluice reads the weights for a further token, by that at which the same threads of PyTorch add up as many
bytes. --processor: seconds of the processor in place of the clock's, with one thread, for a machine that others use too.
Exit code 1 if the tokens differ in fp32.
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

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../peers"))
import processor_clock

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import torch
    import transformers
except ImportError as missing:
    sys.exit(f"generate.py: {missing}; run it with a Python that has torch and transformers")


def ours(args, folder, precision, ids):
    report = os.path.join(folder, "report.json")
    subprocess.run([args.sluice, "generate", "--weights", folder, "--prompt-tokens", ",".join(map(str, ids)), "--tokens",
                    str(args.tokens), "--threads", str(args.threads), "--precision", precision, "--json", report],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(report, encoding="utf-8") as file:
        result = json.load(file)
    return result["prompt_s"], 1 / result["tokens_per_s"], result["new_tokens"]


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
    return first, max(whole - first, 1e-9) / (args.tokens - 1), made


def read_rate(values):
    """Bytes a second at which PyTorch adds up values that no cache holds."""
    start = time.perf_counter()
    values.sum()
    return values.numel() * values.element_size() / (time.perf_counter() - start)


def compare(args, folder, model, precision, prompt):
    ids = torch.randint(model.config.vocab_size, (prompt,)).tolist()
    read = sum(p.numel() * p.element_size() for p in model.parameters() if p is not model.transformer.wpe.weight)
    values = torch.zeros(read // 4, dtype=torch.float32)
    theirs(args, model, ids)  # threads and buffers are there from now on
    runs = [(ours(args, folder, precision, ids), theirs(args, model, ids), read_rate(values)) for _ in range(args.repeats)]
    first, further = ([statistics.median(run[side][which] for run in runs) for side in (0, 1)] for which in (0, 1))
    row = {"precision": precision, "prompt": prompt, "same_tokens": all(a[2] == b[2] for a, b, _ in runs),
           "first_s": first, "further_s": further, "first_ratio": first[0] / first[1],
           "further_ratio": further[0] / further[1],
           "share_of_reading": read / further[0] / statistics.median(run[2] for run in runs)}
    print(f"{precision:9} {prompt:6} {1e3 * first[0]:8.1f} {1e3 * first[1]:13.1f} {row['first_ratio']:6.2f} "
          f"{1e3 * further[0]:10.2f} {1e3 * further[1]:13.2f} {row['further_ratio']:6.2f} "
          f"{100 * row['share_of_reading']:6.0f} %  {'the same tokens' if row['same_tokens'] else 'other tokens'}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=str(pathlib.Path(__file__).resolve().parents[3] / "build/release/bench/sluice"))
    for name, default in (("layers", 12), ("channels", 768), ("heads", 12), ("tokens", 64), ("threads", 1), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--prompts", default="16,256")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--cores", default="0", help="both sides are bound to these, as 0,1")
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.processor and args.threads > 1:
        sys.exit("generate.py: --processor is for one thread; what threads wait for each other would count")
    if args.processor:
        processor_clock.use()
    os.sched_setaffinity(0, map(int, args.cores.split(",")))
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    config = transformers.GPT2Config(n_layer=args.layers, n_embd=args.channels, n_head=args.heads, initializer_range=0.1,
                                     eos_token_id=None, bos_token_id=None)
    model = transformers.GPT2LMHeadModel(config).eval()
    print(f"{args.threads} thread{'s' * (args.threads > 1)}, cores {args.cores}; torch {torch.__version__}, transformers "
          f"{transformers.__version__}; ms a token")
    print(f"{'':9} {'prompt':>6} {'first':>8} {'transformers':>13} {'ratio':>6} {'further':>10} {'transformers':>13} "
          f"{'ratio':>6} {'of reading':>10}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        for precision in args.precisions.split(","):
            model.to(torch.bfloat16 if precision == "bf16" else torch.float32)
            rows += [compare(args, folder, model, precision, int(prompt)) for prompt in args.prompts.split(",")]
    if args.json:
        result = {"rows": rows, "arguments": vars(args), "torch": torch.__version__,
                  "transformers": transformers.__version__}
        pathlib.Path(args.json).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0 if all(row["same_tokens"] for row in rows if row["precision"] == "fp32") else 1


sys.exit(main())
