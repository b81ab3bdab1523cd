/* Works out the factors in double, once, and hands the range to the fast loop. */
#include "lib/kernels/adamw/adamw.h"

#include "lib/kernels/adamw/adamw_cpu.h"
#include "lib/kernels/host.h"

#include <math.h>

enum { GRAIN = 16384 };

sluice_status slc_adamw(slc_stream *stream, const slc_adamw_settings *settings, uint64_t count,
                        sluice_dtype gradient_dtype, const void *gradient, float *value, float *exp_avg,
                        float *exp_avg_sq, void *rounded)
{
    sluice_status status = slc_host_check(stream, "adamw");
    if (status) return status;
    const slc_adamw_settings *s = settings;
    slc_adamw_args args = {
        .gradient_dtype = gradient_dtype,
        .gradient = gradient,
        .rounded = rounded,
        .value = value,
        .exp_avg = exp_avg,
        .exp_avg_sq = exp_avg_sq,
        .gradient_factor = (float)s->gradient_factor,
        .beta1 = (float)s->beta1,
        .beta2 = (float)s->beta2,
        .epsilon = (float)s->epsilon,
        .rest1 = (float)(1.0 - s->beta1),
        .rest2 = (float)(1.0 - s->beta2),
        .decay = (float)(s->learning_rate * s->weight_decay),
        .step = (float)(s->learning_rate / s->bias_correction1),
        .rescale = (float)(1.0 / sqrt(s->bias_correction2)),
    };
    slc_host_run(stream, count, GRAIN, 16, SLC_ISA_PICK(slc_adamw_range), &args);
    return SLUICE_OK;
}
