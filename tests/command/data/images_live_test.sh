#!/usr/bin/env bash
# Images become the pixels that transformers makes of them: a ViT of transformers' own, fine-tuned on a folder of PNG and
# JPEG files, has on that folder the loss and the accuracy that transformers computes from the exported weights, with the
# image processor that the exported preprocessor_config.json describes. Needs SLUICE_TEST_PYTHON with torch,
# transformers and Pillow.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_test_python torch transformers PIL
timeout 600 "$python" - "$(realpath "$sluice")" "$work" 2>"$work/err" <<'PY'
import glob, json, os, random, subprocess, sys
import torch
from PIL import Image
from transformers import (AutoImageProcessor, BeitConfig, BeitForImageClassification, BeitImageProcessor, ViTConfig,
                          ViTForImageClassification, ViTImageProcessor)
sluice, work = sys.argv[1:]
os.chdir(work)
torch.set_num_threads(1)
torch.manual_seed(7)
random.seed(7)

# Smooth pictures, as photographs are: few random colours, made larger.
names = ("dusk", "meadow", "sea")
for number, name in enumerate(names):
    os.makedirs("views/" + name)
    for i in range(16):
        small = Image.new("RGB", (4, 3))
        small.putdata([tuple(min(255, random.randrange(120) + (110 if c == number else 0)) for c in range(3))
                       for _ in range(12)])
        size = (random.randint(20, 150), random.randint(20, 150))
        small.resize(size, Image.Resampling.BICUBIC).save(f"views/{name}/{i}.{'png' if i % 2 else 'jpg'}")

def run(command, *options):
    done = subprocess.run([sluice, command, *options], capture_output=True, timeout=200, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout

def compare(folder):
    processor = AutoImageProcessor.from_pretrained(folder)
    model = (ViTForImageClassification if "vit" in folder else BeitForImageClassification).from_pretrained(folder).eval()
    ids = {name: int(number) for number, name in model.config.id2label.items()}
    losses, right = [], 0
    for path in sorted(glob.glob("views/*/*")):
        label = ids[path.split("/")[1]]
        pixels = processor(Image.open(path).convert("RGB"), return_tensors="pt")["pixel_values"]
        with torch.no_grad():
            logits = model(pixel_values=pixels).logits[0]
        losses.append(torch.nn.functional.cross_entropy(logits, torch.tensor(label)).item())
        right += int(logits.argmax()) == label
    run("eval", "--weights", folder, "--data", "views", "--json", "e.json")
    got, loss = json.load(open("e.json")), sum(losses) / len(losses)
    print(f"{folder}: loss {got['loss']:.5f}, transformers' {loss:.5f}; accuracy {got['accuracy']}")
    assert got["images"] == len(losses) and abs(got["loss"] - loss) < 5e-3, (got, loss)
    assert abs(got["accuracy"] * len(losses) - right) < 1.5, (got, right)
    return ids

common = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96, image_size=32,
              patch_size=8, num_labels=3)
mine = {"id2label": {0: "sea", 1: "dusk", 2: "meadow"}, "label2id": {"sea": 0, "dusk": 1, "meadow": 2}}
ViTForImageClassification(ViTConfig(**common, **mine)).save_pretrained("vit")
ViTImageProcessor(size={"height": 32, "width": 32}, image_mean=[0.485, 0.456, 0.406],
                  image_std=[0.229, 0.224, 0.225]).save_pretrained("vit")
BeitForImageClassification(BeitConfig(**common, **mine, use_relative_position_bias=True,
                                      use_shared_relative_position_bias=False)).save_pretrained("beit")
BeitImageProcessor(size={"height": 32, "width": 32}, do_center_crop=False, resample=3).save_pretrained("beit")
for family in ("vit", "beit"):
    assert compare(family) == mine["label2id"]
    run("train", "--weights", family, "--data", "views", "--steps", "40", "--lr", "0.003", "--save-weights", family + "_tuned")
    assert compare(family + "_tuned") == mine["label2id"]
    a, b = (json.load(open(f + "/preprocessor_config.json")) for f in (family, family + "_tuned"))
    for key in ("image_mean", "image_std", "resample", "size"):
        same = all(abs(x - y) < 1e-7 for x, y in zip(a[key], b[key])) if "image" in key else a[key] == b[key]
        assert same, (key, a[key], b[key])
run("train", "--model", "vit", "--size", "nano", "--data", "views", "--steps", "2", "--save-weights", "vit_own")
assert AutoImageProcessor.from_pretrained("vit_own").size["height"] == 16
PY
code=$?
check 'images and weights are those of transformers' 0 $code
[ $failed = 0 ] && echo "images: transformers makes the same of them"
exit $failed
