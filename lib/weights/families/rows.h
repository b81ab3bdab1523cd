/* The words in which a family's file is written: rows of keys, parameters and sizes, and those that several families
 * have. Private to lib/weights/families. */
#pragma once

#include "lib/weights/config_keys.h"

/* ---- Keys of config.json. Limits are far beyond any model and far below an overflow. ---- */

enum { LARGE = 1 << 24 };

#define KEY(key, type, field, least, most, nullable)                                                                   \
    {                                                                                                                  \
        key, SLC_KEY_##type, offsetof(slc_config, field), least, most, nullable                                        \
    }
#define COUNT(key, field) KEY(key, COUNT, field, 1, LARGE, false)
#define REAL(key, field, most) KEY(key, REAL, field, 0, most, false)
#define FLAG(key, field) KEY(key, FLAG, field, 0, 1, false)
#define SIDE(key, field) KEY(key, SIDE, field, 1, 1 << 16, false)

#define ENCODER_KEYS                                                                                                   \
    COUNT("hidden_size", channels), COUNT("num_hidden_layers", layers), COUNT("num_attention_heads", heads),           \
        COUNT("intermediate_size", inner), KEY("hidden_act", ACTIVATION, activation, 0, 0, false),                     \
        REAL("layer_norm_eps", epsilon, 1), REAL("hidden_dropout_prob", dropout, 1),                                   \
        REAL("attention_probs_dropout_prob", attention_dropout, 1), REAL("initializer_range", initializer_range, 1e3)
#define IMAGE_KEYS SIDE("image_size", image), SIDE("patch_size", patch), COUNT("num_channels", image_channels)

/* ---- Defaults of base models ---- */

#define BASE .channels = 768, .layers = 12, .heads = 12, .inner = 3072, .initializer_range = .02, .labels = 2
#define BASE_OF_TEXT BASE, .dropout = .1, .embedding_dropout = .1, .attention_dropout = .1
#define BASE_OF_IMAGES                                                                                                 \
    BASE, .epsilon = 1e-12, .activation = SLC_ACTIVATION_GELU_ERF, .image = 224, .patch = 16, .image_channels = 3

/* ---- Parameters ---- */

#define ONE(place, name, when)                                                                                         \
    {                                                                                                                  \
        SLC_##place, name, SLC_PARAM_##when                                                                            \
    }
/* A weight and its bias. */
#define PAIR(place, name, when) ONE(place##_WEIGHT, name ".weight", when), ONE(place##_BIAS, name ".bias", when)
/* A PAIR whose weight is always there; only the bias has a condition. */
#define LINEAR(place, name, when) ONE(place##_WEIGHT, name ".weight", ALWAYS), ONE(place##_BIAS, name ".bias", when)
#define END                                                                                                            \
    {                                                                                                                  \
        0                                                                                                              \
    }

#define IMAGE_BLOCK_END                                                                                                \
    PAIR(PROJECTION, "attention.output.dense", ALWAYS), PAIR(FC, "intermediate.dense", ALWAYS),                        \
        PAIR(MLP, "output.dense", ALWAYS), PAIR(NORM1, "layernorm_before", ALWAYS),                                    \
        PAIR(NORM2, "layernorm_after", ALWAYS), END

/* ---- Sizes. Small ones work on bytes (BERT: and its special tokens), or on small grey images. ---- */

#define SMALL_TEXT(extent, vocabulary)                                                                                 \
    {"nano", 4, 64, 4, extent, vocabulary},                                                                            \
    {                                                                                                                  \
        "mini", 6, 192, 6, 2 * (extent), vocabulary                                                                    \
    }
#define SMALL_IMAGES                                                                                                   \
    {"nano", 4, 64, 4, 16, 4},                                                                                         \
    {                                                                                                                  \
        "mini", 6, 192, 6, 32, 4                                                                                       \
    }
