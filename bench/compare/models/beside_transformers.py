#!/usr/bin/env python3
"""Logits and gradients of `sluice eval` beside transformers', on the same random weights and inputs, in the same run.

    beside_transformers.py [--sluice PATH] [--models gpt2,bert,bert_classes,vit,beit,beit_masked] [--layers N]
                           [--batch N] [--length N] [--threads N] [--precision fp32|bf16] [--json FILE]

Needs torch, transformers and safetensors. Shapes are those of the published base models (GPT-2 124M, BERT base, ViT
base, BEiT base); --layers takes fewer layers of them. The truth is transformers in float64; what transformers itself is
off in fp32 stands beside Sluice's error. Columns:

  logits    largest absolute difference: from transformers in fp32, from float64; of transformers in fp32 from float64
  gradient  the worst parameter's |g - truth| / |truth| (2-norms), Sluice's and transformers' in fp32

A parameter whose true gradient is 0 (biases of keys: the softmax does not see them) is left out and counted.
Exit code 1 if Sluice in fp32 is off by more than 1e-4 in either.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    sys.exit(f"beside_transformers.py: {missing}; run it with a Python that has torch, transformers and safetensors")

LIMIT = 1e-4


def gpt2(args, more):
    config = transformers.GPT2Config(**({"n_layer": args.layers} if args.layers else {}), resid_pdrop=0.0, embd_pdrop=0.0,
                                     attn_pdrop=0.0, **more)
    tokens = torch.randint(config.vocab_size, (args.batch, args.length))
    return transformers.GPT2LMHeadModel, config, dict(input_ids=tokens, labels=tokens.clone())


def encoder(args, more):
    layers = {"num_hidden_layers": args.layers} if args.layers else {}
    return dict(layers, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **more)


def bert_inputs(args, config):
    mask = torch.ones(args.batch, args.length, dtype=torch.int64)
    mask[-1, args.length * 3 // 4:] = 0
    tokens = torch.randint(1, config.vocab_size, (args.batch, args.length)) * mask
    types = torch.zeros_like(mask)
    types[:, args.length // 2:] = 1
    return dict(input_ids=tokens, attention_mask=mask, token_type_ids=types)


def bert(args, more):
    config = transformers.BertConfig(**encoder(args, more))
    inputs = bert_inputs(args, config)
    hidden = (torch.rand(args.batch, args.length) < 0.15) & (inputs["attention_mask"] == 1)
    hidden[:, 0] = True
    labels = torch.randint(config.vocab_size, (args.batch, args.length)).masked_fill(~hidden, -100)
    return transformers.BertForMaskedLM, config, dict(inputs, labels=labels)


def bert_classes(args, more):
    config = transformers.BertConfig(**encoder(args, more), num_labels=5)
    return (transformers.BertForSequenceClassification, config,
            dict(bert_inputs(args, config), labels=torch.randint(5, (args.batch,))))


def pixels(args):
    return torch.randn(args.batch, 3, 224, 224)


def vit(args, more):
    config = transformers.ViTConfig(**encoder(args, more), num_labels=1000)
    return (transformers.ViTForImageClassification, config,
            dict(pixel_values=pixels(args), labels=torch.randint(1000, (args.batch,))))


def beit(args, more):
    config = transformers.BeitConfig(**encoder(args, more), num_labels=1000, use_relative_position_bias=True,
                                     drop_path_rate=0.0)
    return (transformers.BeitForImageClassification, config,
            dict(pixel_values=pixels(args), labels=torch.randint(1000, (args.batch,))))


def beit_masked(args, more):
    config = transformers.BeitConfig(**encoder(args, more), use_mask_token=True, use_shared_relative_position_bias=True,
                                     use_absolute_position_embeddings=True, drop_path_rate=0.0)
    masked = torch.rand(args.batch, 196) < 0.4
    masked[:, 0] = True
    labels = torch.randint(config.vocab_size, (int(masked.sum()),))
    return (transformers.BeitForMaskedImageModeling, config,
            dict(pixel_values=pixels(args), bool_masked_pos=masked, labels=labels))


MODELS = [gpt2, bert, bert_classes, vit, beit, beit_masked]


def randomise(model):
    """Draws parameters as if the model had been trained: none keeps its first value, and none has a value that a wrong
    reading would leave unchanged."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            near_one = parameter.dim() == 1 and name.endswith("weight")
            parameter.copy_((1.0 if near_one else 0.0) + (0.1 if near_one else 0.02) * torch.randn(parameter.shape))


def gradients_as_saved(model, folder):
    """Returns the model's gradients under the names that model.safetensors gives the parameters; the module has other
    names."""
    with torch.no_grad():
        kept = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
        for _, parameter in model.named_parameters():
            parameter.copy_(parameter.grad)
        model.save_pretrained(folder)
        for name, parameter in model.named_parameters():
            parameter.copy_(kept[name])
    return load_file(folder / "model.safetensors")


