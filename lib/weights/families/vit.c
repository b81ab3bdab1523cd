/* ViT. Keys and defaults: transformers' ViTConfig.
 * lib/model/golden_models_test.c covers this file. */
#include "lib/weights/families/rows.h"

static const slc_config_key keys[] = {ENCODER_KEYS, IMAGE_KEYS, FLAG("qkv_bias", qkv_bias), END};

static const slc_param_row embed[] = {ONE(CLS_TOKEN, "embeddings.cls_token", ALWAYS),
                                      ONE(POSITION_TABLE, "embeddings.position_embeddings", ALWAYS),
                                      PAIR(PATCH, "embeddings.patch_embeddings.projection", ALWAYS), END};
static const slc_param_row block[] = {LINEAR(QUERY, "attention.attention.query", QKV_BIAS),
                                      LINEAR(KEY, "attention.attention.key", QKV_BIAS),
                                      LINEAR(VALUE, "attention.attention.value", QKV_BIAS), IMAGE_BLOCK_END};
static const slc_param_row head[] = {PAIR(HEAD_NORM, "layernorm", ALWAYS), PAIR(DECODER, "!classifier", ALWAYS), END};
static const char *const dropped[] = {"pooler.dense.*", NULL};

static const slc_family_size sizes[] = {SMALL_IMAGES,
                                        {"tiny", 12, 192, 3, 224, 16},
                                        {"small", 12, 384, 6, 224, 16},
                                        {"base", 12, 768, 12, 224, 16},
                                        {"large", 24, 1024, 16, 224, 16},
                                        {"huge", 32, 1280, 16, 224, 14},
                                        END};

const slc_family slc_family_vit = {
    .name = "vit",
    .sees = true,
    .absolute_positions = true,
    .prefix = "vit.",
    .blocks = "encoder.layer.",
    .embed = embed,
    .block = block,
    .head = head,
    .norm_of_trunk = true,
    .drawn_cls = true,
    .classes = {[SLUICE_HEAD_CLASSES] = "ViTForImageClassification"},
    .trunk = "ViTModel",
    .keys = keys,
    .base = {BASE_OF_IMAGES, .qkv_bias = true},
    .dropped = dropped,
    .chooses_qkv_bias = true,
    .image_processor = "ViTImageProcessor",
    .resample = 2,
    .sizes = sizes,
};
