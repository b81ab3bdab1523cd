/* The factors are AdamW's, but the learning rate is left to the second phase, where it is multiplied by the trust
 * ratio. */
#include "lib/kernels/lamb/lamb.h"

#include "lib/kernels/dispatch.h"
#include "lib/kernels/lamb/lamb_cpu.h"
#include "lib/kernels/lamb/trust.h"

enum { GRAIN = 16384 };

/* Runs a phase on the host, unless the words say that the step does nothing. */
static void run_phase(const sluice_stream *stream, const slc_lamb_args *args, slc_range_kernel *kernel)
{
    slc_lamb_args told = *args;
    if (slc_adamw_heed_words(args->words, &told.factors))
        slc_host_run(stream, slc_adamw_elements(args->range_count, args->ranges), GRAIN, SLC_ADAMW_UNIT, kernel, &told);
}

static void lamb_measure_host(sluice_stream *stream, const slc_lamb_args *args)
{
    run_phase(stream, args, SLC_ISA_PICK(slc_lamb_measure_ranges));
}

sluice_status slc_lamb_measure(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                               const slc_adamw_range *ranges, const slc_lamb_bins *bins)
{
    const slc_lamb_args args = {.factors = slc_adamw_factors_of(settings, 1),
                                .words = settings->words,
                                .ranges = ranges,
                                .range_count = range_count,
                                .bins = bins};
    return SLC_DEVICE_RUN(stream, lamb_measure, &args);
}

double slc_lamb_trust(double value_norm, double update_norm, const slc_lamb_bounds *bounds)
{
    return lamb_trust(value_norm, update_norm, bounds);
}

static void lamb_apply_host(sluice_stream *stream, const slc_lamb_args *args)
{
    run_phase(stream, args, SLC_ISA_PICK(slc_lamb_apply_ranges));
}

/* Works with the trust ratios that args tell. */
static sluice_status apply(sluice_stream *stream, const slc_adamw_settings *settings, slc_lamb_args args)
{
    args.factors = slc_adamw_factors_of(settings, 1);
    args.words = settings->words;
    args.learning_rate = settings->learning_rate;
    return SLC_DEVICE_RUN(stream, lamb_apply, &args);
}

sluice_status slc_lamb_apply(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                             const slc_adamw_range *ranges, const double *trust)
{
    return apply(stream, settings, (slc_lamb_args){.ranges = ranges, .range_count = range_count, .trust = trust});
}

sluice_status slc_lamb_apply_measured(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                                      const slc_adamw_range *ranges, const double *const *norms,
                                      const slc_lamb_bounds *bounds)
{
    const slc_lamb_args args = {.ranges = ranges, .range_count = range_count, .norms = norms, .bounds = *bounds};
    return apply(stream, settings, args);
}
