/* All work of compression that depends neither on the instruction set nor on the device. */
#include "lib/kernels/compress/compress.h"

#include "lib/base/status.h"
#include "lib/kernels/compress/compress_cpu.h"
#include "lib/kernels/dispatch.h"

#include <math.h>
#include <string.h>

enum { GRAIN = 16384 };

static uint64_t in_pieces(uint64_t count, uint64_t piece)
{
    return (count + piece - 1) / piece;
}

float slc_compress_scale(const int64_t *bins, uint64_t count)
{
    float scale = (float)(slc_norm_result(bins) / sqrt((double)count));
    return isfinite(scale) ? scale : INFINITY;
}

static slc_compress_out out_of(const slc_compress_shape *shape, const slc_residue *residue, void *packets,
                               uint64_t stride, int64_t *bins)
{
    return (slc_compress_out){.chunk = slc_compress_chunk(shape),
                              .scale_elements = shape->scale_elements,
                              .scales = slc_compress_scales(shape),
                              .stride = stride,
                              .residue = *residue,
                              .packets = packets,
                              .bins = bins};
}

/* Returns how many elements an item has. */
static uint64_t item_elements(uint64_t scale_elements)
{
    return scale_elements ? scale_elements : SLC_COMPRESS_GRAIN;
}

/* The items of `count` elements of a chunk. */
static uint64_t items_of(const slc_compress_out *out, uint64_t count)
{
    return in_pieces(count, item_elements(out->scale_elements));
}

static void run_items(sluice_stream *stream, const slc_compress_out *out, uint64_t items, slc_range_kernel *kernel,
                      const void *args)
{
    slc_host_run(stream, items, in_pieces(GRAIN, item_elements(out->scale_elements)), 1, kernel, args);
}

/* ---- Pass 1 ---- */

static void compress_worker_host(sluice_stream *stream, const slc_compress_worker_args *given)
{
    int64_t bins[SLC_NORM_BINS] = {0};
    slc_compress_worker_args args = *given;
    slc_compress_out *out = &args.out;
    if (slc_compress_skips(args.input.words)) return;
    if (args.input.words) args.input.gradient_factor = args.input.words->gradient_factor;
    out->bins = bins;
    run_items(stream, out, args.ranks * items_of(out, out->chunk), SLC_ISA_PICK(slc_compress_worker_range), &args);
    float scale = out->scale_elements ? 0 : slc_compress_scale(bins, args.ranks * out->chunk);
    for (uint32_t k = 0; k < args.ranks; k++) {
        if (!out->scale_elements) out->residue.scale[k] = scale;
        memcpy(out->packets + k * out->stride, out->residue.scale + k * out->scales, out->scales * sizeof(float));
    }
}

sluice_status slc_compress_worker(sluice_stream *stream, const slc_compress_shape *shape,
                                  const slc_compress_input *input, const slc_residue *worker, void *packets,
                                  uint64_t stride)
{
    sluice_status status = slc_compress_check(shape);
    if (status || !shape->count) return status;
    if (SLC_ON_CUDA(stream) && !shape->scale_elements && !worker->bins)
        return slc_error(SLUICE_ERR_ARGUMENT, "compression: a GPU needs bins next to the residue");
    const slc_compress_worker_args args = {.out = out_of(shape, worker, packets, stride, worker->bins),
                                           .input = *input,
                                           .count = shape->count,
                                           .ranks = shape->ranks};
    return SLC_DEVICE_RUN(stream, compress_worker, &args);
}

/* ---- The server ---- */

static void compress_server_host(sluice_stream *stream, const slc_compress_server_args *args)
{
    if (!slc_compress_skips(args->words))
        run_items(stream, &args->out, items_of(&args->out, args->count), SLC_ISA_PICK(slc_compress_server_range), args);
}

sluice_status slc_compress_server(sluice_stream *stream, const slc_compress_served *chunk, uint64_t first,
                                  uint64_t count)
{
    const slc_compress_shape *shape = chunk->shape;
    sluice_status status = slc_compress_check(shape);
    if (status || !count) return status;
    slc_compress_server_args args = {.out = out_of(shape, chunk->server, chunk->packet, 0, chunk->bins),
                                     .packets = chunk->packets,
                                     .ranks = shape->ranks,
                                     .count = count,
                                     .words = chunk->words};
    const uint64_t item = item_elements(shape->scale_elements);
    if (first % item || first > args.out.chunk || count > args.out.chunk - first ||
        (count % item && first + count != args.out.chunk))
        return slc_error(SLUICE_ERR_ARGUMENT, "compression: elements %llu + %llu of a chunk of %llu",
                         (unsigned long long)first, (unsigned long long)count, (unsigned long long)args.out.chunk);
    if (SLC_ON_CUDA(stream) && shape->ranks > SLC_COMPRESS_CUDA_MOST)
        return slc_error(SLUICE_ERR_UNSUPPORTED, "compression over %u ranks: a GPU's server takes packets of up to %d",
                         shape->ranks, SLC_COMPRESS_CUDA_MOST);
    args.out.first_item = first / item;
    return SLC_DEVICE_RUN(stream, compress_server, &args);
}

static void compress_server_end_host(sluice_stream *stream, const slc_compress_out *out, const sluice_step_words *words)
{
    (void)stream;
    if (slc_compress_skips(words)) return;
    if (!out->scale_elements) out->residue.scale[0] = slc_compress_scale(out->bins, out->chunk);
    memcpy(out->packets, out->residue.scale, out->scales * sizeof(float));
}

