/* Works out the factors in double, once, and hands the ranges to the fast loop. */
#include "lib/kernels/adamw/adamw.h"

#include "lib/device/cuda.h"
#include "lib/kernels/adamw/adamw_cpu.h"
#include "lib/kernels/adamw/adamw_cuda.h"
#include "lib/kernels/host.h"

#include <math.h>

enum { GRAIN = 16384 };

slc_adamw_settings slc_adamw_usual_settings(void)
{
    return (slc_adamw_settings){.learning_rate = 1e-3,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .epsilon = 1e-8,
                                .gradient_factor = 1,
                                .bias_correction1 = 1,
                                .bias_correction2 = 1};
}

slc_adamw_factors slc_adamw_factors_of(const slc_adamw_settings *settings, double learning_rate)
{
    const slc_adamw_settings *s = settings;
    return (slc_adamw_factors){
        .gradient_factor = (float)s->gradient_factor,
        .beta1 = (float)s->beta1,
        .beta2 = (float)s->beta2,
        .rest1 = (float)(1.0 - s->beta1),
        .rest2 = (float)(1.0 - s->beta2),
        .correction = (float)(learning_rate / s->bias_correction1),
        .rescale = (float)(1.0 / sqrt(s->bias_correction2)),
        .epsilon = (float)s->epsilon,
        .decay = (float)(learning_rate * s->weight_decay),
    };
}

uint64_t slc_adamw_elements(uint32_t range_count, const slc_adamw_range *ranges)
{
    uint64_t elements = 0;
    for (uint32_t i = 0; i < range_count; i++)
        elements += (ranges[i].count + SLC_ADAMW_UNIT - 1) / SLC_ADAMW_UNIT * SLC_ADAMW_UNIT;
    return elements;
}

sluice_status slc_adamw_many(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                             const slc_adamw_range *ranges)
{
    slc_adamw_args args = {slc_adamw_factors_of(settings, settings->learning_rate), ranges, range_count};
    if (SLC_ON_CUDA(stream)) return slc_adamw_cuda(stream, &args.factors, settings->words, range_count, ranges);
    sluice_status status = slc_host_check(stream, "adamw");
    if (status || !slc_adamw_heed_words(settings->words, &args.factors)) return status;
    slc_host_run(stream, slc_adamw_elements(range_count, ranges), GRAIN, SLC_ADAMW_UNIT, SLC_ISA_PICK(slc_adamw_ranges),
                 &args);
    return SLUICE_OK;
}

sluice_status slc_adamw(sluice_stream *stream, const slc_adamw_settings *settings, uint64_t count,
                        sluice_dtype gradient_dtype, const void *gradient, float *value, float *exp_avg,
                        float *exp_avg_sq, void *rounded)
{
    const slc_adamw_range range = {.count = count,
                                   .gradient_dtype = gradient_dtype,
                                   .gradient = gradient,
                                   .value = value,
                                   .exp_avg = exp_avg,
                                   .exp_avg_sq = exp_avg_sq,
                                   .rounded = rounded};
    return slc_adamw_many(stream, settings, 1, &range);
}
