/* The factors are AdamW's, but the learning rate is left to the second phase, where it is multiplied by the trust
 * ratio. */
#include "lib/kernels/lamb/lamb.h"

#include "lib/device/cuda.h"
#include "lib/kernels/host.h"
#include "lib/kernels/lamb/lamb_cpu.h"
#include "lib/kernels/lamb/lamb_cuda.h"
#include "lib/kernels/lamb/trust.h"

enum { GRAIN = 16384 };

sluice_status slc_lamb_measure(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                               const slc_adamw_range *ranges, const slc_lamb_bins *bins)
{
    slc_lamb_args args = {
        .factors = slc_adamw_factors_of(settings, 1), .ranges = ranges, .range_count = range_count, .bins = bins};
    if (SLC_ON_CUDA(stream)) return slc_lamb_measure_cuda(stream, &args, settings->words);
    sluice_status status = slc_host_check(stream, "lamb_measure");
    if (status || !slc_adamw_heed_words(settings->words, &args.factors)) return status;
    slc_host_run(stream, slc_adamw_elements(range_count, ranges), GRAIN, SLC_ADAMW_UNIT,
                 SLC_ISA_PICK(slc_lamb_measure_ranges), &args);
    return SLUICE_OK;
}

double slc_lamb_trust(double value_norm, double update_norm, double lowest, double highest)
{
    return lamb_trust(value_norm, update_norm, lowest, highest);
}

/* Works with the trust ratios that args tell. */
static sluice_status apply(sluice_stream *stream, const slc_adamw_settings *settings, slc_lamb_args args)
{
    args.factors = slc_adamw_factors_of(settings, 1);
    args.learning_rate = settings->learning_rate;
    if (SLC_ON_CUDA(stream)) return slc_lamb_apply_cuda(stream, &args, settings->words);
    sluice_status status = slc_host_check(stream, "lamb_apply");
    if (status || !slc_adamw_heed_words(settings->words, &args.factors)) return status;
    slc_host_run(stream, slc_adamw_elements(args.range_count, args.ranges), GRAIN, SLC_ADAMW_UNIT,
                 SLC_ISA_PICK(slc_lamb_apply_ranges), &args);
    return SLUICE_OK;
}

sluice_status slc_lamb_apply(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                             const slc_adamw_range *ranges, const double *trust)
{
    return apply(stream, settings, (slc_lamb_args){.ranges = ranges, .range_count = range_count, .trust = trust});
}

sluice_status slc_lamb_apply_measured(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                                      const slc_adamw_range *ranges, const double *const *norms, double lowest,
                                      double highest)
{
    const slc_lamb_args args = {
        .ranges = ranges, .range_count = range_count, .norms = norms, .lowest = lowest, .highest = highest};
    return apply(stream, settings, args);
}
