/* A row for each family of sluice/model.h. Its papers and transformers' classes are named there. Tested by
 * tests/golden and lib/model/golden_test.c, which compare what all of them compute with transformers.
 * config_test.c covers this file. */
#include "lib/weights/family.h"

static const slc_family rows[SLUICE_MODEL_FAMILIES] = {
    [SLUICE_GPT2] = {.name = "gpt2",
                     .tokens = true,
                     .causal = true,
                     .gelu_tanh = true,
                     .epsilon = 1e-5,
                     .inputs_first = true,
                     .shares_table = true,
                     .norm_of_trunk = true,
                     .scaled_residual = true,
                     .inner_follows = true,
                     .own_embedding_dropout = true},
    [SLUICE_BERT] = {.name = "bert",
                     .tokens = true,
                     .classes = true,
                     .types = 2,
                     .padding = true,
                     .frames = true,
                     .masks = true,
                     .norms_after = true,
                     .epsilon = 1e-12,
                     .dense_heads = true,
                     .shares_table = true,
                     .own_classifier_dropout = true},
    [SLUICE_VIT] = {.name = "vit",
                    .classes = true,
                    .sees = true,
                    .epsilon = 1e-12,
                    .absolute_positions = true,
                    .norm_of_trunk = true,
                    .drawn_cls = true,
                    .chooses_qkv_bias = true,
                    .image_processor = "ViTImageProcessor",
                    .resample = 2},
    [SLUICE_BEIT] = {.name = "beit",
                     .tokens = true,
                     .classes = true,
                     .sees = true,
                     .epsilon = 1e-12,
                     .mean_pooling = true,
                     .image_processor = "BeitImageProcessor",
                     .resample = 3},
};

const slc_family *slc_family_of(sluice_model_family family)
{
    static const slc_family none = {0};
    return (uint32_t)family < SLUICE_MODEL_FAMILIES ? &rows[family] : &none;
}
