/* lib/engine/measure/measure_link_test.c covers this file. */
#include "lib/engine/making/base_block.h"

#include "lib/base/integer.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/runtime.h"
#include "lib/plan/profile.h"

#include <stdlib.h>

enum { HOST = 1 << 20, GPU = 16 << 20, MOST = 64 << 20 };
static const uint64_t LEAST_GIVEN = 64, MOST_GIVEN = (uint64_t)1 << 32; /* as sluice_config.block_bytes */

/* On a GPU each block of an operation is a call, and its work launches of kernels, so blocks are as large as they may
 * be. A single rank moves none: one block takes any unit but the largest tables, whose blocks lie one after the other.
 */
uint64_t slc_engine_default_block(const sluice_runtime *rt)
{
    if (!slc_device_runs_ahead(rt->device)) return HOST;
    return rt->size == 1 ? MOST : GPU;
}

/* Finds the fp32 bytes of the parameters of the layer that adds most; of all parameters if the optimizer fuses them. */
static sluice_status find_longest(const sluice_runtime *rt, uint64_t *bytes)
{
    uint64_t *elements = calloc((size_t)rt->model.layer_count + 1, sizeof *elements);
    if (!elements) return slc_error(SLUICE_ERR_MEMORY, "layers");
    *bytes = 0;
    for (uint32_t i = 0; i < rt->model.param_count; i++) {
        const sluice_param *param = rt->model.params[i];
        uint64_t *of_layer = &elements[rt->compression.fuses ? 0 : param->layer];
        *of_layer += param->count;
        *bytes = slc_most(*bytes, sizeof(float) * *of_layer);
    }
    free(elements);
    return SLUICE_OK;
}

/* Takes the base block of a kept plan, whose file rank 0 has. Mistakes in it are reported later, when the plan is read.
 */
static sluice_status take_from_plan(sluice_runtime *rt)
{
    uint64_t bytes = rt->rank == 0 ? slc_plan_block_bytes(rt->planning.kept) : 0;
    sluice_status status = sluice_world_broadcast(rt->world, &bytes, sizeof bytes, 0);
    if (!status && bytes >= LEAST_GIVEN && bytes <= MOST_GIVEN) rt->config.block_bytes = bytes;
    return status;
}

/* Measures which base block suits the link. That is of use only if a layer is longer than the shortest block for a GPU:
 * shorter layers have one block each, however long blocks may be. */
static sluice_status take_from_link(sluice_runtime *rt)
{
    uint64_t longest = 0, bytes;
    sluice_status status = find_longest(rt, &longest);
    if (status || longest <= GPU) return status;
    status = slc_measure_block(rt, rt->config.precision, GPU, MOST, &bytes);
    if (status) return status;
    rt->config.block_bytes = bytes;
    if (rt->rank == 0)
        slc_log(SLC_LOG_INFO, "base block %llu MiB, by the link (--block %lluMiB repeats it)",
                (unsigned long long)(bytes >> 20), (unsigned long long)(bytes >> 20));
    return SLUICE_OK;
}

sluice_status slc_engine_choose_block(sluice_runtime *rt)
{
    if (rt->size == 1 || !slc_device_runs_ahead(rt->device)) return SLUICE_OK;
    /* Ranks vote, because one rank may be given a block or a budget that the others lack. */
    double votes[] = {!rt->planning.block_is_open, rt->config.budget_bytes > 0 || rt->config.budget_of_dp > 0};
    sluice_status status = sluice_world_all_reduce(rt->world, votes, 2);
    if (status || votes[0] > 0) return status;
    if (rt->planning.kept) return take_from_plan(rt);
    return votes[1] > 0 ? SLUICE_OK : take_from_link(rt);
}
