/* Checks the arguments and runs the fast loops. lib/optim/onebit/onebit_lamb_test.c covers this file. */
#include "lib/kernels/compress/flat.h"

#include "lib/base/status.h"
#include "lib/kernels/compress/flat_cpu.h"
#include "lib/kernels/dispatch.h"

enum { GRAIN = 16384 };

static void flat_write_many_host(sluice_stream *stream, uint32_t count, const slc_flat_args *given)
{
    for (uint32_t i = 0; i < count; i++) {
        slc_flat_args args = given[i];
        if (slc_compress_skips(args.input.words)) continue;
        if (args.input.words) args.input.gradient_factor = args.input.words->gradient_factor;
        slc_host_run(stream, args.count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_flat_write_range), &args);
    }
}

sluice_status slc_flat_write_many(sluice_stream *stream, uint32_t count, const slc_flat_tensor *tensors)
{
    slc_flat_args args[SLC_COMPRESS_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < count; first += SLC_COMPRESS_TOGETHER) {
        const uint32_t left = count - first, own = left < SLC_COMPRESS_TOGETHER ? left : SLC_COMPRESS_TOGETHER;
        for (uint32_t i = 0; i < own; i++) {
            const slc_flat_tensor *t = &tensors[first + i];
            args[i] = (slc_flat_args){.input = t->input, .count = t->count, .out = t->out};
        }
        status = SLC_DEVICE_RUN(stream, flat_write_many, own, args);
    }
    return status;
}

sluice_status slc_flat_write(sluice_stream *stream, uint64_t count, const slc_compress_input *input, float *out)
{
    const slc_flat_tensor tensor = {count, *input, out};
    return slc_flat_write_many(stream, 1, &tensor);
}

static void flat_read_host(sluice_stream *stream, const slc_flat_args *args)
{
    if (!slc_compress_skips(args->input.words))
        slc_host_run(stream, args->count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_flat_read_range), args);
}

sluice_status slc_flat_read(sluice_stream *stream, const slc_compress_results *results, const sluice_step_words *words,
                            float *out)
{
    const uint64_t all = results->shape->count, first = results->first, count = results->count;
    sluice_status status = slc_compress_check(results->shape);
    if (status) return status;
    if (first % 8 || first > all || count > all - first)
        return slc_error(SLUICE_ERR_ARGUMENT, "compression: elements %llu + %llu of %llu are to be read",
                         (unsigned long long)first, (unsigned long long)count, (unsigned long long)all);
    const slc_flat_args args = {
        .input.words = words, .packets = slc_compress_packets_of(results), .first = first, .count = count, .out = out};
    return SLC_DEVICE_RUN(stream, flat_read, &args);
}
