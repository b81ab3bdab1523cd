/* A block adds two branches to the residual stream, so a step without it is one in which both are 0: the block above
 * reads what the block below has written, and what is left in the mean is right if kept branches are scaled. */
#include "lib/model/blocks/kept_blocks.h"

#include "lib/base/status.h"

#include <math.h>

sluice_status slc_kept_blocks_check_family(const sluice_model_config *config)
{
    const char *name = slc_family_of(config->family)->name;
    if (!slc_family_of(config->family)->norms_after) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "%s: blocks cannot be left out, because its norms come after the branches: a norm rescales the "
                     "stream itself, so that a block whose branches are 0 still changes it; take gpt2, vit, beit or "
                     "roberta-prelayernorm",
                     name);
}

static sluice_status check_types(const sluice_model *m, uint32_t number)
{
    const slc_model_layer *layer = &m->layers[number];
    if (layer->below == layer->dtype && layer[1].below == layer[1].dtype) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "layer \"%s\" is left out, but layers next to it have another precision, which it would convert; "
                     "give the embedding, all blocks and the head one precision",
                     layer->name);
}

sluice_status slc_kept_blocks_check(const sluice_model *m)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 1; !status && i + 1 < m->layer_count; i++) {
        if (sluice_layer_runs(m->layers[i].layer)) continue;
        status = slc_kept_blocks_check_family(&m->config);
        if (!status) status = check_types(m, i);
    }
    return status;
}

const sluice_layer *sluice_model_block(const sluice_model *m, uint32_t block)
{
    return m && block < m->config.layers ? m->layers[1 + block].layer : NULL;
}

sluice_status sluice_model_scale_branches(sluice_model *m, uint32_t block, double factor)
{
    if (!m) return slc_error(SLUICE_ERR_ARGUMENT, "model_scale_branches: no model given");
    const char *name = slc_family_of(m->config.family)->name;
    if (!m->scales_branches)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "model_scale_branches: %s was made without sluice_model_options.scales_branches", name);
    if (block >= m->config.layers)
        return slc_error(SLUICE_ERR_ARGUMENT, "model_scale_branches: block %u; %s has %u, from 0", block, name,
                         m->config.layers);
    if (!((float)factor > 0) || !isfinite((float)factor))
        return slc_error(SLUICE_ERR_ARGUMENT, "model_scale_branches: block %u by %g; give a number above 0", block,
                         factor);
    m->layers[1 + block].factor = (float)factor;
    return SLUICE_OK;
}
