/* Fields of a model's configuration and of its files' (config.json, the header of an llm.c checkpoint).
 * weights_test.c covers this file. */
#include "lib/model/weights/weights_parts.h"

#include "lib/model/params.h"

void slc_model_config_from_file(const slc_config *c, sluice_model_config *out)
{
    const slc_family *family = slc_family_of(c->family);
    *out = (sluice_model_config){
        .struct_size = sizeof(sluice_model_config),
        .family = c->family,
        .head = c->head,
        .layers = c->layers,
        .channels = c->channels,
        .heads = c->heads,
        .hidden = c->inner,
        .vocabulary = c->head == SLUICE_HEAD_TOKENS || c->positions ? c->vocabulary : 0,
        .context = c->positions - (family->positions_after_padding ? c->padding + 1 : 0),
        .types = c->types,
        .padding = c->padding,
        .image_size = c->image,
        .patch_size = c->patch,
        .image_channels = c->image_channels,
        .classes = c->head == SLUICE_HEAD_CLASSES ? c->labels : 0,
        .epsilon = c->epsilon,
        .mask_token = c->mask_token,
        .absolute_positions = family->absolute_positions || c->absolute_positions,
        .relative_positions = c->relative_bias,
        .shared_positions = c->shared_relative_bias,
        .no_qkv_bias = family->chooses_qkv_bias && !c->qkv_bias,
        .first_row_pooling = family->mean_pooling && !c->mean_pooling,
        .layer_scale = c->layer_scale,
        .gelu_tanh = c->activation == SLC_ACTIVATION_GELU_TANH,
        .begin_token = c->begin_token <= c->vocabulary ? c->begin_token : 0,
        .end_token = c->end_token <= c->vocabulary ? c->end_token : 0,
    };
}

void slc_model_config_to_file(const sluice_model_config *m, slc_config *out)
{
    slc_config_defaults(m->family, m->head, out);
    out->channels = m->channels;
    out->layers = m->layers;
    out->heads = m->heads;
    out->inner = m->hidden;
    out->activation = m->gelu_tanh ? SLC_ACTIVATION_GELU_TANH : SLC_ACTIVATION_GELU_ERF;
    out->epsilon = m->epsilon;
    out->dropout = out->embedding_dropout = out->attention_dropout = out->classifier_dropout = m->dropout;
    if (m->classes) out->labels = m->classes;
    if (m->vocabulary) out->vocabulary = m->vocabulary;
    out->positions = m->context ? slc_model_position_rows(m) : 0;
    out->types = m->types;
    out->padding = m->padding;
    out->image = m->image_size;
    out->patch = m->patch_size;
    out->image_channels = m->image_channels;
    out->qkv_bias = !m->no_qkv_bias;
    out->mask_token = m->mask_token;
    out->absolute_positions = !slc_family_of(m->family)->absolute_positions && m->absolute_positions;
    out->relative_bias = m->relative_positions;
    out->shared_relative_bias = m->shared_positions;
    out->mean_pooling = !m->first_row_pooling;
    out->layer_scale = m->layer_scale;
    out->drop_path_rate = m->drop_path;
    out->begin_token = m->begin_token;
    out->end_token = m->end_token;
}
