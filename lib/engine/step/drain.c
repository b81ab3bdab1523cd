/* Draining: everything that a step has begun is applied, and its verdict told. */
#include "lib/engine/runtime.h"

bool slc_agrees_late(const sluice_runtime *rt)
{
    return rt->current.plan->train.items[rt->agreement.item].late;
}

sluice_status slc_runtime_drain(sluice_runtime *rt)
{
    bool pending = slc_pass_pending(&rt->train);
    sluice_status status = slc_pass_drain(rt, &rt->train);
    if (!status && pending && slc_agrees_late(rt))
        status = slc_engine_check_finite(rt, &rt->steps[rt->train.parity ^ 1]);
    if (!status) status = slc_runtime_alike(rt, slc_engine_check_exchanges(rt));
    return slc_runtime_fail(rt, status);
}
