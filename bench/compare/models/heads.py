#!/usr/bin/env python3
"""Four changes of head, beside transformers: which tensors of a file go on, bit for bit, and which are begun anew.

    heads.py [--sluice PATH]

Needs torch, transformers and safetensors; no network. Each file is made by transformers with random weights and saved
with save_pretrained; then transformers loads it into a model with the other head (ignore_mismatched_sizes) and says
which keys are missing or mismatched, and `sluice train --weights FILE --lr 0 --steps 1 --save-weights` goes on from it. Every
tensor that transformers keeps must have the file's bits in what Sluice saves, Sluice must begin anew those that
transformers does and no others, and name them. Exit code 1 otherwise."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import tokenizers
    import torch
    import transformers
    from safetensors.torch import load_file
except ImportError as missing:
    sys.exit(f"heads.py: {missing}; run it with a Python that has torch, transformers and safetensors")

CONTEXT, IMAGE = 24, 16
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
TEXT = {"vocab_size": 256, "max_position_embeddings": CONTEXT}
PIXELS = {"image_size": IMAGE, "patch_size": 8}


def bert(model, **more):
    return model(transformers.BertConfig(**SIZES, **TEXT, **more))


def vit(model, **more):
    return model(transformers.ViTConfig(**SIZES, **PIXELS, **more))


def beit(model, **more):
    return model(transformers.BeitConfig(**SIZES, **PIXELS, use_relative_position_bias=True, layer_scale_init_value=0.1,
                                         drop_path_rate=0.0, **more))


def changes():
    """Yields the cases: a name, the file's model, the class of the model with the other head, its number of classes,
    and the kind of data."""
    text, image = transformers.BertForSequenceClassification, transformers.ViTForImageClassification
    beit_image = transformers.BeitForImageClassification
    yield "BERT, pre-training to 3 classes", bert(transformers.BertForPreTraining), text, 3, "text"
    yield "BERT, tokens to 3 classes", bert(transformers.BertForMaskedLM), text, 3, "text"
    yield "BERT, 3 classes to 2", bert(text, num_labels=3), text, 2, "text"
    yield "ViT, 3 classes to 5", vit(image, num_labels=3), image, 5, "images"
    yield "BEiT, 3 classes to 5", beit(beit_image, num_labels=3), beit_image, 5, "images"
    yield "BERT, trunk to 3 classes", bert(transformers.BertModel), text, 3, "text"
    yield "ViT, trunk to 3 classes", vit(transformers.ViTModel), image, 3, "images"


def randomise(model):
    """Draws all tensors anew, so that none has first values and a tensor that is kept can't be taken for a new one."""
    with torch.no_grad():
        for _, parameter in model.named_parameters():
            parameter.copy_(torch.rand(parameter.shape) * 0.2 + 0.01)


def write_tokenizer(folder):
    """Writes a tokenizer, WordPiece of single letters and digits, which the cases with text need."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(code) for code in range(33, 127)]
    vocabulary = {token: number for number, token in enumerate(special + letters + ["##" + x for x in letters])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(folder / "tokenizer.json"))


def make_data(kind, classes, folder):
    """Makes a text file or a folder of images for each class, and returns the value of --data."""
    if kind == "text":
        files = [folder / f"class{number}.txt" for number in range(classes)]
        for number, file in enumerate(files):
            file.write_text("".join(f"{line} bottles of class {number}\n" for line in range(200)), encoding="utf-8")
        return ",".join(map(str, files))
    for number in range(classes):
        images = folder / "images" / f"class {number}"
        images.mkdir(parents=True)
        for image in range(6):
            values = bytes((number * 40 + image * 7 + i) % 256 for i in range(IMAGE * IMAGE))
            (images / f"{image}.pgm").write_bytes(b"P5 %d %d 255\n" % (IMAGE, IMAGE) + values)
    return str(folder / "images")


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.numpy().tobytes() == b.numpy().tobytes()


def by_transformers(file, model_class, classes, out):
    """Returns the names that transformers begins anew, and the tensors that it keeps, as it saves them: files may have
    other names than modules."""
    model, said = model_class.from_pretrained(file, num_labels=classes, ignore_mismatched_sizes=True,
                                              output_loading_info=True, local_files_only=True)
    new = set(said["missing_keys"]) | {entry[0] for entry in said["mismatched_keys"]}
    model.save_pretrained(out)
    return new, {name: value for name, value in load_file(out / "model.safetensors").items() if name not in new}


def by_sluice(sluice, file, kind, data, out):
    """Returns the names that Sluice says are new, and the tensors that it saves."""
    head = ["--context", str(CONTEXT), "--head", "classes"] if kind == "text" else []
    command = [sluice, "train", "--weights", file, "--data", data, "--batch", "2", "--eval-batches", "0", "--lr", "0",
               "--steps", "1", "--save-weights", out, *head]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if run.returncode:
        sys.exit(f"heads.py: {' '.join(map(str, command))}: exit code {run.returncode}\n{run.stderr}")
    said = re.search(r"^new +(.*?): ", run.stdout, re.M)
    return set(said[1].split(", ")) if said else set(), load_file(out / "model.safetensors")


def compare(sluice, what, model, model_class, classes, kind, folder):
    """Returns what is wrong with one case, or nothing."""
    file, out = folder / "file", folder / "out"
    randomise(model)
    model.save_pretrained(file)
    if kind == "text":
        write_tokenizer(file)
    new, kept = by_transformers(file, model_class, classes, folder / "theirs")
    said, saved = by_sluice(sluice, file, kind, make_data(kind, classes, folder), out)
    first = load_file(file / "model.safetensors")
    prefix = model_class.base_model_prefix + "."  # files of a bare trunk lack it
    wrong = []
    for name, value in kept.items():
        of_file = first.get(name, first.get(name.removeprefix(prefix)))
        if of_file is None or not same_bits(value, of_file):
            wrong.append(f"transformers itself changes {name}")
        elif name not in saved or not same_bits(saved[name], of_file):
            wrong.append(f"{name} is not the file's")
    begun = {name for name, value in saved.items()
             if not same_bits(value, first.get(name, first.get(name.removeprefix(prefix), torch.empty(0))))}
    if begun != new:
        wrong.append(f"begun anew: {sorted(begun)}; by transformers: {sorted(new)}")
    if said != new:
        wrong.append(f"named: {sorted(said)}; by transformers: {sorted(new)}")
    print(f"{what}: {len(kept)} tensors kept, new {', '.join(sorted(new)) or 'nothing'}: {'; '.join(wrong) or 'alike'}",
          flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description="Changes of head, beside transformers.")
    parser.add_argument("--sluice", default="build/release/bench/sluice")
    options = parser.parse_args()
    torch.manual_seed(5)
    transformers.utils.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    wrong = 0
    for what, model, model_class, classes, kind in changes():
        with tempfile.TemporaryDirectory() as folder:
            wrong += bool(compare(options.sluice, what, model, model_class, classes, kind, pathlib.Path(folder)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