sluice_status slc_compress_server_end(sluice_stream *stream, const slc_compress_served *chunk)
{
    const slc_compress_out out = out_of(chunk->shape, chunk->server, chunk->packet, 0, chunk->bins);
    return chunk->shape->count ? SLC_DEVICE_RUN(stream, compress_server_end, &out, chunk->words) : SLUICE_OK;
}

/* ---- Between exchanges ---- */

static void compress_fold_host(sluice_stream *stream, const slc_compress_out *out, uint32_t chunks)
{
    run_items(stream, out, chunks * items_of(out, out->chunk), SLC_ISA_PICK(slc_compress_fold_range), out);
}

sluice_status slc_compress_fold(sluice_stream *stream, const slc_compress_shape *shape, uint32_t chunks,
                                const slc_residue *residue)
{
    sluice_status status = slc_compress_check(shape);
    if (status || !shape->count) return status;
    int64_t bins[SLC_NORM_BINS] = {0}; /* to which the host's loop adds nothing */
    const slc_compress_out out = out_of(shape, residue, NULL, 0, bins);
    status = SLC_DEVICE_RUN(stream, compress_fold, &out, chunks);
    return status ? status : slc_fill_zero(stream, residue->scale, chunks * out.scales * sizeof(float));
}

/* ---- Looking at packets ---- */

static bool all_finite(const slc_compress_look_args *args, uint64_t scales)
{
    for (uint32_t r = 0; r < args->shape->ranks; r++) {
        const char *packet = (const char *)args->packets + r * args->stride;
        for (uint64_t s = 0; s < scales; s++) {
            float scale; /* copied, because it is not aligned */
            memcpy(&scale, packet + s * sizeof scale, sizeof scale);
            if (!isfinite(scale)) return false;
        }
    }
    return true;
}

static void compress_look_host(sluice_stream *stream, const slc_compress_look_args *args, uint64_t scales)
{
    (void)stream;
    sluice_step_words told = {.gradient_factor = 1};
    if (args->words) told = *args->words;
    const bool failed = !told.skip && args->shape->count && !all_finite(args, scales);
    if (failed) told.skip = SLC_EXCHANGE_FAILED;
    if (args->told) *args->told = told;
    if (failed && args->bad && args->number < *args->bad) *args->bad = args->number;
}

sluice_status slc_compress_look(sluice_stream *stream, const slc_compress_look_args *args)
{
    sluice_status status = slc_compress_check(args->shape);
    return status ? status : SLC_DEVICE_RUN(stream, compress_look, args, slc_compress_scales(args->shape));
}

/* ---- Pass 2 ---- */

sluice_status slc_compress_check_results(const slc_compress_results *results, uint64_t elements)
{
    const uint64_t all = results->shape->count, first = results->first, count = results->count;
    if (first % SLC_COMPRESS_UNIT || first > all || count > all - first ||
        (count % SLC_COMPRESS_UNIT && first + count != all))
        return slc_error(SLUICE_ERR_ARGUMENT, "compression: an update of elements %llu + %llu of %llu",
                         (unsigned long long)first, (unsigned long long)count, (unsigned long long)all);
    if (elements != all)
        return slc_error(SLUICE_ERR_ARGUMENT, "compression: an update of %llu elements after an exchange of %llu",
                         (unsigned long long)elements, (unsigned long long)all);
    return SLUICE_OK;
}

slc_compress_packets slc_compress_packets_of(const slc_compress_results *results)
{
    return (slc_compress_packets){.chunk = slc_compress_chunk(results->shape),
                                  .scale_elements = results->shape->scale_elements,
                                  .scales = slc_compress_scales(results->shape),
                                  .stride = results->stride,
                                  .packets = results->packets};
}

static void compress_apply_host(sluice_stream *stream, const slc_compress_apply_args *args, uint64_t count)
{
    if (!slc_compress_skips(args->words))
        slc_host_run(stream, count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_compress_apply_range), args);
}

sluice_status slc_compress_apply(sluice_stream *stream, const slc_adamw_settings *settings,
                                 const slc_compress_results *results, const slc_frozen_range *range, bool *finite)
{
    sluice_status status = slc_compress_check(results->shape);
    if (status || !results->count) return status;
    status = slc_compress_check_results(results, range->count);
    if (status) return status;
    const slc_compress_apply_args args = {.factors = slc_adamw_factors_of(settings, settings->learning_rate),
                                          .range = *range,
                                          .packets = slc_compress_packets_of(results),
                                          .first = results->first,
                                          .finite = finite,
                                          .words = settings->words};
    return SLC_DEVICE_RUN(stream, compress_apply, &args, results->count);
}

static void frozen_update_host(sluice_stream *stream, const slc_frozen_args *args)
{
    slc_frozen_args told = *args;
    if (slc_adamw_heed_words(args->words, &told.factors))
        slc_host_run(stream, args->range.count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_frozen_range_update), &told);
}

sluice_status slc_frozen_update(sluice_stream *stream, const slc_adamw_settings *settings, sluice_dtype gradient_dtype,
                                const void *gradient, const slc_frozen_range *range)
{
    const slc_frozen_args args = {slc_adamw_factors_of(settings, settings->learning_rate), *range, gradient_dtype,
                                  gradient, settings->words};
    return SLC_DEVICE_RUN(stream, frozen_update, &args);
}
