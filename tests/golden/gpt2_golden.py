#!/usr/bin/env python3
"""Makes gpt2_golden.bin: what PyTorch's GPT-2 computes for a tiny random model, as the truth for a test.

Run once, with torch and transformers installed:   python3 gpt2_golden.py
(the committed file came from torch 2.15.0 and transformers 5.23.0, fp32, on a CPU).

Format, little endian: the 8 bytes "SLUGOLD1", then arrays until the end of the file, each
  uint32 length of the name, the name, uint32 type (0: float32, 1: int32), uint64 count, the elements.
Names: "config" (int32: layers, channels, heads, context, vocabulary, batch, length), "tokens", "targets", "logits",
"loss", "value/NAME" for each parameter in Sluice's names and order, "gradient/NAME" for some.
"""
import pathlib
import struct

import numpy
import torch
from transformers import GPT2Config, GPT2LMHeadModel

LAYERS, CHANNELS, HEADS, CONTEXT, VOCABULARY, BATCH, LENGTH = 2, 32, 4, 24, 61, 2, 17
GRADIENTS = ["wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias",
             "h.0.attn.c_proj.weight", "h.1.ln_2.bias", "h.1.mlp.c_fc.bias", "h.1.mlp.c_proj.weight", "ln_f.weight",
             "ln_f.bias"]


def sluice_name(name):
    if name.startswith("w"):
        return "embed." + name
    return "head." + name if name.startswith("ln_f") else name


def write_array(file, name, array):
    kind = {"float32": 0, "int32": 1}[str(array.dtype)]
    file.write(struct.pack("<I", len(name)) + name.encode() + struct.pack("<IQ", kind, array.size))
    file.write(numpy.ascontiguousarray(array).tobytes())


def main():
    torch.manual_seed(20)
    config = GPT2Config(n_layer=LAYERS, n_embd=CHANNELS, n_head=HEADS, n_positions=CONTEXT, vocab_size=VOCABULARY,
                        bos_token_id=0, eos_token_id=0, attn_implementation="eager")
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():  # large enough that every part of the model matters to the logits
        for name, parameter in model.named_parameters():
            norm = ".ln_" in name and name.endswith("weight")
            parameter.copy_(torch.randn(parameter.shape) * 0.2 + (1.0 if norm else 0.0))
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH))
    targets = torch.randint(0, VOCABULARY, (BATCH, LENGTH))
    logits = model(tokens).logits
    loss = torch.nn.functional.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))
    loss.backward()

    path = pathlib.Path(__file__).with_name("gpt2_golden.bin")
    with open(path, "wb") as file:
        file.write(b"SLUGOLD1")
        shape = [LAYERS, CHANNELS, HEADS, CONTEXT, VOCABULARY, BATCH, LENGTH]
        write_array(file, "config", numpy.array(shape, dtype=numpy.int32))
        write_array(file, "tokens", tokens.numpy().astype(numpy.int32))
        write_array(file, "targets", targets.numpy().astype(numpy.int32))
        write_array(file, "logits", logits.detach().numpy())
        write_array(file, "loss", loss.detach().numpy().reshape(1))
        named = {name.removeprefix("transformer."): parameter for name, parameter in model.named_parameters()}
        for name, parameter in named.items():
            write_array(file, "value/" + sluice_name(name), parameter.detach().numpy())
        for name in GRADIENTS:
            write_array(file, "gradient/" + sluice_name(name), named[name].grad.numpy())
    print(f"{path}: {path.stat().st_size} bytes, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
