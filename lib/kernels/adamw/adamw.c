/* Works out the factors in double, once, and hands the ranges to the fast loop. */
#include "lib/kernels/adamw/adamw.h"

#include "lib/kernels/adamw/adamw_cpu.h"
#include "lib/kernels/dispatch.h"

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

static void adamw_host(sluice_stream *stream, const slc_adamw_args *args)
{
    slc_adamw_args told = *args;
    if (slc_adamw_heed_words(args->words, &told.factors))
        slc_host_run(stream, slc_adamw_elements(args->range_count, args->ranges), GRAIN, SLC_ADAMW_UNIT,
                     SLC_ISA_PICK(slc_adamw_ranges), &told);
}

sluice_status slc_adamw_many(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                             const slc_adamw_range *ranges)
{
    const slc_adamw_args args = {.factors = slc_adamw_factors_of(settings, settings->learning_rate),
                                 .words = settings->words,
                                 .ranges = ranges,
                                 .range_count = range_count};
    return SLC_DEVICE_RUN(stream, adamw, &args);
}
