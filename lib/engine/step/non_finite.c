/* With nan = stop a value that is not finite stops training, on every rank alike and by the layer's name.
 * tests/onebit/onebit_engine_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/agreement.h"

#include <stdlib.h>

/* Names the layer of a non-finite gradient. Every rank knows that there is one, but only its owner knows in which
 * layer, so ranks exchange what they know. */
static sluice_status name_non_finite(sluice_runtime *rt, const slc_step_state *step)
{
    uint32_t *bad = calloc((size_t)rt->size, sizeof *bad);
    if (!bad) return slc_error(SLUICE_ERR_MEMORY, "no memory to report a non-finite gradient");
    sluice_status status = sluice_world_all_gather(rt->world, &step->bad_param, sizeof *bad, bad);
    uint32_t first = SLC_NONE;
    for (int r = 0; r < rt->size; r++)
        if (bad[r] < first) first = bad[r];
    free(bad);
    if (status) return status;
    const sluice_param *param = first == SLC_NONE ? NULL : rt->model.params[first];
    const char *name = !param ? "?" : param->tied ? param->name : param->adder->name;
    const char *advice =
        rt->check ? "under SLUICE_ENGINE_CHECK that may be memory that nobody has written: an activation or workspace "
                    "that is believed to be zero, or an address of an earlier slot or step"
                  : "lower the learning rate, clip, or skip such steps (config.nan = skip)";
    rt->failure.alike = true;
    return slc_error(SLUICE_ERR_NON_FINITE, "step %llu: %s of layer \"%s\" holds NaN or infinity; %s",
                     (unsigned long long)step->step,
                     step->compressed ? "a gradient, or what is exchanged instead," : "the reduced gradient", name,
                     advice);
}

/* No agreement has told yet of an overflow in the last updates, but every rank knows of it. */
sluice_status slc_engine_check_exchanges(const sluice_runtime *rt)
{
    if (!rt->compression.on || rt->config.nan != SLUICE_NAN_STOP) return SLUICE_OK;
    const uint32_t bad = rt->compression.bad[SLC_BAD_EXCHANGE];
    if (bad == SLC_NONE) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_NON_FINITE,
        "step %llu: what was exchanged for \"%s\" holds NaN or infinity; lower the learning rate, clip, or "
        "skip such steps (config.nan = skip)",
        (unsigned long long)rt->step, rt->model.params[bad]->name);
}

sluice_status slc_engine_check_finite(sluice_runtime *rt, const slc_step_state *step)
{
    return step->non_finite && rt->config.nan == SLUICE_NAN_STOP ? name_non_finite(rt, step) : SLUICE_OK;
}
