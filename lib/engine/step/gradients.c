/* The gradients of a backward slot: padding and rows are zeroed at its beginning, and at its end every gradient to
 * which nobody has added. tests/calls/engine_contract_test.c covers this file. */
#include "lib/engine/step/gradients.h"

#include "lib/engine/check/check.h"
#include "lib/engine/model/unit.h"
#include "lib/engine/rows/look_up.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/left_out.h"

/* Zeroes the elements of a gradient that belong to no parameter, so that they neither count in a norm nor are NaN. */
static sluice_status zero_padding(sluice_runtime *rt, uint32_t u)
{
    const slc_unit_state *unit = &rt->units[u];
    sluice_status status = SLUICE_OK;
    for (uint32_t p = 0; !status && p < unit->param_count; p++) {
        uint64_t end = unit->params[p]->first + unit->params[p]->count;
        uint64_t next = p + 1 < unit->param_count ? unit->params[p + 1]->first : rt->job.units[u].elements;
        if (next > end)
            status = slc_fill_zero(&rt->compute, slc_element(unit->gradient, unit->gradient_dtype, end),
                                   sluice_dtype_bytes(unit->gradient_dtype) * (next - end));
    }
    return status;
}

sluice_status slc_gradients_begin(sluice_runtime *rt, const sluice_layer *layer, const slc_item *item,
                                  uint32_t micro_batch)
{
    for (uint32_t i = 0; i < layer->unit_count; i++) {
        uint32_t u = layer->units[i], first, last;
        sluice_status status = rt->units[u].look_up ? slc_look_up_begin_gradient(rt, u) : SLUICE_OK;
        if (status) return status;
        if (!rt->job.each && micro_batch) continue;
        if (!rt->job.units[u].trainable || slc_left_out_unit(rt, &rt->steps[rt->train.parity], u)) continue;
        slc_unit_gradient_slots(&rt->job, &rt->job.units[u], &first, &last);
        if (first != item->slot) continue;
        for (uint32_t p = 0; p < rt->units[u].param_count; p++) rt->units[u].params[p]->fresh = true;
        if (rt->check && rt->units[u].param_count)
            slc_check_fill(rt->units[u].gradient,
                           sluice_dtype_bytes(rt->units[u].gradient_dtype) * rt->job.units[u].elements);
        if (rt->units[u].param_count) status = zero_padding(rt, u);
        if (status) return status;
    }
    return SLUICE_OK;
}

/* A gradient that nobody added to is zero. */
sluice_status slc_gradients_end(sluice_runtime *rt, const sluice_layer *layer, const slc_item *item,
                                uint32_t micro_batch)
{
    for (uint32_t i = 0; i < layer->unit_count; i++) {
        uint32_t u = layer->units[i], first, last;
        sluice_status ended = rt->units[u].look_up ? slc_look_up_end_gradient(rt, u, micro_batch) : SLUICE_OK;
        if (ended) return ended;
        if (!rt->job.each && item->micro_batch + 1 != rt->job.micro_batches) continue;
        if (!rt->job.units[u].trainable || slc_left_out_unit(rt, &rt->steps[rt->train.parity], u)) continue;
        slc_unit_gradient_slots(&rt->job, &rt->job.units[u], &first, &last);
        for (uint32_t p = 0; last == item->slot && p < rt->units[u].param_count; p++) {
            sluice_param *param = rt->units[u].params[p];
            if (!param->fresh) continue;
            param->fresh = false;
            const slc_unit_state *unit = &rt->units[u];
            sluice_status status =
                slc_fill_zero(&rt->compute, slc_element(unit->gradient, unit->gradient_dtype, param->first),
                              sluice_dtype_bytes(unit->gradient_dtype) * param->count);
            if (status) return status;
        }
    }
    return SLUICE_OK;
}
