#!/usr/bin/env python3
"""Makes the folders next to this file: what transformers computes for tiny random models, as the truth for tests.

Run once, with torch, transformers and safetensors installed:   python3 make_golden.py [FOLDER]
(the committed files came from torch 2.15.0, transformers 5.23.0, those of bert_before_* 5.24.0, and safetensors 0.8.0,
on a CPU).

Each folder is a checkpoint as save_pretrained writes it (config.json, model.safetensors), with
  inputs.safetensors    what the model is called with, under transformers' names, labels among them
  expected.safetensors  "loss", "logits" and "grad.NAME", the loss's gradient by each parameter NAME of model.safetensors
Weights and inputs are fp32 numbers; the model is computed in float64 and the results are rounded to fp32. No parameter
is where it usually begins (norms at 1, biases, tables and scales at 0), so that one that is left out shows. Dropout is 0.
"""
import pathlib
import sys
import tempfile

import safetensors
import torch
import transformers
from safetensors.torch import load_file, save_file

BATCH, LENGTH, VOCABULARY = 2, 13, 29
SIZES = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, hidden_dropout_prob=0.0,
             attention_probs_dropout_prob=0.0, attn_implementation="eager")
IMAGES = dict(SIZES, image_size=12, patch_size=4, num_channels=3)
PATCHES = 9


def gpt2():
    config = transformers.GPT2Config(n_embd=24, n_layer=2, n_head=3, n_positions=17, vocab_size=VOCABULARY, bos_token_id=0,
                                     eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                                     attn_implementation="eager")
    tokens = torch.randint(VOCABULARY, (BATCH, LENGTH))
    labels = tokens.clone()
    labels[0, 4] = labels[1, 9:11] = -100
    return transformers.GPT2LMHeadModel(config), dict(input_ids=tokens, labels=labels)


def bert_inputs():
    """Draws tokens. Token 0 is padding, for whose row torch.nn.Embedding gives no gradient; one sequence has it among
    the tokens that count."""
    tokens = torch.randint(1, VOCABULARY, (BATCH, LENGTH))
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    mask[1, 8:] = tokens[1, 8:] = 0
    tokens[0, 3] = 0
    types = torch.zeros(BATCH, LENGTH, dtype=torch.int64)
    types[0, 5:] = types[1, 3:] = 1
    return dict(input_ids=tokens, attention_mask=mask, token_type_ids=types)


def bert_config(**more):
    return transformers.BertConfig(**SIZES, vocab_size=VOCABULARY, max_position_embeddings=17, type_vocab_size=2, **more)


def bert_masked():
    inputs = bert_inputs()
    labels = torch.full((BATCH, LENGTH), -100)
    for b, t in [(0, 1), (0, 6), (0, 12), (1, 0), (1, 7)]:
        labels[b, t] = torch.randint(VOCABULARY, ())
    return transformers.BertForMaskedLM(bert_config()), dict(inputs, labels=labels)


def bert_classifier():
    model = transformers.BertForSequenceClassification(bert_config(num_labels=5))
    return model, dict(bert_inputs(), labels=torch.tensor([4, 1]))


def before(**more):
    """Makes a configuration of BERT with norms before its branches. Token 2 is padding: positions begin in row 3."""
    return transformers.RobertaPreLayerNormConfig(**SIZES, vocab_size=VOCABULARY, max_position_embeddings=17, type_vocab_size=2,
                                                  pad_token_id=2, bos_token_id=0, eos_token_id=1, **more)


def before_inputs():
    """Draws tokens. None is padding, which transformers' positions pass over; what the mask hides counts as a position."""
    inputs = bert_inputs()
    tokens = torch.randint(3, VOCABULARY, (BATCH, LENGTH))
    return dict(inputs, input_ids=tokens)


def bert_before_masked():
    inputs = before_inputs()
    labels = torch.full((BATCH, LENGTH), -100)
    for b, t in [(0, 1), (0, 6), (0, 12), (1, 0), (1, 7)]:
        labels[b, t] = torch.randint(VOCABULARY, ())
    return transformers.RobertaPreLayerNormForMaskedLM(before()), dict(inputs, labels=labels)


