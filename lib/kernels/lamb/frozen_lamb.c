/* Computes the factors in double, once, and hands ranges to the fast loop or to the GPU. */
#include "lib/kernels/lamb/frozen_lamb.h"

#include "lib/kernels/dispatch.h"
#include "lib/kernels/lamb/frozen_lamb_cpu.h"

#include <math.h>
#include <string.h>

enum { GRAIN = 16384 };

static slc_frozen_lamb_args args_of(const slc_frozen_lamb_tensor *t)
{
    slc_frozen_lamb_args args = {.factors = slc_adamw_factors_of(&t->settings.adam, 1),
                                 .fresh_rescale = (float)(1 / sqrt(t->settings.fresh_correction)),
                                 .learning_rate = t->settings.adam.learning_rate,
                                 .range = t->range,
                                 .gradient_dtype = t->gradient_dtype,
                                 .gradient = t->gradient,
                                 .offset = t->results.first,
                                 .divisor = t->divisor,
                                 .sums = t->sums,
                                 .coefficient = t->coefficient,
                                 .words = t->settings.adam.words};
    if (t->results.shape) args.packets = slc_compress_packets_of(&t->results);
    if (t->range.no_decay) args.factors.decay = 0;
    return args;
}

static void run_on_ranges(sluice_stream *stream, slc_range_kernel *kernel, uint32_t count,
                          const slc_frozen_lamb_args *args)
{
    for (uint32_t i = 0; i < count; i++) {
        slc_frozen_lamb_args told = args[i];
        if (!slc_adamw_heed_words(told.words, &told.factors)) continue;
        if (told.coefficient) told.rate = (float)(told.learning_rate * *told.coefficient);
        slc_host_run(stream, told.range.count, GRAIN, SLC_FROZEN_LAMB_UNIT, kernel, &told);
    }
}

static void frozen_lamb_measure_many_host(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_args *args)
{
    run_on_ranges(stream, SLC_ISA_PICK(slc_frozen_lamb_measure_range), count, args);
}

static void frozen_lamb_update_many_host(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_args *args)
{
    run_on_ranges(stream, SLC_ISA_PICK(slc_frozen_lamb_update_range), count, args);
}

static void frozen_lamb_receive_many_host(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_args *args)
{
    for (const slc_frozen_lamb_args *a = args; a < args + count; a++) {
        const slc_frozen_lamb_range *r = &a->range;
        if (a->words && a->words->skip == SLC_EXCHANGE_FAILED && r->fresh != r->fresh_last)
            memcpy(r->fresh, r->fresh_last, r->count * sizeof *r->fresh);
    }
    run_on_ranges(stream, SLC_ISA_PICK(slc_frozen_lamb_receive_range), count, args);
}

static void frozen_lamb_move_many_host(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_args *args)
{
    run_on_ranges(stream, SLC_ISA_PICK(slc_frozen_lamb_move_range), count, args);
}

/* ---- The calls ---- */

typedef enum { MEASURE, UPDATE, RECEIVE, MOVE } pass_kind;

static sluice_status run_pass(sluice_stream *stream, pass_kind pass, uint32_t count, const slc_frozen_lamb_args *args)
{
    switch (pass) {
    case MEASURE: return SLC_DEVICE_RUN(stream, frozen_lamb_measure_many, count, args);
    case UPDATE: return SLC_DEVICE_RUN(stream, frozen_lamb_update_many, count, args);
    case RECEIVE: return SLC_DEVICE_RUN(stream, frozen_lamb_receive_many, count, args);
    case MOVE: return SLC_DEVICE_RUN(stream, frozen_lamb_move_many, count, args);
    }
    return SLUICE_OK;
}

static sluice_status hand_over(sluice_stream *stream, pass_kind pass, uint32_t count,
                               const slc_frozen_lamb_tensor *tensors)
{
    slc_frozen_lamb_args args[SLC_COMPRESS_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < count; first += SLC_COMPRESS_TOGETHER) {
        const uint32_t left = count - first, own = left < SLC_COMPRESS_TOGETHER ? left : SLC_COMPRESS_TOGETHER;
        for (uint32_t i = 0; !status && i < own; i++) {
            if (pass == RECEIVE) status = slc_compress_check(tensors[first + i].results.shape);
            args[i] = args_of(&tensors[first + i]);
        }
        if (!status) status = run_pass(stream, pass, own, args);
    }
    return status;
}

sluice_status slc_frozen_lamb_measure_many(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_tensor *tensors)
{
    return hand_over(stream, MEASURE, count, tensors);
}

sluice_status slc_frozen_lamb_update_many(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_tensor *tensors)
{
    return hand_over(stream, UPDATE, count, tensors);
}

sluice_status slc_frozen_lamb_receive_many(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_tensor *tensors)
{
    return hand_over(stream, RECEIVE, count, tensors);
}

sluice_status slc_frozen_lamb_move_many(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_tensor *tensors)
{
    return hand_over(stream, MOVE, count, tensors);
}

sluice_status slc_frozen_lamb_measure(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                      sluice_dtype gradient_dtype, const void *gradient,
                                      const slc_frozen_lamb_range *range, const slc_frozen_lamb_sums *sums)
{
    const slc_frozen_lamb_tensor tensor = {
        .settings = *settings, .range = *range, .gradient_dtype = gradient_dtype, .gradient = gradient, .sums = *sums};
    return slc_frozen_lamb_measure_many(stream, 1, &tensor);
}

sluice_status slc_frozen_lamb_update(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                     sluice_dtype gradient_dtype, const void *gradient,
                                     const slc_frozen_lamb_range *range, const double *coefficient)
{
    const slc_frozen_lamb_tensor tensor = {.settings = *settings,
                                           .range = *range,
                                           .gradient_dtype = gradient_dtype,
                                           .gradient = gradient,
                                           .coefficient = coefficient};
    return slc_frozen_lamb_update_many(stream, 1, &tensor);
}

sluice_status slc_frozen_lamb_receive(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                      const slc_compress_results *results, double divisor,
                                      const slc_frozen_lamb_range *range, const slc_frozen_lamb_sums *sums)
{
    const slc_frozen_lamb_tensor tensor = {
        .settings = *settings, .range = *range, .results = *results, .divisor = divisor, .sums = *sums};
    return slc_frozen_lamb_receive_many(stream, 1, &tensor);
}

sluice_status slc_frozen_lamb_move(sluice_stream *stream, const slc_frozen_lamb_settings *settings,
                                   const slc_frozen_lamb_range *range, const double *coefficient)
{
    const slc_frozen_lamb_tensor tensor = {.settings = *settings, .range = *range, .coefficient = coefficient};
    return slc_frozen_lamb_move_many(stream, 1, &tensor);
}
