/* The table of keys. Its limits are far beyond any model and far below an overflow. config_test.c covers this file. */
#include "lib/weights/config_keys.h"

#include "lib/weights/family.h"

#include <string.h>

enum {
    GPT2 = 1 << SLUICE_GPT2,
    BERT = 1 << SLUICE_BERT,
    VIT = 1 << SLUICE_VIT,
    BEIT = 1 << SLUICE_BEIT,
    IMAGES = VIT | BEIT,
    ENCODERS = BERT | VIT | BEIT,
    ALL = GPT2 | ENCODERS,
    LARGE = 1 << 24
};

#define ROW(families, key, type, field, least, most, nullable)                                                         \
    {                                                                                                                  \
        families, key, type, offsetof(slc_config, field), least, most, nullable                                        \
    }
#define COUNT(families, key, field) ROW(families, key, SLC_KEY_COUNT, field, 1, LARGE, false)
#define REAL(families, key, field, most) ROW(families, key, SLC_KEY_REAL, field, 0, most, false)
#define FLAG(families, key, field) ROW(families, key, SLC_KEY_FLAG, field, 0, 1, false)
#define SIDE(families, key, field) ROW(families, key, SLC_KEY_SIDE, field, 1, 1 << 16, false)

const slc_config_key slc_config_keys[] = {
    COUNT(GPT2, "n_embd", channels),
    COUNT(GPT2, "n_layer", layers),
    COUNT(GPT2, "n_head", heads),
    ROW(GPT2, "n_inner", SLC_KEY_COUNT, inner, 1, LARGE, true),
    COUNT(GPT2, "n_positions", positions),
    ROW(GPT2, "activation_function", SLC_KEY_ACTIVATION, activation, 0, 0, false),
    REAL(GPT2, "layer_norm_epsilon", epsilon, 1),
    REAL(GPT2, "resid_pdrop", dropout, 1),
    REAL(GPT2, "embd_pdrop", embedding_dropout, 1),
    REAL(GPT2, "attn_pdrop", attention_dropout, 1),
    COUNT(ENCODERS, "hidden_size", channels),
    COUNT(ENCODERS, "num_hidden_layers", layers),
    COUNT(ENCODERS, "num_attention_heads", heads),
    COUNT(ENCODERS, "intermediate_size", inner),
    ROW(ENCODERS, "hidden_act", SLC_KEY_ACTIVATION, activation, 0, 0, false),
    REAL(ENCODERS, "layer_norm_eps", epsilon, 1),
    REAL(ENCODERS, "hidden_dropout_prob", dropout, 1),
    REAL(ENCODERS, "attention_probs_dropout_prob", attention_dropout, 1),
    REAL(ALL, "initializer_range", initializer_range, 1e3),
    COUNT(GPT2 | BERT | BEIT, "vocab_size", vocabulary),
    COUNT(BERT, "max_position_embeddings", positions),
    COUNT(BERT, "type_vocab_size", types),
    ROW(BERT, "classifier_dropout", SLC_KEY_REAL, classifier_dropout, 0, 1, true),
    SIDE(IMAGES, "image_size", image),
    SIDE(IMAGES, "patch_size", patch),
    COUNT(IMAGES, "num_channels", image_channels),
    FLAG(VIT, "qkv_bias", qkv_bias),
    FLAG(BEIT, "use_mask_token", mask_token),
    FLAG(BEIT, "use_absolute_position_embeddings", absolute_positions),
    FLAG(BEIT, "use_relative_position_bias", relative_bias),
    FLAG(BEIT, "use_shared_relative_position_bias", shared_relative_bias),
    FLAG(BEIT, "use_mean_pooling", mean_pooling),
    REAL(BEIT, "layer_scale_init_value", layer_scale, 1e3),
    REAL(BEIT, "drop_path_rate", drop_path_rate, 1),
};
const size_t slc_config_key_count = sizeof slc_config_keys / sizeof *slc_config_keys;

/* ---- Names and defaults ---- */

static const struct {
    const char *name;
    sluice_model_family family;
} architectures[SLC_ARCHITECTURES] = {
    [SLC_GPT2_LM_HEAD_MODEL] = {"GPT2LMHeadModel", SLUICE_GPT2},
    [SLC_BERT_FOR_MASKED_LM] = {"BertForMaskedLM", SLUICE_BERT},
    [SLC_BERT_FOR_SEQUENCE_CLASSIFICATION] = {"BertForSequenceClassification", SLUICE_BERT},
    [SLC_VIT_FOR_IMAGE_CLASSIFICATION] = {"ViTForImageClassification", SLUICE_VIT},
    [SLC_BEIT_FOR_IMAGE_CLASSIFICATION] = {"BeitForImageClassification", SLUICE_BEIT},
    [SLC_BEIT_FOR_MASKED_IMAGE_MODELING] = {"BeitForMaskedImageModeling", SLUICE_BEIT},
};

const char *slc_architecture_name(slc_architecture architecture)
{
    return architectures[architecture].name;
}

sluice_model_family slc_architecture_family(slc_architecture architecture)
{
    return architectures[architecture].family;
}

void slc_config_defaults(slc_architecture architecture, slc_config *out)
{
    const sluice_model_family family = slc_architecture_family(architecture);
    const slc_family *traits = slc_family_of(family);
    const bool images = traits->sees;
    *out = (slc_config){
        .family = family,
        .architecture = architecture,
        .channels = 768,
        .layers = 12,
        .heads = 12,
        .inner = 3072,
        .activation = traits->gelu_tanh ? SLC_ACTIVATION_GELU_TANH : SLC_ACTIVATION_GELU_ERF,
        .epsilon = traits->epsilon,
        .initializer_range = .02,
        .dropout = images ? 0 : .1,
        .embedding_dropout = images ? 0 : .1,
        .attention_dropout = images ? 0 : .1,
        .labels = 2,
    };
    switch (family) { /* sizes of the family's base model */
    case SLUICE_GPT2:
        out->vocabulary = 50257;
        out->begin_token = out->end_token = 50257;
        out->positions = 1024;
        break;
    case SLUICE_BERT:
        out->vocabulary = 30522;
        out->positions = 512;
        out->types = traits->types;
        out->classifier_dropout = .1;
        break;
    default:
        out->vocabulary = traits->tokens ? 8192 : 0;
        out->image = 224;
        out->patch = 16;
        out->image_channels = 3;
        out->qkv_bias = traits->chooses_qkv_bias;
        out->mean_pooling = traits->mean_pooling;
        out->layer_scale = out->drop_path_rate = traits->absolute_positions ? 0 : .1;
    }
}
