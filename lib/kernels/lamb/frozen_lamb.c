/* Computes the factors in double, once, and hands the range to the fast loop or to the GPU. */
#include "lib/kernels/lamb/frozen_lamb.h"

#include "lib/kernels/dispatch.h"
#include "lib/kernels/lamb/frozen_lamb_cpu.h"

#include <math.h>
#include <string.h>

enum { GRAIN = 16384 };

static slc_frozen_lamb_args args_of(const slc_frozen_lamb_settings *s, const slc_frozen_lamb_range *range)
{
    slc_frozen_lamb_args args = {.factors = slc_adamw_factors_of(&s->adam, 1),
                                 .fresh_rescale = (float)(1 / sqrt(s->fresh_correction)),
                                 .learning_rate = s->adam.learning_rate,
                                 .range = *range,
                                 .words = s->adam.words};
    if (range->no_decay) args.factors.decay = 0;
    return args;
}

static void run(sluice_stream *stream, slc_range_kernel *kernel, const slc_frozen_lamb_args *args)
{
    slc_frozen_lamb_args told = *args;
    if (!slc_adamw_heed_words(args->words, &told.factors)) return;
    if (args->coefficient) told.rate = (float)(args->learning_rate * *args->coefficient);
    slc_host_run(stream, args->range.count, GRAIN, SLC_FROZEN_LAMB_UNIT, kernel, &told);
}

/* ---- From an averaged gradient ---- */

static void frozen_lamb_measure_host(sluice_stream *stream, const slc_frozen_lamb_args *args)
{
    run(stream, SLC_ISA_PICK(slc_frozen_lamb_measure_range), args);
}

sluice_status slc_frozen_lamb_measure(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                      sluice_dtype gradient_dtype, const void *gradient,
                                      const slc_frozen_lamb_range *range, const slc_frozen_lamb_sums *sums)
{
    slc_frozen_lamb_args args = args_of(settings, range);
    args.gradient_dtype = gradient_dtype, args.gradient = gradient, args.sums = *sums;
    return SLC_DEVICE_RUN(stream, frozen_lamb_measure, &args);
}

static void frozen_lamb_update_host(sluice_stream *stream, const slc_frozen_lamb_args *args)
{
    run(stream, SLC_ISA_PICK(slc_frozen_lamb_update_range), args);
}

sluice_status slc_frozen_lamb_update(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                     sluice_dtype gradient_dtype, const void *gradient,
                                     const slc_frozen_lamb_range *range, const double *coefficient)
{
    slc_frozen_lamb_args args = args_of(settings, range);
    args.gradient_dtype = gradient_dtype, args.gradient = gradient, args.coefficient = coefficient;
    return SLC_DEVICE_RUN(stream, frozen_lamb_update, &args);
}

/* ---- From an exchange ---- */

static void frozen_lamb_receive_host(sluice_stream *stream, const slc_frozen_lamb_args *args)
{
    const slc_frozen_lamb_range *r = &args->range;
    if (args->words && args->words->skip == SLC_EXCHANGE_FAILED && r->fresh != r->fresh_last)
        memcpy(r->fresh, r->fresh_last, r->count * sizeof *r->fresh);
    run(stream, SLC_ISA_PICK(slc_frozen_lamb_receive_range), args);
}

sluice_status slc_frozen_lamb_receive(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                      const slc_compress_results *results, double divisor,
                                      const slc_frozen_lamb_range *range, const slc_frozen_lamb_sums *sums)
{
    sluice_status status = slc_compress_check(results->shape);
    if (status) return status;
    slc_frozen_lamb_args args = args_of(settings, range);
    args.packets = slc_compress_packets_of(results);
    args.offset = results->first, args.divisor = divisor, args.sums = *sums;
    return SLC_DEVICE_RUN(stream, frozen_lamb_receive, &args);
}

static void frozen_lamb_move_host(sluice_stream *stream, const slc_frozen_lamb_args *args)
{
    run(stream, SLC_ISA_PICK(slc_frozen_lamb_move_range), args);
}

sluice_status slc_frozen_lamb_move(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                   const slc_frozen_lamb_range *range, const double *coefficient)
{
    slc_frozen_lamb_args args = args_of(settings, range);
    args.coefficient = coefficient;
    return SLC_DEVICE_RUN(stream, frozen_lamb_move, &args);
}
