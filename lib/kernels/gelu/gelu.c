/* Picks the instruction set and cuts the elements between threads. There are few numbers in bf16, so that what the form
 * by erf gives for each is computed once, by the same kernel in fp32, and looked up after that, which gives the same
 * bits in less time. */
#include "lib/kernels/gelu/gelu.h"

#include "lib/kernels/dispatch.h"

#include <pthread.h>

enum { GRAIN = 8192, CODES = 1 << 16 };

static float values[CODES], slopes[CODES]; /* of all numbers in bf16, once they are made */

static void make_tables(void)
{
    for (uint32_t i = 0; i < CODES; i++) {
        values[i] = sluice_bf16_to_float((uint16_t)i);
        slopes[i] = 1;
    }
    const slc_gelu_args backward = {SLC_GELU_ERF_BACKWARD, SLUICE_FP32, CODES, values, slopes, slopes, NULL};
    SLC_ISA_PICK(slc_gelu_range)(&backward, 0, 0, CODES);
    const slc_gelu_args forward = {SLC_GELU_ERF_FORWARD, SLUICE_FP32, CODES, values, values, values, NULL};
    SLC_ISA_PICK(slc_gelu_range)(&forward, 0, 0, CODES);
}

static const float *table_of(slc_gelu_function function)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (function != SLC_GELU_ERF_FORWARD && function != SLC_GELU_ERF_BACKWARD) return NULL;
    pthread_once(&once, make_tables);
    return function == SLC_GELU_ERF_FORWARD ? values : slopes;
}

static void gelu_host(sluice_stream *stream, const slc_gelu_args *args)
{
    slc_gelu_args own = *args;
    if (args->dtype == SLUICE_BF16) own.table = table_of(args->function);
    slc_host_run(stream, args->count, GRAIN, 16, SLC_ISA_PICK(slc_gelu_range), &own);
}

static sluice_status gelu(sluice_stream *stream, slc_gelu_args args)
{
    return SLC_DEVICE_RUN(stream, gelu, &args);
}

sluice_status slc_gelu_forward(sluice_stream *stream, slc_gelu_kind kind, sluice_dtype dtype, uint64_t count,
                               const void *x, void *y)
{
    slc_gelu_function function = kind == SLC_GELU_ERF ? SLC_GELU_ERF_FORWARD : SLC_GELU_TANH_FORWARD;
    return gelu(stream, (slc_gelu_args){function, dtype, count, x, x, y, NULL});
}

sluice_status slc_gelu_backward(sluice_stream *stream, slc_gelu_kind kind, sluice_dtype dtype, uint64_t count,
                                const void *x, const void *dy, void *dx)
{
    slc_gelu_function function = kind == SLC_GELU_ERF ? SLC_GELU_ERF_BACKWARD : SLC_GELU_TANH_BACKWARD;
    return gelu(stream, (slc_gelu_args){function, dtype, count, x, dy, dx, NULL});
}

sluice_status slc_tanh_forward(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *x, void *y)
{
    return gelu(stream, (slc_gelu_args){SLC_TANH_FORWARD, dtype, count, x, x, y, NULL});
}

sluice_status slc_tanh_backward(sluice_stream *stream, sluice_dtype dtype, uint64_t count, const void *y,
                                const void *dy, void *dx)
{
    return gelu(stream, (slc_gelu_args){SLC_TANH_BACKWARD, dtype, count, y, dy, dx, NULL});
}
