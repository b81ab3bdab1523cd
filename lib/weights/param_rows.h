/* The parameters of a family as rows: the place of each in the computation, its name in Hugging Face's files, and which
 * models have it. lib/model/params.h gives them shapes and first values. */
#pragma once

/* The role of a parameter in its layer's computation; 0 is none. A weight's bias is the next place. */
typedef enum {
    SLC_NO_PARAM,
    /* embed */
    SLC_TOKEN_TABLE,
    SLC_POSITION_TABLE,
    SLC_TYPE_TABLE,
    SLC_EMBED_NORM_WEIGHT,
    SLC_EMBED_NORM_BIAS,
    SLC_CLS_TOKEN,
    SLC_MASK_TOKEN,
    SLC_PATCH_WEIGHT,
    SLC_PATCH_BIAS,
    /* block */
    SLC_NORM1_WEIGHT,
    SLC_NORM1_BIAS,
    SLC_QKV_WEIGHT,
    SLC_QKV_BIAS,
    SLC_QUERY_WEIGHT,
    SLC_QUERY_BIAS,
    SLC_KEY_WEIGHT,
    SLC_KEY_BIAS,
    SLC_VALUE_WEIGHT,
    SLC_VALUE_BIAS,
    SLC_PROJECTION_WEIGHT,
    SLC_PROJECTION_BIAS,
    SLC_NORM2_WEIGHT,
    SLC_NORM2_BIAS,
    SLC_FC_WEIGHT,
    SLC_FC_BIAS,
    SLC_MLP_WEIGHT,
    SLC_MLP_BIAS,
    SLC_SCALE1,
    SLC_SCALE2,
    SLC_RELATIVE_TABLE,
    /* head */
    SLC_TRUNK_NORM_WEIGHT, /* comes before the dense layer of a head that has one */
    SLC_TRUNK_NORM_BIAS,
    SLC_TRANSFORM_WEIGHT,
    SLC_TRANSFORM_BIAS,
    SLC_HEAD_NORM_WEIGHT,
    SLC_HEAD_NORM_BIAS,
    SLC_DECODER_WEIGHT, /* GPT-2 and BERT use the token table instead */
    SLC_DECODER_BIAS,
    SLC_PARAM_PLACES
} slc_param_place;

/* The condition, on a model's configuration, under which models of the family have the parameter. */
typedef enum {
    SLC_PARAM_ALWAYS,
    SLC_PARAM_TOKEN_HEAD,
    SLC_PARAM_CLASS_HEAD,
    SLC_PARAM_TYPES,
    SLC_PARAM_QKV_BIAS,
    SLC_PARAM_MASK,
    SLC_PARAM_ABSOLUTE,
    SLC_PARAM_OWN_RELATIVE,
    SLC_PARAM_SHARED_RELATIVE,
    SLC_PARAM_SCALES,
    SLC_PARAM_MEAN_POOLING,
    SLC_PARAM_FIRST_POOLING
} slc_param_condition;

/* A list of rows ends with SLC_NO_PARAM. */
typedef struct {
    slc_param_place place;
    /* The name after the family's prefix and, in a block, the block's; a name that begins with "!" is whole, without
     * prefix. */
    const char *name;
    slc_param_condition when;
} slc_param_row;