def run_transformers(model, inputs, dtype, folder):
    model.to(dtype).zero_grad()
    cast = {name: value.to(dtype) if value.is_floating_point() else value for name, value in inputs.items()}
    result = model(**cast)
    result.loss.backward()
    return result.logits.detach().double(), gradients_as_saved(model, folder)


def run_sluice(args, folder):
    logits, gradients = folder / "logits.safetensors", folder / "gradients.safetensors"
    subprocess.run([args.sluice, "eval", "--weights", folder, "--inputs", folder / "inputs.safetensors", "--logits", logits,
                    "--gradients", gradients, "--threads", str(args.threads), "--precision", args.precision], check=True,
                   stdout=subprocess.DEVNULL)
    return load_file(logits)["logits"].double(), load_file(gradients)


def gradient_error(gradients, truth):
    """Returns the worst parameter, how far it is off, and how many parameters have a gradient of 0."""
    norms = {name: value.double().norm().item() for name, value in truth.items()}
    least = 1e-9 * max(norms.values())
    worst, zeros = (0.0, ""), 0
    for name, value in truth.items():
        if norms[name] <= least:
            zeros += 1
            continue
        error = (gradients[name].double() - value.double()).norm().item() / norms[name]
        worst = max(worst, (error, name))
    return worst, zeros


def compare(args, make):
    torch.manual_seed(args.seed)
    kind, config, inputs = make(args, dict(attn_implementation="eager"))
    model = kind(config).eval()
    randomise(model)
    with tempfile.TemporaryDirectory() as root:
        folder, other = pathlib.Path(root) / "model", pathlib.Path(root) / "gradients"
        model.save_pretrained(folder)
        save_file({name: value.contiguous() for name, value in inputs.items()}, folder / "inputs.safetensors")
        ours, our_gradients = run_sluice(args, folder)
        single, single_gradients = run_transformers(model, inputs, torch.float32, other)
        truth, true_gradients = run_transformers(model, inputs, torch.float64, other)
    missing = sorted(true_gradients.keys() - our_gradients.keys())
    if missing or ours.shape != truth.shape:
        sys.exit(f"{make.__name__}: no gradient of {missing}, logits {tuple(ours.shape)} for {tuple(truth.shape)}")
    (error, worst), zeros = gradient_error(our_gradients, true_gradients)
    (single_error, _), _ = gradient_error(single_gradients, true_gradients)
    return dict(model=make.__name__, parameters=len(true_gradients), zero_gradients=zeros,
                largest_logit=truth.abs().max().item(), logits_from_transformers=(ours - single).abs().max().item(),
                logits_from_truth=(ours - truth).abs().max().item(),
                transformers_logits_from_truth=(single - truth).abs().max().item(), gradient_error=error,
                worst_parameter=worst, transformers_gradient_error=single_error)


def keep_doubles(softmax=torch.nn.functional.softmax):
    """Returns a softmax that keeps doubles: the attention of ViT and BEiT asks for it in float32, in a model of doubles
    too."""
    def in_own_type(values, dim, dtype=None):
        return softmax(values, dim=dim, dtype=None if values.dtype == torch.float64 else dtype)
    torch.nn.functional.softmax = in_own_type


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=pathlib.Path(__file__).resolve().parents[3] / "build/release/bench/sluice")
    parser.add_argument("--models", default=",".join(make.__name__ for make in MODELS))
    parser.add_argument("--layers", type=int, default=0, help="0: as published")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--json")
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(args.threads)
    keep_doubles()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, sluice in {args.precision}")
    print(f"{'':12} {'logits: largest':>16} {'- fp32':>9} {'- fp64':>9} {'(theirs)':>9} {'gradient':>9} {'(theirs)':>9}")
    rows = []
    for make in MODELS:
        if make.__name__ not in args.models.split(","):
            continue
        row = compare(args, make)
        rows.append(row)
        print(f"{row['model']:12} {row['largest_logit']:16.3f} {row['logits_from_transformers']:9.1e} "
              f"{row['logits_from_truth']:9.1e} {row['transformers_logits_from_truth']:9.1e} {row['gradient_error']:9.1e} "
              f"{row['transformers_gradient_error']:9.1e}  {row['parameters']} parameters, {row['zero_gradients']} without "
              f"gradient; worst {row['worst_parameter']}", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"rows": rows, "arguments": {k: str(v) for k, v in vars(args).items()},
                                                       "torch": torch.__version__,
                                                       "transformers": transformers.__version__}, indent=1) + "\n")
    off = [row["model"] for row in rows
           if max(row["logits_from_transformers"], row["gradient_error"]) > LIMIT and args.precision == "fp32"]
    if off:
        sys.exit(f"off by more than {LIMIT}: {', '.join(off)}")


if __name__ == "__main__":
    main()
