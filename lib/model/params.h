/* The models' parameters as a table: Hugging Face's names, shapes, first values. Registration, first values and weight
 * files walk it in registration order: the parameters of the embedding, then of the blocks, then of the head. */
#pragma once

#include "lib/weights/family.h"

#include <sluice/model.h>

typedef enum { SLC_LAYER_EMBED, SLC_LAYER_BLOCK, SLC_LAYER_HEAD } slc_layer_kind;
typedef enum { SLC_FIRST_ZERO, SLC_FIRST_ONE, SLC_FIRST_NORMAL, SLC_FIRST_RESIDUAL, SLC_FIRST_SCALE } slc_first_value;

enum { SLC_PARAM_NAME_BYTES = 96 };

typedef struct {
    slc_param_place place;
    slc_layer_kind layer;
    uint32_t block;                       /* valid with SLC_LAYER_BLOCK */
    char name[SLC_PARAM_NAME_BYTES];      /* name inside its layer */
    char full_name[SLC_PARAM_NAME_BYTES]; /* Hugging Face's name in the model with its head */
    uint32_t rank;
    uint64_t shape[4], count;
    slc_first_value first;
    bool no_decay; /* no weight decay: vectors (biases, norms, tokens) */
} slc_param_info;

/* Fills *out with the index-th parameter of the model; returns false after the last one. */
bool slc_param_info_at(const sluice_model_config *config, uint32_t index, slc_param_info *out);

/* Hugging Face's prefix of all but the head: "transformer.", "bert.", ... */
const char *slc_model_prefix(sluice_model_family family);

/* A second name under which files may have a parameter of a head of tokens that shares it, full as full_name; NULL:
 * there is none. */
const char *slc_param_second_name(const sluice_model_config *config, slc_param_place place);

/* A caller's configuration as this build knows it, and back into a caller's. Errors: as slc_sized_check. */
sluice_status slc_model_config_take(const sluice_model_config *given, sluice_model_config *out);
sluice_status slc_model_config_give(const sluice_model_config *made, sluice_model_config *out);

static inline uint32_t slc_model_patches(const sluice_model_config *c)
{
    uint32_t side = c->patch_size ? c->image_size / c->patch_size : 0;
    return side * side;
}

/* Rows of the table of positions of a model of text. Those before the last `context` are read by no token. */
static inline uint32_t slc_model_position_rows(const sluice_model_config *c)
{
    return c->context + (slc_family_of(c->family)->positions_after_padding ? c->padding + 1 : 0);
}

static inline bool slc_model_sees(const sluice_model_config *c)
{
    return slc_family_of(c->family)->sees;
}
