/* Computes the factors in double, once, and hands the range to the fast loop. */
#include "lib/kernels/lamb/frozen_lamb.h"

#include "lib/kernels/host.h"
#include "lib/kernels/lamb/frozen_lamb_cpu.h"

#include <math.h>

enum { GRAIN = 16384 };

static slc_frozen_lamb_args args_of(const slc_frozen_lamb_settings *s, const slc_frozen_lamb_range *range)
{
    slc_frozen_lamb_args args = {.factors = slc_adamw_factors_of(&s->adam, 1),
                                 .fresh_rescale = (float)(1 / sqrt(s->fresh_correction)),
                                 .range = *range};
    if (range->no_decay) args.factors.decay = 0;
    return args;
}

static sluice_status run(sluice_stream *stream, slc_range_kernel *kernel, const slc_frozen_lamb_args *args)
{
    sluice_status status = slc_host_check(stream, "frozen_lamb");
    if (!status) slc_host_run(stream, args->range.count, GRAIN, SLC_FROZEN_LAMB_UNIT, kernel, args);
    return status;
}

sluice_status slc_frozen_lamb_measure(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                      sluice_dtype gradient_dtype, const void *gradient,
                                      const slc_frozen_lamb_range *range, const slc_frozen_lamb_sums *sums)
{
    slc_frozen_lamb_args args = args_of(settings, range);
    args.gradient_dtype = gradient_dtype, args.gradient = gradient, args.sums = *sums;
    return run(stream, SLC_ISA_PICK(slc_frozen_lamb_measure_range), &args);
}

sluice_status slc_frozen_lamb_update(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                     sluice_dtype gradient_dtype, const void *gradient,
                                     const slc_frozen_lamb_range *range, double coefficient)
{
    slc_frozen_lamb_args args = args_of(settings, range);
    args.gradient_dtype = gradient_dtype, args.gradient = gradient;
    args.rate = (float)(settings->adam.learning_rate * coefficient);
    return run(stream, SLC_ISA_PICK(slc_frozen_lamb_update_range), &args);
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
    return run(stream, SLC_ISA_PICK(slc_frozen_lamb_receive_range), &args);
}

sluice_status slc_frozen_lamb_move(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                   const slc_frozen_lamb_range *range, double coefficient)
{
    slc_frozen_lamb_args args = args_of(settings, range);
    args.rate = (float)(settings->adam.learning_rate * coefficient);
    return run(stream, SLC_ISA_PICK(slc_frozen_lamb_move_range), &args);
}
