/* All work of compression that does not depend on the instruction set. */
#include "lib/kernels/compress/compress.h"

#include "lib/base/status.h"
#include "lib/kernels/compress/compress_cpu.h"
#include "lib/kernels/host.h"

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

/* Returns how many elements an item has. */
static uint64_t item_elements(const slc_compress_shape *shape)
{
    return shape->scale_elements ? shape->scale_elements : SLC_COMPRESS_GRAIN;
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

static void run_items(sluice_stream *stream, const slc_compress_shape *shape, uint64_t items, slc_range_kernel *kernel,
                      const void *args)
{
    slc_host_run(stream, items, in_pieces(GRAIN, item_elements(shape)), 1, kernel, args);
}

/* Checks the shape and the stream. */
static sluice_status begin(const sluice_stream *stream, const slc_compress_shape *shape, const char *kernel)
{
    sluice_status status = slc_compress_check(shape);
    return status ? status : slc_host_check(stream, kernel);
}

sluice_status slc_compress_worker(sluice_stream *stream, const slc_compress_shape *shape,
                                  const slc_compress_input *input, const slc_residue *worker, void *packets,
                                  uint64_t stride)
{
    sluice_status status = begin(stream, shape, "compress");
    if (status || !shape->count) return status;
    int64_t bins[SLC_NORM_BINS] = {0};
    const slc_compress_worker_args args = {out_of(shape, worker, packets, stride, bins), *input, shape->count};
    const slc_compress_out *out = &args.out;
    run_items(stream, shape, shape->ranks * in_pieces(out->chunk, item_elements(shape)),
              SLC_ISA_PICK(slc_compress_worker_range), &args);
    float scale = shape->scale_elements ? 0 : slc_compress_scale(bins, shape->ranks * out->chunk);
    for (uint32_t k = 0; k < shape->ranks; k++) {
        if (!shape->scale_elements) worker->scale[k] = scale;
        memcpy(out->packets + k * out->stride, worker->scale + k * out->scales, out->scales * sizeof(float));
    }
    return SLUICE_OK;
}

sluice_status slc_compress_server(sluice_stream *stream, const slc_compress_served *chunk, uint64_t first,
                                  uint64_t count)
{
    const slc_compress_shape *shape = chunk->shape;
    sluice_status status = begin(stream, shape, "compress_server");
    if (status || !count) return status;
    slc_compress_server_args args = {out_of(shape, chunk->server, chunk->packet, 0, chunk->bins), chunk->packets,
                                     shape->ranks};
    uint64_t item = item_elements(shape);
    if (first % item || first > args.out.chunk || count > args.out.chunk - first ||
        (count % item && first + count != args.out.chunk))
        return slc_error(SLUICE_ERR_ARGUMENT, "compression: elements %llu + %llu of a chunk of %llu",
                         (unsigned long long)first, (unsigned long long)count, (unsigned long long)args.out.chunk);
    args.out.first_item = first / item;
    run_items(stream, shape, in_pieces(count, item), SLC_ISA_PICK(slc_compress_server_range), &args);
    return SLUICE_OK;
}

void slc_compress_server_end(const slc_compress_served *chunk)
{
    const slc_compress_shape *shape = chunk->shape;
    const slc_residue *server = chunk->server;
    if (!shape->count) return;
    if (!shape->scale_elements) server->scale[0] = slc_compress_scale(chunk->bins, slc_compress_chunk(shape));
    memcpy(chunk->packet, server->scale, slc_compress_scales(shape) * sizeof(float));
}

sluice_status slc_compress_fold(sluice_stream *stream, const slc_compress_shape *shape, uint32_t chunks,
                                const slc_residue *residue)
{
    sluice_status status = begin(stream, shape, "compress_fold");
    if (status || !shape->count) return status;
    int64_t bins[SLC_NORM_BINS] = {0};
    const slc_compress_out out = out_of(shape, residue, NULL, 0, bins);
    run_items(stream, shape, chunks * in_pieces(out.chunk, item_elements(shape)), SLC_ISA_PICK(slc_compress_fold_range),
              &out);
    memset(residue->scale, 0, chunks * out.scales * sizeof(float));
    return SLUICE_OK;
}

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

sluice_status slc_compress_apply(sluice_stream *stream, const slc_adamw_settings *settings,
                                 const slc_compress_results *results, const slc_frozen_range *range, bool *finite)
{
    sluice_status status = begin(stream, results->shape, "compress_apply");
    if (status || !results->count) return status;
    status = slc_compress_check_results(results, range->count);
    if (status) return status;
    const slc_compress_apply_args args = {.factors = slc_adamw_factors_of(settings, settings->learning_rate),
                                          .range = *range,
                                          .packets = slc_compress_packets_of(results),
                                          .first = results->first,
                                          .finite = finite};
    slc_host_run(stream, results->count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_compress_apply_range), &args);
    return SLUICE_OK;
}

sluice_status slc_frozen_update(sluice_stream *stream, const slc_adamw_settings *settings, sluice_dtype gradient_dtype,
                                const void *gradient, const slc_frozen_range *range)
{
    sluice_status status = slc_host_check(stream, "frozen_update");
    if (status) return status;
    const slc_frozen_args args = {slc_adamw_factors_of(settings, settings->learning_rate), *range, gradient_dtype,
                                  gradient};
    slc_host_run(stream, range->count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_frozen_range_update), &args);
    return SLUICE_OK;
}
