/* The table of GPT-2's parameters and of its sizes. */
#include "lib/model/gpt2_params.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    uint32_t vectors, squares; /* count = vectors * channels + squares * channels^2 */
    slc_gpt2_first_value first;
} block_row;

static const block_row block_rows[SLC_GPT2_BLOCK_PARAMS] = {
    [SLC_GPT2_LN1_GAMMA] = {"ln_1.weight", 1, 0, SLC_GPT2_ONE},
    [SLC_GPT2_LN1_BETA] = {"ln_1.bias", 1, 0, SLC_GPT2_ZERO},
    [SLC_GPT2_QKV_WEIGHT] = {"attn.c_attn.weight", 0, 3, SLC_GPT2_NORMAL},
    [SLC_GPT2_QKV_BIAS] = {"attn.c_attn.bias", 3, 0, SLC_GPT2_ZERO},
    [SLC_GPT2_PROJECTION_WEIGHT] = {"attn.c_proj.weight", 0, 1, SLC_GPT2_RESIDUAL},
    [SLC_GPT2_PROJECTION_BIAS] = {"attn.c_proj.bias", 1, 0, SLC_GPT2_ZERO},
    [SLC_GPT2_LN2_GAMMA] = {"ln_2.weight", 1, 0, SLC_GPT2_ONE},
    [SLC_GPT2_LN2_BETA] = {"ln_2.bias", 1, 0, SLC_GPT2_ZERO},
    [SLC_GPT2_FC_WEIGHT] = {"mlp.c_fc.weight", 0, 4, SLC_GPT2_NORMAL},
    [SLC_GPT2_FC_BIAS] = {"mlp.c_fc.bias", 4, 0, SLC_GPT2_ZERO},
    [SLC_GPT2_MLP_WEIGHT] = {"mlp.c_proj.weight", 0, 4, SLC_GPT2_RESIDUAL},
    [SLC_GPT2_MLP_BIAS] = {"mlp.c_proj.bias", 1, 0, SLC_GPT2_ZERO},
};

static const struct {
    const char *name;
    sluice_gpt2_config config;
} sizes[] = {
    {"nano", {.layers = 4, .channels = 64, .heads = 4, .context = 128, .vocabulary = 256}},
    {"mini", {.layers = 6, .channels = 192, .heads = 6, .context = 256, .vocabulary = 256}},
    {"small", {.layers = 12, .channels = 768, .heads = 12, .context = 1024, .vocabulary = 50257}},
    {"medium", {.layers = 24, .channels = 1024, .heads = 16, .context = 1024, .vocabulary = 50257}},
    {"large", {.layers = 36, .channels = 1280, .heads = 20, .context = 1024, .vocabulary = 50257}},
    {"xl", {.layers = 48, .channels = 1600, .heads = 25, .context = 1024, .vocabulary = 50257}},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

const char *sluice_gpt2_size_name(uint32_t index)
{
    return index < SIZES ? sizes[index].name : NULL;
}

sluice_status sluice_gpt2_config_named(const char *size, sluice_gpt2_config *out)
{
    char names[128] = "";
    for (size_t i = 0; i < SIZES; i++) {
        if (size && !strcmp(size, sizes[i].name)) {
            *out = sizes[i].config;
            return SLUICE_OK;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", sizes[i].name);
    }
    return slc_error(SLUICE_ERR_ARGUMENT, "gpt2 has no size \"%s\"; choose one of %s", size ? size : "", names);
}

slc_gpt2_param_info slc_gpt2_block_param_info(const sluice_gpt2_config *config, slc_gpt2_block_param which)
{
    const block_row *row = &block_rows[which];
    uint64_t channels = config->channels;
    return (slc_gpt2_param_info){
        .name = row->name,
        .count = row->vectors * channels + row->squares * channels * channels,
        .first = row->first,
        .no_decay = row->squares == 0,
    };
}

slc_gpt2_param_info slc_gpt2_outer_param_info(const sluice_gpt2_config *config, int which)
{
    uint64_t channels = config->channels;
    switch (which) {
    case SLC_GPT2_WTE:
        return (slc_gpt2_param_info){"wte.weight", config->vocabulary * channels, SLC_GPT2_NORMAL, false};
    case SLC_GPT2_WPE: return (slc_gpt2_param_info){"wpe.weight", config->context * channels, SLC_GPT2_NORMAL, false};
    case SLC_GPT2_LNF_GAMMA: return (slc_gpt2_param_info){"ln_f.weight", channels, SLC_GPT2_ONE, true};
    default: return (slc_gpt2_param_info){"ln_f.bias", channels, SLC_GPT2_ZERO, true};
    }
}

uint32_t slc_gpt2_param_total(const sluice_gpt2_config *config)
{
    return 4 + config->layers * SLC_GPT2_BLOCK_PARAMS;
}

slc_gpt2_param_info slc_gpt2_param_info_at(const sluice_gpt2_config *config, uint32_t index)
{
    uint32_t in_blocks = config->layers * SLC_GPT2_BLOCK_PARAMS;
    if (index < 2) return slc_gpt2_outer_param_info(config, (int)index);
    if (index - 2 < in_blocks) return slc_gpt2_block_param_info(config, (index - 2) % SLC_GPT2_BLOCK_PARAMS);
    return slc_gpt2_outer_param_info(config, (int)(index - in_blocks));
}

uint64_t sluice_gpt2_param_count(const sluice_gpt2_config *config)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < slc_gpt2_param_total(config); i++) total += slc_gpt2_param_info_at(config, i).count;
    return total;
}
