/* Checks the arguments and runs the fast loops. lib/optim/onebit/onebit_lamb_test.c covers this file. */
#include "lib/kernels/compress/flat.h"

#include "lib/base/status.h"
#include "lib/kernels/compress/flat_cpu.h"
#include "lib/kernels/dispatch.h"

enum { GRAIN = 16384 };

static void flat_write_host(sluice_stream *stream, const slc_flat_args *given, uint64_t count)
{
    slc_flat_args args = *given;
    if (slc_compress_skips(args.input.words)) return;
    if (args.input.words) args.input.gradient_factor = args.input.words->gradient_factor;
    slc_host_run(stream, count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_flat_write_range), &args);
}

sluice_status slc_flat_write(sluice_stream *stream, uint64_t count, const slc_compress_input *input, float *out)
{
    const slc_flat_args args = {.input = *input, .out = out};
    return SLC_DEVICE_RUN(stream, flat_write, &args, count);
}

static void flat_read_host(sluice_stream *stream, const slc_flat_args *args, uint64_t count)
{
    if (!slc_compress_skips(args->input.words))
        slc_host_run(stream, count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_flat_read_range), args);
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
        .input.words = words, .packets = slc_compress_packets_of(results), .first = first, .out = out};
    return SLC_DEVICE_RUN(stream, flat_read, &args, count);
}
