/* Checks the arguments and computes the factors of a call. */
#include "lib/kernels/zero_one/zero_one.h"

#include "lib/kernels/dispatch.h"
#include "lib/kernels/zero_one/zero_one_cpu.h"

enum { GRAIN = 16384 };

static slc_adamw_factors factors_of(const slc_adamw_settings *settings, const slc_zero_one_range *range)
{
    slc_adamw_factors factors = slc_adamw_factors_of(settings, settings->learning_rate);
    if (range->no_decay) factors.decay = 0;
    return factors;
}

/* ---- From an exchange ---- */

static void run_packets(sluice_stream *stream, const slc_zero_one_packets_args *args, uint64_t count,
                        slc_range_kernel *kernel)
{
    if (!slc_compress_skips(args->words)) slc_host_run(stream, count, GRAIN, SLC_COMPRESS_UNIT, kernel, args);
}

static sluice_status check(const slc_compress_results *results, const slc_zero_one_range *range)
{
    sluice_status status = slc_compress_check(results->shape);
    return status ? status : slc_compress_check_results(results, range->count);
}

static slc_zero_one_packets_args args_of(const slc_adamw_settings *settings, const slc_compress_results *results,
                                         const slc_zero_one_range *range, bool *finite)
{
    return (slc_zero_one_packets_args){.factors = factors_of(settings, range),
                                       .range = *range,
                                       .packets = slc_compress_packets_of(results),
                                       .first = results->first,
                                       .finite = finite,
                                       .words = settings->words};
}

static void zero_one_gradient_host(sluice_stream *stream, const slc_zero_one_packets_args *args, uint64_t count)
{
    run_packets(stream, args, count, SLC_ISA_PICK(slc_zero_one_gradient_range));
}

sluice_status slc_zero_one_gradient(sluice_stream *stream, const slc_adamw_settings *settings,
                                    const slc_compress_results *results, const slc_zero_one_range *range, bool *finite)
{
    sluice_status status = check(results, range);
    if (status || !results->count) return status;
    const slc_zero_one_packets_args args = args_of(settings, results, range, finite);
    return SLC_DEVICE_RUN(stream, zero_one_gradient, &args, results->count);
}

static void zero_one_exchanged_host(sluice_stream *stream, const slc_zero_one_packets_args *args, uint64_t count)
{
    run_packets(stream, args, count, SLC_ISA_PICK(slc_zero_one_exchanged_range));
}

sluice_status slc_zero_one_exchanged(sluice_stream *stream, const slc_adamw_settings *settings, double momentum_factor,
                                     double value_factor, const slc_compress_results *results,
                                     const slc_zero_one_range *range, bool *finite)
{
    sluice_status status = check(results, range);
    if (status || !results->count) return status;
    slc_zero_one_packets_args args = args_of(settings, results, range, finite);
    args.momentum_factor = (float)momentum_factor;
    args.value_factor = range->no_decay ? 1 : (float)value_factor;
    return SLC_DEVICE_RUN(stream, zero_one_exchanged, &args, results->count);
}

/* ---- From this rank's own gradient ---- */

static void zero_one_local_host(sluice_stream *stream, const slc_zero_one_local_args *args)
{
    slc_zero_one_local_args told = *args;
    if (slc_adamw_heed_words(args->words, &told.factors))
        slc_host_run(stream, args->range.count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_zero_one_local_range),
                     &told);
}

sluice_status slc_zero_one_local(sluice_stream *stream, const slc_adamw_settings *settings, sluice_dtype gradient_dtype,
                                 const void *gradient, const slc_zero_one_range *range)
{
    const slc_zero_one_local_args args = {factors_of(settings, range), *range, gradient_dtype, gradient,
                                          settings->words};
    return range->count ? SLC_DEVICE_RUN(stream, zero_one_local, &args) : SLUICE_OK;
}
