/* The factors are AdamW's, but the learning rate is left to the second phase, where it is multiplied by the trust
 * ratio. */
#include "lib/kernels/lamb/lamb.h"

#include "lib/kernels/host.h"
#include "lib/kernels/lamb/lamb_cpu.h"

enum { GRAIN = 16384 };

static sluice_status run(slc_stream *stream, slc_range_kernel *kernel, const slc_lamb_args *args)
{
    slc_host_run(stream, slc_adamw_elements(args->range_count, args->ranges), GRAIN, SLC_ADAMW_UNIT, kernel, args);
    return SLUICE_OK;
}

sluice_status slc_lamb_measure(slc_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                               const slc_adamw_range *ranges, const slc_lamb_bins *bins)
{
    sluice_status status = slc_host_check(stream, "lamb_measure");
    if (status) return status;
    const slc_lamb_args args = {
        .factors = slc_adamw_factors_of(settings, 1), .ranges = ranges, .range_count = range_count, .bins = bins};
    return run(stream, SLC_ISA_PICK(slc_lamb_measure_ranges), &args);
}

double slc_lamb_trust(double value_norm, double update_norm, double lowest, double highest)
{
    double value = value_norm < lowest ? lowest : value_norm > highest ? highest : value_norm;
    return value_norm > 0 && update_norm > 0 ? value / update_norm : 1;
}

sluice_status slc_lamb_apply(slc_stream *stream, const slc_adamw_settings *settings, uint32_t range_count,
                             const slc_adamw_range *ranges, const double *trust)
{
    sluice_status status = slc_host_check(stream, "lamb_apply");
    if (status) return status;
    const slc_lamb_args args = {.factors = slc_adamw_factors_of(settings, 1),
                                .learning_rate = settings->learning_rate,
                                .ranges = ranges,
                                .range_count = range_count,
                                .trust = trust};
    return run(stream, SLC_ISA_PICK(slc_lamb_apply_ranges), &args);
}
