/* GPT-2's parameters as a table: names, shapes, first values. Registration, initialisation and the reference walk it,
 * all in registration order: wte, wpe, the blocks', ln_f's. */
#ifndef SLC_MODEL_GPT2_PARAMS_H
#define SLC_MODEL_GPT2_PARAMS_H

#include <sluice/model.h>
#include <stdbool.h>

typedef enum {
    SLC_GPT2_LN1_GAMMA,
    SLC_GPT2_LN1_BETA,
    SLC_GPT2_QKV_WEIGHT,
    SLC_GPT2_QKV_BIAS,
    SLC_GPT2_PROJECTION_WEIGHT,
    SLC_GPT2_PROJECTION_BIAS,
    SLC_GPT2_LN2_GAMMA,
    SLC_GPT2_LN2_BETA,
    SLC_GPT2_FC_WEIGHT,
    SLC_GPT2_FC_BIAS,
    SLC_GPT2_MLP_WEIGHT,
    SLC_GPT2_MLP_BIAS,
    SLC_GPT2_BLOCK_PARAMS
} slc_gpt2_block_param;

typedef enum { SLC_GPT2_ZERO, SLC_GPT2_ONE, SLC_GPT2_NORMAL, SLC_GPT2_RESIDUAL } slc_gpt2_first_value;

typedef struct {
    const char *name; /* inside its layer */
    uint64_t count;
    slc_gpt2_first_value first;
    bool no_decay; /* biases and norms */
} slc_gpt2_param_info;

/* Parameters outside the blocks: the first two before them, the others behind. */
enum { SLC_GPT2_WTE, SLC_GPT2_WPE, SLC_GPT2_LNF_GAMMA, SLC_GPT2_LNF_BETA };

slc_gpt2_param_info slc_gpt2_block_param_info(const sluice_gpt2_config *config, slc_gpt2_block_param which);
slc_gpt2_param_info slc_gpt2_outer_param_info(const sluice_gpt2_config *config, int which);

/* The index-th parameter of the whole model, and their number. */
uint32_t slc_gpt2_param_total(const sluice_gpt2_config *config);
slc_gpt2_param_info slc_gpt2_param_info_at(const sluice_gpt2_config *config, uint32_t index);

#endif
