/* The models' first values. Each parameter has its own stream of the counter-based generator, drawn in pieces that fit
 * the cache, so that a model of any size needs no extra memory. gpt2_test.c covers this file. */
#include "lib/base/numbers/random.h"
#include "lib/model/model.h"
#include "lib/model/state.h"

#include <math.h>
#include <string.h>

enum { PIECE = 16384 };

static void draw(const sluice_model_config *c, slc_first_value kind, uint64_t seed, uint32_t stream, uint64_t first,
                 uint32_t count, float *out)
{
    if (kind != SLC_FIRST_NORMAL && kind != SLC_FIRST_RESIDUAL) {
        float value = kind == SLC_FIRST_ONE ? 1 : kind == SLC_FIRST_SCALE ? (float)c->layer_scale : 0;
        for (uint32_t i = 0; i < count; i++) out[i] = value;
        return;
    }
    float deviation = 0.02f;
    if (kind == SLC_FIRST_RESIDUAL) deviation = (float)(0.02 / sqrt(2.0 * c->layers));
    slc_random_normal(seed, stream, first, count, out);
    for (uint32_t i = 0; i < count; i++) out[i] *= deviation;
}

static sluice_status init_param(sluice_model *m, uint32_t index, const slc_param_info *info, uint64_t seed)
{
    float piece[PIECE];
    for (uint64_t first = 0; first < info->count; first += PIECE) {
        uint32_t count = info->count - first < PIECE ? (uint32_t)(info->count - first) : PIECE;
        draw(&m->config, info->first, seed, index, first, count, piece);
        sluice_status status = sluice_param_write(sluice_runtime_param(m->rt, index), first, count, piece);
        if (status) return status;
    }
    return SLUICE_OK;
}

sluice_status sluice_model_init(sluice_model *m, uint64_t seed)
{
    slc_param_info info;
    sluice_status status = m ? SLUICE_OK : slc_model_lacks("model_init", "model");
    for (uint32_t index = 0; !status && slc_param_info_at(&m->config, index, &info); index++)
        status = init_param(m, index, &info, seed);
    return status;
}

static bool is_new(const sluice_model *m, const slc_param_info *info)
{
    bool found = false;
    for (uint32_t i = 0; i < m->new_count; i++) found |= !strcmp(m->new_params[i], info->full_name);
    return found;
}

sluice_status sluice_model_init_new(sluice_model *m, uint64_t seed)
{
    slc_param_info info;
    sluice_status status = m ? SLUICE_OK : slc_model_lacks("model_init_new", "model");
    for (uint32_t index = 0; !status && m->new_count && slc_param_info_at(&m->config, index, &info); index++)
        if (is_new(m, &info)) status = init_param(m, index, &info, seed);
    return status;
}
