/* Hugging Face's config.json: the description of a model. Source of keys and defaults: transformers' GPT2Config,
 * BertConfig, RobertaPreLayerNormConfig, ViTConfig and BeitConfig (5.23). One struct serves all families; a field that
 * a family does not have is 0. Any thread. */
#pragma once

#include <sluice/model.h>
#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLC_NO_PADDING UINT32_MAX

typedef enum { SLC_ACTIVATION_GELU_TANH, SLC_ACTIVATION_GELU_ERF } slc_activation; /* "gelu_new", "gelu" */

typedef struct {
    sluice_model_family family;
    sluice_model_head head; /* of the first class of "architectures" */
    /* headless: "architectures" names a class without a head, or nothing: then the head is the usual one, which the
     * weights need not have. untied, of GPT-2 and BERT: tie_word_embeddings is false. */
    bool headless, untied;
    uint32_t channels;         /* n_embd, hidden_size */
    uint32_t layers, heads;    /* heads divides channels */
    uint32_t inner;            /* n_inner (if absent: 4 x channels), intermediate_size */
    slc_activation activation; /* activation_function, hidden_act */
    double epsilon;            /* layer_norm_epsilon, layer_norm_eps */
    double initializer_range;
    double dropout;            /* resid_pdrop, hidden_dropout_prob */
    double embedding_dropout;  /* embd_pdrop, hidden_dropout_prob */
    double attention_dropout;  /* attn_pdrop, attention_probs_dropout_prob */
    double classifier_dropout; /* BERT; if absent: hidden_dropout_prob */
    uint32_t labels;           /* id2label, or num_labels, or 2; a classifier has at least 2 */
    /* GPT-2, BERT. BEiT has a vocabulary too (its visual tokens). */
    uint32_t vocabulary, positions; /* roberta-prelayernorm: with those up to the padding's */
    uint32_t types;                 /* type_vocab_size; BERT */
    /* pad_token_id; BERT: looking up this row of the table adds nothing to its gradient. A negative one counts from the
     * end of the vocabulary, as torch.nn.Embedding does. SLC_NO_PADDING: null, or beyond the vocabulary. */
    uint32_t padding;
    /* GPT-2, BERT: bos_token_id and eos_token_id (of several, the first), plus 1; 0: none, or beyond the vocabulary */
    uint64_t begin_token, end_token;
    /* ViT, BEiT */
    uint32_t image, patch, image_channels; /* the image is square, its side a multiple of patch */
    bool qkv_bias;                         /* ViT; BEiT's queries and values have a bias, its keys have none */
    /* BEiT */
    bool mask_token, absolute_positions, relative_bias, shared_relative_bias, mean_pooling;
    double layer_scale;    /* layer_scale_init_value; 0: there is none */
    double drop_path_rate; /* rate of the last layer, growing evenly from 0; in training only */
} slc_config;

/* Reads config.json; `path` is the file or the folder that contains it. Keys that do not affect a model's result are
 * passed over, integers beyond 64 bits in them too. Errors: UNSUPPORTED, by name, for models that Sluice cannot
 * compute: other model types, architectures and activations, relative positions in BERT, cross attention, decoders,
 * pruned heads, heads scaled by layer, regression and several labels at a time, images or patches that are not square;
 * FORMAT for text that is not JSON, NaN and Infinity in any key, a key with the wrong type or out of range, a width
 * that the heads do not divide; PATH, IO, MEMORY. */
sluice_status slc_config_read(const char *path, slc_config *out);
/* Does the same for a text of `length` bytes; `path` is for messages. */
sluice_status slc_config_from_json(const char *path, const char *text, size_t length, slc_config *out);

/* Writes the whole file or nothing; transformers and slc_config_read can load it. Names of labels are not kept: they
 * become LABEL_0 and so on. `path` is as for reading, but a folder must exist. Errors: PATH, IO, MEMORY. */
sluice_status slc_config_write(const char *path, const slc_config *config);
sluice_status slc_config_to_json(const slc_config *config, char **text); /* the caller frees */
