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

static void run_packets(sluice_stream *stream, uint32_t count, const slc_zero_one_packets_args *args,
                        slc_range_kernel *kernel)
{
    for (const slc_zero_one_packets_args *a = args; a < args + count; a++)
        if (!slc_compress_skips(a->words)) slc_host_run(stream, a->count, GRAIN, SLC_COMPRESS_UNIT, kernel, a);
}

static sluice_status packets_args(const slc_zero_one_tensor *t, bool *finite, slc_zero_one_packets_args *out)
{
    sluice_status status = slc_compress_check(t->results.shape);
    if (!status && t->results.count) status = slc_compress_check_results(&t->results, t->range.count);
    if (status) return status;
    *out = (slc_zero_one_packets_args){.factors = factors_of(&t->settings, &t->range),
                                       .momentum_factor = (float)t->momentum_factor,
                                       .value_factor = t->range.no_decay ? 1 : (float)t->value_factor,
                                       .range = t->range,
                                       .packets = slc_compress_packets_of(&t->results),
                                       .first = t->results.first,
                                       .count = t->results.count,
                                       .finite = finite,
                                       .words = t->settings.words};
    return SLUICE_OK;
}

static void zero_one_gradient_many_host(sluice_stream *stream, uint32_t count, const slc_zero_one_packets_args *args)
{
    run_packets(stream, count, args, SLC_ISA_PICK(slc_zero_one_gradient_range));
}

static void zero_one_exchanged_many_host(sluice_stream *stream, uint32_t count, const slc_zero_one_packets_args *args)
{
    run_packets(stream, count, args, SLC_ISA_PICK(slc_zero_one_exchanged_range));
}

/* Hands tensors to the kernel of `gradient`, or of `exchanged`, some at a time; finite: of each, or NULL. */
static sluice_status hand_over(sluice_stream *stream, uint32_t count, const slc_zero_one_tensor *tensors, bool *finite,
                               bool exchanged)
{
    slc_zero_one_packets_args args[SLC_COMPRESS_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < count; first += SLC_COMPRESS_TOGETHER) {
        const uint32_t left = count - first, own = left < SLC_COMPRESS_TOGETHER ? left : SLC_COMPRESS_TOGETHER;
        for (uint32_t i = 0; !status && i < own; i++) status = packets_args(&tensors[first + i], finite, &args[i]);
        if (status) return status;
        status = exchanged ? SLC_DEVICE_RUN(stream, zero_one_exchanged_many, own, args)
                           : SLC_DEVICE_RUN(stream, zero_one_gradient_many, own, args);
    }
    return status;
}

sluice_status slc_zero_one_gradient_many(sluice_stream *stream, uint32_t count, const slc_zero_one_tensor *tensors)
{
    return hand_over(stream, count, tensors, NULL, false);
}

sluice_status slc_zero_one_exchanged_many(sluice_stream *stream, uint32_t count, const slc_zero_one_tensor *tensors)
{
    return hand_over(stream, count, tensors, NULL, true);
}

sluice_status slc_zero_one_gradient(sluice_stream *stream, const slc_adamw_settings *settings,
                                    const slc_compress_results *results, const slc_zero_one_range *range, bool *finite)
{
    const slc_zero_one_tensor tensor = {.settings = *settings, .results = *results, .range = *range};
    return hand_over(stream, 1, &tensor, finite, false);
}

sluice_status slc_zero_one_exchanged(sluice_stream *stream, const slc_adamw_settings *settings, double momentum_factor,
                                     double value_factor, const slc_compress_results *results,
                                     const slc_zero_one_range *range, bool *finite)
{
    const slc_zero_one_tensor tensor = {.settings = *settings,
                                        .results = *results,
                                        .range = *range,
                                        .momentum_factor = momentum_factor,
                                        .value_factor = value_factor};
    return hand_over(stream, 1, &tensor, finite, true);
}

/* ---- From this rank's own gradient ---- */

static void zero_one_local_many_host(sluice_stream *stream, uint32_t count, const slc_zero_one_local_args *args)
{
    for (uint32_t i = 0; i < count; i++) {
        slc_zero_one_local_args told = args[i];
        if (slc_adamw_heed_words(told.words, &told.factors))
            slc_host_run(stream, told.range.count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_zero_one_local_range),
                         &told);
    }
}

sluice_status slc_zero_one_local_many(sluice_stream *stream, uint32_t count, const slc_zero_one_tensor *tensors)
{
    slc_zero_one_local_args args[SLC_COMPRESS_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < count; first += SLC_COMPRESS_TOGETHER) {
        const uint32_t left = count - first, own = left < SLC_COMPRESS_TOGETHER ? left : SLC_COMPRESS_TOGETHER;
        for (uint32_t i = 0; i < own; i++) {
            const slc_zero_one_tensor *t = &tensors[first + i];
            args[i] = (slc_zero_one_local_args){factors_of(&t->settings, &t->range), t->range, t->gradient_dtype,
                                                t->gradient, t->settings.words};
        }
        status = SLC_DEVICE_RUN(stream, zero_one_local_many, own, args);
    }
    return status;
}

sluice_status slc_zero_one_local(sluice_stream *stream, const slc_adamw_settings *settings, sluice_dtype gradient_dtype,
                                 const void *gradient, const slc_zero_one_range *range)
{
    const slc_zero_one_tensor tensor = {
        .settings = *settings, .gradient_dtype = gradient_dtype, .gradient = gradient, .range = *range};
    return slc_zero_one_local_many(stream, 1, &tensor);
}
