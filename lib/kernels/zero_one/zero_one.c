/* Checks the arguments and computes the factors of a call. */
#include "lib/kernels/zero_one/zero_one.h"

#include "lib/kernels/host.h"
#include "lib/kernels/zero_one/zero_one_cpu.h"

enum { GRAIN = 16384 };

static sluice_status check(const sluice_stream *stream, const slc_compress_results *results,
                           const slc_zero_one_range *range)
{
    sluice_status status = slc_compress_check(results->shape);
    if (!status) status = slc_host_check(stream, "zero_one");
    return status ? status : slc_compress_check_results(results, range->count);
}

static slc_adamw_factors factors_of(const slc_adamw_settings *settings, const slc_zero_one_range *range)
{
    slc_adamw_factors factors = slc_adamw_factors_of(settings, settings->learning_rate);
    if (range->no_decay) factors.decay = 0;
    return factors;
}

sluice_status slc_zero_one_gradient(sluice_stream *stream, const slc_adamw_settings *settings,
                                    const slc_compress_results *results, const slc_zero_one_range *range, bool *finite)
{
    sluice_status status = check(stream, results, range);
    if (status || !results->count) return status;
    const slc_zero_one_packets_args args = {.factors = factors_of(settings, range),
                                            .range = *range,
                                            .packets = slc_compress_packets_of(results),
                                            .first = results->first,
                                            .finite = finite};
    slc_host_run(stream, results->count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_zero_one_gradient_range), &args);
    return SLUICE_OK;
}

sluice_status slc_zero_one_exchanged(sluice_stream *stream, const slc_adamw_settings *settings, double momentum_factor,
                                     double value_factor, const slc_compress_results *results,
                                     const slc_zero_one_range *range, bool *finite)
{
    sluice_status status = check(stream, results, range);
    if (status || !results->count) return status;
    const slc_zero_one_packets_args args = {.factors = factors_of(settings, range),
                                            .momentum_factor = (float)momentum_factor,
                                            .value_factor = range->no_decay ? 1 : (float)value_factor,
                                            .range = *range,
                                            .packets = slc_compress_packets_of(results),
                                            .first = results->first,
                                            .finite = finite};
    slc_host_run(stream, results->count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_zero_one_exchanged_range), &args);
    return SLUICE_OK;
}

sluice_status slc_zero_one_local(sluice_stream *stream, const slc_adamw_settings *settings, sluice_dtype gradient_dtype,
                                 const void *gradient, const slc_zero_one_range *range, bool *finite)
{
    sluice_status status = slc_host_check(stream, "zero_one");
    if (status || !range->count) return status;
    const slc_zero_one_local_args args = {factors_of(settings, range), *range, gradient_dtype, gradient, finite};
    slc_host_run(stream, range->count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_zero_one_local_range), &args);
    return SLUICE_OK;
}