def bert_before_classifier():
    model = transformers.RobertaPreLayerNormForSequenceClassification(before(num_labels=5))
    return model, dict(before_inputs(), labels=torch.tensor([4, 1]))


def pixels():
    return torch.randn(BATCH, 3, 12, 12)


def vit():
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**IMAGES, num_labels=5))
    return model, dict(pixel_values=pixels(), labels=torch.tensor([0, 3]))


def beit():
    config = transformers.BeitConfig(**IMAGES, num_labels=5, use_relative_position_bias=True, layer_scale_init_value=0.1,
                                     use_mean_pooling=True, drop_path_rate=0.0)
    model = transformers.BeitForImageClassification(config)
    return model, dict(pixel_values=pixels(), labels=torch.tensor([2, 3]))


def beit_masked(**more):
    config = transformers.BeitConfig(**IMAGES, vocab_size=VOCABULARY, use_mask_token=True, layer_scale_init_value=0.1,
                                     drop_path_rate=0.0, **more)
    masked = torch.zeros(BATCH, PATCHES, dtype=torch.bool)
    masked[0, [1, 2, 6]] = masked[1, [0, 8]] = True
    labels = torch.randint(VOCABULARY, (int(masked.sum()),))
    return (transformers.BeitForMaskedImageModeling(config),
            dict(pixel_values=pixels(), bool_masked_pos=masked, labels=labels))


def beit_masked_shared():
    """Makes a BEiT as it was pre-trained: one table of relative positions for all layers, and absolute positions here
    too."""
    return beit_masked(use_shared_relative_position_bias=True, use_absolute_position_embeddings=True)


def randomise(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            near_one = parameter.dim() == 1 and name.endswith("weight")
            parameter.copy_((1.0 if near_one else 0.0) + 0.25 * torch.randn(parameter.shape))


def as_saved(model, values):
    """Returns the tensors that save_pretrained writes for parameters with these values: its names are not the
    module's."""
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        kept = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
        for name, parameter in model.named_parameters():
            parameter.copy_(values[name])
        model.save_pretrained(folder)
        for name, parameter in model.named_parameters():
            parameter.copy_(kept[name])
        return load_file(pathlib.Path(folder) / "model.safetensors")


def make(folder, model, inputs):
    model.eval()
    randomise(model)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    save_file({name: value.contiguous() for name, value in inputs.items()}, folder / "inputs.safetensors")
    model.double()
    result = model(**{name: value.double() if value.is_floating_point() else value for name, value in inputs.items()})
    result.loss.backward()
    expected = {"loss": result.loss, "logits": result.logits}
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    missing = [name for name, gradient in gradients.items() if gradient is None or not gradient.abs().max() > 0]
    assert not missing, f"{folder}: no gradient for {missing}"
    expected.update({"grad." + name: value for name, value in as_saved(model, gradients).items()})
    save_file({name: value.detach().float().contiguous() for name, value in expected.items()},
              folder / "expected.safetensors")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder.name}: loss {result.loss.item():.6f}, {len(gradients)} parameters, {size} bytes")


def keep_doubles(softmax=torch.nn.functional.softmax):
    """Returns a softmax that keeps doubles: the attention of ViT and BEiT asks for it in float32, in a model of doubles
    too."""
    def in_own_type(values, dim, dtype=None):
        return softmax(values, dim=dim, dtype=None if values.dtype == torch.float64 else dtype)
    torch.nn.functional.softmax = in_own_type


def main():
    here = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, safetensors {safetensors.__version__}")
    transformers.logging.set_verbosity_error()
    keep_doubles()
    for seed, make_model in enumerate([gpt2, bert_masked, bert_classifier, vit, beit, beit_masked, beit_masked_shared,
                                       bert_before_masked, bert_before_classifier]):
        torch.manual_seed(seed)
        folder = here / make_model.__name__
        folder.mkdir(parents=True, exist_ok=True)
        make(folder, *make_model())


if __name__ == "__main__":
    main()
