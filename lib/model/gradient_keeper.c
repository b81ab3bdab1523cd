/* Keeping is a conversion to fp32, in stream order, so that a GPU can do it. Values are left as they are; if they
 * are bf16, their rounding is written once more, as every optimizer of mixed precision must.
 * golden_models_test.c covers this file. */
#include "lib/model/gradient_keeper.h"

#include "lib/kernels/convert/convert.h"

static sluice_status keep_gradient(const sluice_update *u, void *context)
{
    (void)context;
    sluice_status status = slc_convert(u->stream, u->gradient_dtype, u->gradient, SLUICE_FP32, u->state[0], u->count);
    if (status || !u->rounded) return status;
    return slc_convert(u->stream, SLUICE_FP32, u->value, SLUICE_BF16, u->rounded, u->count);
}

const sluice_optimizer slc_gradient_keeper = {.struct_size = sizeof(sluice_optimizer),
                                              .name = "keeper",
                                              .state_count = 1,
                                              .state_name = {"gradient"},
                                              .update = keep_gradient,
                                              .mixed_precision = true,
                                              .on_stream = true};
