/* tests/device/gpu_memory_test.c covers this file. */
#include "lib/engine/making/device.h"

#include "lib/base/status.h"
#include "lib/device/alone.h"
#include "lib/engine/making/base_block.h"
#include "lib/engine/runtime.h"
#include "lib/optim/optimizers.h"

#include <string.h>

static sluice_status check_sums(const sluice_runtime *rt)
{
    if (rt->config.sums == SLUICE_SUMS_ORDERED || slc_device_runs_ahead(rt->device)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "device \"%s\": sums are made in rank order; sums nccl is for the transport nccl, on device cuda",
                     rt->config.device);
}

/* Refuses settings that a GPU cannot serve: tied split, because the host reads the lists of rows, and optimizers
 * without kernels. */
static sluice_status check_settings(const sluice_runtime *rt)
{
    const sluice_config *c = &rt->config;
    if (c->tied == SLUICE_TIED_SPLIT)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "device \"%s\": tied split gathers rows on the host; use tied joint, or device cpu",
                         c->device);
    const slc_optimizer_row *row = c->optimizer ? NULL : slc_optimizer_find(c->optimizer_name);
    char names[SLC_OPTIMIZER_NAMES_BYTES];
    if (row && !row->on_gpu)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "device \"%s\": optimizer %s has no kernels for a GPU; use %s, or device cpu", c->device,
                         row->name, slc_optimizer_names(SLC_OPTIMIZERS_ON_GPU, names));
    return SLUICE_OK;
}

sluice_status slc_engine_open_device(sluice_runtime *rt)
{
    sluice_status status = slc_device_open(rt->config.device, &rt->device);
    if (!status && sluice_world_local_size(rt->world) == 1) slc_device_keep_alone(rt->device);
    if (!status) status = slc_error_context(slc_comm_choose(rt->comm, rt->device), "device \"%s\"", rt->config.device);
    if (!status) status = check_sums(rt);
    rt->planning.block_is_open = !rt->config.block_bytes;
    if (!status && !rt->config.block_bytes) rt->config.block_bytes = slc_engine_default_block(rt);
    return status || !slc_device_runs_ahead(rt->device) ? status : check_settings(rt);
}

sluice_status slc_engine_check_optimizer_device(const sluice_runtime *rt)
{
    const sluice_optimizer *o = &rt->optimizer;
    if (!slc_device_runs_ahead(rt->device)) return SLUICE_OK;
    if (!o->on_stream)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "device \"%s\": optimizer %s works on host memory; give one whose on_stream is set, or use "
                         "device cpu",
                         rt->config.device, o->name);
    if (!o->mixed_precision || o->agreed)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "device \"%s\": optimizer %s %s, which is for the host; use device cpu", rt->config.device,
                         o->name, o->agreed ? "wants to be told of norms (agreed)" : "lacks mixed_precision");
    return SLUICE_OK;
}
