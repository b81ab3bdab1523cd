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

static void work_on_tensor(sluice_stream *stream, const slc_compress_worker_args *given)
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

static void compress_worker_many_host(sluice_stream *stream, uint32_t count, const slc_compress_worker_args *args)
{
    for (uint32_t i = 0; i < count; i++) work_on_tensor(stream, &args[i]);
}

static sluice_status worker_args(const sluice_stream *stream, const slc_compress_tensor *t,
                                 slc_compress_worker_args *out)
{
    sluice_status status = slc_compress_check(t->shape);
    if (status) return status;
    if (SLC_ON_CUDA(stream) && !t->shape->scale_elements && !t->worker->bins)
        return slc_error(SLUICE_ERR_ARGUMENT, "compression: a GPU needs bins next to the residue");
    *out = (slc_compress_worker_args){.out = out_of(t->shape, t->worker, t->packets, t->stride, t->worker->bins),
                                      .input = t->input,
                                      .count = t->shape->count,
                                      .ranks = t->shape->ranks};
    return SLUICE_OK;
}

/* Returns true if the tensor is of other types than the first of those that are gathered. */
static bool differs(const slc_compress_input *first, const slc_compress_input *next)
{
    return first->gradient_dtype != next->gradient_dtype || first->momentum_dtype != next->momentum_dtype;
}

sluice_status slc_compress_worker_many(sluice_stream *stream, uint32_t count, const slc_compress_tensor *tensors)
{
    slc_compress_worker_args args[SLC_COMPRESS_TOGETHER];
    uint32_t gathered = 0;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < count; i++) {
        const bool full = gathered == SLC_COMPRESS_TOGETHER;
        if (gathered && (full || differs(&args[0].input, &tensors[i].input))) {
            status = SLC_DEVICE_RUN(stream, compress_worker_many, gathered, args);
            gathered = 0;
        }
        if (!status && tensors[i].shape->count) status = worker_args(stream, &tensors[i], &args[gathered++]);
    }
    return status || !gathered ? status : SLC_DEVICE_RUN(stream, compress_worker_many, gathered, args);
}

