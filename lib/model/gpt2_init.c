/* GPT-2's first values. Each parameter is a stream of its own of the counter-based generator, drawn in pieces that fit
 * the cache, so that a model of any size needs no memory of its own. */
#include "lib/base/random.h"
#include "lib/model/gpt2.h"

#include <math.h>

enum { PIECE = 16384 };

static sluice_param *param_at(const sluice_gpt2 *m, uint32_t index)
{
    uint32_t in_blocks = m->config.layers * SLC_GPT2_BLOCK_PARAMS;
    if (index == 0) return m->embed.wte;
    if (index == 1) return m->embed.wpe;
    index -= 2;
    if (index < in_blocks) return m->blocks[index / SLC_GPT2_BLOCK_PARAMS].param[index % SLC_GPT2_BLOCK_PARAMS];
    return index == in_blocks ? m->head.gamma : m->head.beta;
}

static void draw(const sluice_gpt2 *m, slc_gpt2_first_value kind, uint64_t seed, uint32_t stream, uint64_t first,
                 uint32_t count, float *out)
{
    if (kind == SLC_GPT2_ZERO || kind == SLC_GPT2_ONE) {
        for (uint32_t i = 0; i < count; i++) out[i] = kind == SLC_GPT2_ONE;
        return;
    }
    float deviation = 0.02f;
    if (kind == SLC_GPT2_RESIDUAL) deviation = (float)(0.02 / sqrt(2.0 * m->config.layers));
    slc_random_normal(seed, stream, first, count, out);
    for (uint32_t i = 0; i < count; i++) out[i] *= deviation;
}

sluice_status sluice_gpt2_init(sluice_gpt2 *m, uint64_t seed)
{
    float piece[PIECE];
    for (uint32_t index = 0; index < slc_gpt2_param_total(&m->config); index++) {
        slc_gpt2_param_info info = slc_gpt2_param_info_at(&m->config, index);
        for (uint64_t first = 0; first < info.count; first += PIECE) {
            uint32_t count = info.count - first < PIECE ? (uint32_t)(info.count - first) : PIECE;
            draw(m, info.first, seed, index, first, count, piece);
            sluice_status status = sluice_param_write(param_at(m, index), first, count, piece);
            if (status) return status;
        }
    }
    return SLUICE_OK;
}
