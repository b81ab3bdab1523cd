/* BEiT. Keys and defaults: transformers' BeitConfig.
 * lib/model/golden_models_test.c covers this file. */
#include "lib/weights/families/rows.h"

static const slc_config_key keys[] = {
    ENCODER_KEYS,
    COUNT("vocab_size", vocabulary),
    IMAGE_KEYS,
    FLAG("use_mask_token", mask_token),
    FLAG("use_absolute_position_embeddings", absolute_positions),
    FLAG("use_relative_position_bias", relative_bias),
    FLAG("use_shared_relative_position_bias", shared_relative_bias),
    FLAG("use_mean_pooling", mean_pooling),
    REAL("layer_scale_init_value", layer_scale, 1e3),
    REAL("drop_path_rate", drop_path_rate, 1),
    END,
};

static const slc_param_row embed[] = {
    ONE(CLS_TOKEN, "embeddings.cls_token", ALWAYS),
    ONE(MASK_TOKEN, "embeddings.mask_token", MASK),
    ONE(POSITION_TABLE, "embeddings.position_embeddings", ABSOLUTE),
    PAIR(PATCH, "embeddings.patch_embeddings.projection", ALWAYS),
    ONE(RELATIVE_TABLE, "encoder.relative_position_bias.relative_position_bias_table", SHARED_RELATIVE),
    END};
static const slc_param_row block[] = {
    ONE(SCALE1, "lambda_1", SCALES),
    ONE(SCALE2, "lambda_2", SCALES),
    LINEAR(QUERY, "attention.attention.query", QKV_BIAS),
    ONE(KEY_WEIGHT, "attention.attention.key.weight", ALWAYS),
    LINEAR(VALUE, "attention.attention.value", QKV_BIAS),
    ONE(RELATIVE_TABLE, "attention.attention.relative_position_bias.relative_position_bias_table", OWN_RELATIVE),
    IMAGE_BLOCK_END};
static const slc_param_row head[] = {
    PAIR(HEAD_NORM, "!layernorm", TOKEN_HEAD),         PAIR(DECODER, "!lm_head", TOKEN_HEAD),
    PAIR(HEAD_NORM, "pooler.layernorm", MEAN_POOLING), PAIR(HEAD_NORM, "layernorm", FIRST_POOLING),
    PAIR(DECODER, "!classifier", CLASS_HEAD),          END};
static const char *const dropped[] = {
    "encoder.relative_position_bias.relative_position_index",
    "encoder.layer.#.attention.attention.relative_position_bias.relative_position_index", NULL};

static const slc_family_size sizes[] = {
    SMALL_IMAGES, {"base", 12, 768, 12, 224, 16}, {"large", 24, 1024, 16, 224, 16}, END};

const slc_family slc_family_beit = {
    .name = "beit",
    .sees = true,
    .mean_pooling = true,
    .prefix = "beit.",
    .blocks = "encoder.layer.",
    .embed = embed,
    .block = block,
    .head = head,
    .classes =
        {[SLUICE_HEAD_TOKENS] = "BeitForMaskedImageModeling", [SLUICE_HEAD_CLASSES] = "BeitForImageClassification"},
    .trunk = "BeitModel",
    .keys = keys,
    .base = {BASE_OF_IMAGES, .vocabulary = 8192, .mean_pooling = true, .layer_scale = .1, .drop_path_rate = .1},
    .dropped = dropped,
    .image_processor = "BeitImageProcessor",
    .resample = 3,
    .sizes = sizes,
};