sluice_status slc_compress_worker(sluice_stream *stream, const slc_compress_shape *shape,
                                  const slc_compress_input *input, const slc_residue *worker, void *packets,
                                  uint64_t stride)
{
    const slc_compress_tensor tensor = {shape, *input, worker, packets, stride};
    sluice_status status = slc_compress_check(shape);
    return status ? status : slc_compress_worker_many(stream, 1, &tensor);
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

static void serve_arrived(sluice_stream *stream, const slc_compress_arrived_args *a)
{
    const void *packets[SLC_COMPRESS_CUDA_MOST];
    for (uint32_t r = 0; r < a->ranks; r++)
        packets[r] = r == a->rank ? a->own : (const char *)a->packets + r * a->stride;
    const slc_compress_server_args args = {
        .out = a->out, .packets = packets, .ranks = a->ranks, .count = a->out.chunk, .words = a->words};
    if (!a->out.scale_elements) memset(a->out.bins, 0, SLC_NORM_BINS * sizeof *a->out.bins);
    compress_server_host(stream, &args);
    compress_server_end_host(stream, &a->out, a->words);
}

static void compress_server_many_host(sluice_stream *stream, uint32_t count, const slc_compress_arrived_args *args)
{
    for (uint32_t i = 0; i < count; i++) serve_arrived(stream, &args[i]);
}

sluice_status slc_compress_server_many(sluice_stream *stream, uint32_t count, const slc_compress_arrived *chunks)
{
    slc_compress_arrived_args args[SLC_COMPRESS_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < count;) {
        uint32_t gathered = 0;
        for (; !status && i < count && gathered < SLC_COMPRESS_TOGETHER; i++) {
            const slc_compress_arrived *c = &chunks[i];
            status = slc_compress_check(c->shape);
            if (!status && c->shape->ranks > SLC_COMPRESS_CUDA_MOST)
                status = slc_error(SLUICE_ERR_UNSUPPORTED, "compression over %u ranks: packets of up to %d may arrive",
                                   c->shape->ranks, SLC_COMPRESS_CUDA_MOST);
            if (status || !c->shape->count) continue;
            args[gathered++] = (slc_compress_arrived_args){out_of(c->shape, c->server, c->packet, 0, c->server->bins),
                                                           c->packets,
                                                           c->own,
                                                           c->stride,
                                                           c->rank,
                                                           c->shape->ranks,
                                                           c->words};
        }
        if (!status && gathered) status = SLC_DEVICE_RUN(stream, compress_server_many, gathered, args);
    }
    return status;
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

static bool all_finite(const slc_compress_looked *of)
{
    for (uint32_t r = 0; r < of->look.shape->ranks; r++) {
        const char *packet = (const char *)of->look.packets + r * of->look.stride;
        for (uint64_t s = 0; s < of->scales; s++) {
            float scale; /* copied, because it is not aligned */
            memcpy(&scale, packet + s * sizeof scale, sizeof scale);
            if (!isfinite(scale)) return false;
        }
    }
    return true;
}

static void look_at_tensor(const slc_compress_looked *of)
{
    const slc_compress_look_args *args = &of->look;
    sluice_step_words told = {.gradient_factor = 1};
    if (args->words) told = *args->words;
    const bool failed = !told.skip && args->shape->count && !all_finite(of);
    if (failed) told.skip = SLC_EXCHANGE_FAILED;
    if (args->told) *args->told = told;
    if (failed && args->bad && args->number < *args->bad) *args->bad = args->number;
    for (uint32_t i = 0; i < args->cleared_count; i++) args->cleared[i] = 0;
}

static void compress_look_many_host(sluice_stream *stream, uint32_t count, const slc_compress_looked *args)
{
    (void)stream;
    for (uint32_t i = 0; i < count; i++) look_at_tensor(&args[i]);
}

sluice_status slc_compress_look_many(sluice_stream *stream, uint32_t count, const slc_compress_look_args *args)
{
    slc_compress_looked looked[SLC_COMPRESS_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < count; first += SLC_COMPRESS_TOGETHER) {
        const uint32_t left = count - first, own = left < SLC_COMPRESS_TOGETHER ? left : SLC_COMPRESS_TOGETHER;
        for (uint32_t i = 0; !status && i < own; i++) {
            status = slc_compress_check(args[first + i].shape);
            if (!status) looked[i] = (slc_compress_looked){args[first + i], slc_compress_scales(args[first + i].shape)};
        }
        if (!status) status = SLC_DEVICE_RUN(stream, compress_look_many, own, looked);
    }
    return status;
}

sluice_status slc_compress_look(sluice_stream *stream, const slc_compress_look_args *args)
{
    return slc_compress_look_many(stream, 1, args);
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

static void compress_apply_many_host(sluice_stream *stream, uint32_t count, const slc_compress_apply_args *args)
{
    for (const slc_compress_apply_args *a = args; a < args + count; a++)
        if (!slc_compress_skips(a->words))
            slc_host_run(stream, a->count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_compress_apply_range), a);
}

static sluice_status apply_args(const slc_compress_update *u, bool *finite, slc_compress_apply_args *out)
{
    sluice_status status = slc_compress_check(u->results.shape);
    if (!status && u->results.count) status = slc_compress_check_results(&u->results, u->range.count);
    *out = (slc_compress_apply_args){.factors = slc_adamw_factors_of(&u->settings, u->settings.learning_rate),
                                     .range = u->range,
                                     .packets = slc_compress_packets_of(&u->results),
                                     .first = u->results.first,
                                     .count = u->results.count,
                                     .finite = finite,
                                     .words = u->settings.words};
    return status;
}

sluice_status slc_compress_apply_many(sluice_stream *stream, uint32_t count, const slc_compress_update *updates)
{
    slc_compress_apply_args args[SLC_COMPRESS_TOGETHER];
    uint32_t gathered = 0;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < count; i++) {
        const bool full = gathered == SLC_COMPRESS_TOGETHER;
        if (gathered && (full || args[0].range.momentum_dtype != updates[i].range.momentum_dtype)) {
            status = SLC_DEVICE_RUN(stream, compress_apply_many, gathered, args);
            gathered = 0;
        }
        if (!status) status = apply_args(&updates[i], NULL, &args[gathered++]);
    }
    return status || !gathered ? status : SLC_DEVICE_RUN(stream, compress_apply_many, gathered, args);
}

sluice_status slc_compress_apply(sluice_stream *stream, const slc_adamw_settings *settings,
                                 const slc_compress_results *results, const slc_frozen_range *range, bool *finite)
{
    const slc_compress_update update = {*settings, *results, *range};
    slc_compress_apply_args args;
    sluice_status status = apply_args(&update, finite, &args);
    return status ? status : SLC_DEVICE_RUN(stream, compress_apply_many, 1, &args);
}

static void frozen_update_many_host(sluice_stream *stream, uint32_t count, const slc_frozen_args *args)
{
    for (uint32_t i = 0; i < count; i++) {
        slc_frozen_args told = args[i];
        if (slc_adamw_heed_words(told.words, &told.factors))
            slc_host_run(stream, told.range.count, GRAIN, SLC_COMPRESS_UNIT, SLC_ISA_PICK(slc_frozen_range_update),
                         &told);
    }
}

sluice_status slc_frozen_update_many(sluice_stream *stream, const slc_adamw_settings *settings, uint32_t count,
                                     sluice_dtype gradient_dtype, const void *const *gradients,
                                     const slc_frozen_range *ranges)
{
    const slc_adamw_factors factors = slc_adamw_factors_of(settings, settings->learning_rate);
    slc_frozen_args args[SLC_COMPRESS_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < count; first += SLC_COMPRESS_TOGETHER) {
        const uint32_t left = count - first, own = left < SLC_COMPRESS_TOGETHER ? left : SLC_COMPRESS_TOGETHER;
        for (uint32_t i = 0; i < own; i++)
            args[i] =
                (slc_frozen_args){factors, ranges[first + i], gradient_dtype, gradients[first + i], settings->words};
        status = SLC_DEVICE_RUN(stream, frozen_update_many, own, args);
    }
    return status;
}

sluice_status slc_frozen_update(sluice_stream *stream, const slc_adamw_settings *settings, sluice_dtype gradient_dtype,
                                const void *gradient, const slc_frozen_range *range)
{
    return slc_frozen_update_many(stream, settings, 1, gradient_dtype, &gradient, range);
}
