/* Items (one head of one sequence) are cut between threads, each with its own part of the workspace. */
#include "lib/kernels/attention/attention.h"

#include "lib/base/status.h"
#include "lib/kernels/attention/attention_cpu.h"
#include "lib/kernels/dispatch.h"

enum { LANE_COUNT = 16, GROUP_ROWS = 8 };

static uint64_t take(uint64_t *floats, uint64_t count)
{
    uint64_t at = *floats;
    *floats += attention_padded(count, LANE_COUNT);
    return at;
}

/* The table has slack because whole lanes are read and written from any place in it. */
static uint64_t table_floats(const slc_attention_shape *s)
{
    return s->relative ? attention_distances(s) + 3 + LANE_COUNT : 0;
}

slc_attention_forward_space slc_attention_forward_layout(const slc_attention_shape *s, bool cached)
{
    const uint64_t keys = ATTENTION_FORWARD_KEYS, queries = ATTENTION_FORWARD_QUERIES;
    const uint64_t padded = attention_padded(s->head_size, LANE_COUNT);
    const uint64_t packed = cached ? 0 : attention_padded(s->tokens, keys);
    slc_attention_forward_space at = {0};
    at.scores = take(&at.floats, GROUP_ROWS * keys);
    at.addends = take(&at.floats, GROUP_ROWS * keys + LANE_COUNT);
    at.factors = take(&at.floats, s->dropout ? keys + 2 * SLC_DROPOUT_GROUP : 0);
    at.query = take(&at.floats, queries * padded);
    at.sums = take(&at.floats, queries * padded);
    at.weights = take(&at.floats, queries * LANE_COUNT);
    at.mask = take(&at.floats, s->key_mask ? s->tokens : 0);
    at.table = take(&at.floats, table_floats(s));
    at.values = take(&at.floats, packed * padded);
    at.keys = take(&at.floats, packed * s->head_size);
    return at;
}

slc_attention_backward_space slc_attention_backward_layout(const slc_attention_shape *s)
{
    const uint64_t keys = ATTENTION_BACKWARD_KEYS, queries = ATTENTION_BACKWARD_QUERIES;
    const uint64_t padded = attention_padded(s->head_size, LANE_COUNT);
    slc_attention_backward_space at = {0};
    at.q = take(&at.floats, queries * padded);
    at.dout = take(&at.floats, queries * padded);
    at.k = take(&at.floats, keys * padded);
    at.kt = take(&at.floats, keys * s->head_size);
    at.vt = take(&at.floats, keys * s->head_size);
    at.p = take(&at.floats, queries * keys);
    at.ds = take(&at.floats, queries * keys);
    at.dk = take(&at.floats, keys * padded);
    at.dv = take(&at.floats, keys * padded);
    at.addends = take(&at.floats, GROUP_ROWS * keys + LANE_COUNT);
    at.factors = take(&at.floats, s->dropout ? keys + 2 * SLC_DROPOUT_GROUP : 0);
    at.delta = take(&at.floats, s->tokens);
    at.mask = take(&at.floats, s->key_mask ? s->tokens : 0);
    at.table = take(&at.floats, table_floats(s));
    at.dtable = take(&at.floats, table_floats(s));
    at.drelative = take(&at.floats, s->relative ? s->heads * (attention_distances(s) + 3) : 0);
    at.dq = take(&at.floats, s->tokens * padded);
    return at;
}

uint64_t slc_attention_part_floats(const slc_attention_shape *shape, bool cached)
{
    const uint64_t forward = slc_attention_forward_layout(shape, cached).floats;
    const uint64_t backward = cached ? 0 : slc_attention_backward_layout(shape).floats;
    return forward > backward ? forward : backward;
}

static uint64_t attention_workspace_bytes_host(const sluice_stream *stream, const slc_attention_shape *shape)
{
    return slc_host_parts(stream, shape->batch * shape->heads, 1) * slc_attention_part_floats(shape, false) *
           sizeof(float);
}

uint64_t slc_attention_workspace_bytes(const sluice_stream *stream, const slc_attention_shape *shape)
{
    return SLC_DEVICE_PICK(stream, attention_workspace_bytes)(stream, shape);
}

/* Checks the shape and fills in its default strides. */
static sluice_status resolve(const sluice_stream *stream, const char *what, slc_attention_shape *shape)
{
    const uint64_t all = shape->heads * shape->head_size;
    if (!shape->row_stride) shape->row_stride = all;
    if (!shape->out_stride) shape->out_stride = all;
    if (!all) return slc_error(SLUICE_ERR_ARGUMENT, "kernel %s: no heads, or heads of size 0", what);
    if (shape->dtype != SLUICE_FP32 && shape->dtype != SLUICE_BF16)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel %s: dtype %d is neither fp32 nor bf16", what, (int)shape->dtype);
    if (shape->row_stride < all || shape->out_stride < all)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel %s: tokens are %llu and %llu elements apart, but heads take %llu",
                         what, (unsigned long long)shape->row_stride, (unsigned long long)shape->out_stride,
                         (unsigned long long)all);
    if (shape->relative && shape->tokens != 1 + shape->window_h * shape->window_w)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "kernel %s: %llu tokens, but a window of %llu x %llu has one more than %llu", what,
                         (unsigned long long)shape->tokens, (unsigned long long)shape->window_h,
                         (unsigned long long)shape->window_w, (unsigned long long)(shape->window_h * shape->window_w));
    sluice_status status = slc_dropout_check(shape->dropout, what);
    if (shape->dropout && shape->dropout->probability == 0) shape->dropout = NULL;
    if (status || !SLC_ON_CUDA(stream) || shape->head_size <= SLC_ATTENTION_CUDA_DEPTH) return status;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "kernel %s: heads of %llu; at most %d on a GPU", what,
                     (unsigned long long)shape->head_size, SLC_ATTENTION_CUDA_DEPTH);
}

static void attention_forward_host(sluice_stream *stream, const slc_attention_forward_args *args)
{
    slc_host_run(stream, args->shape.batch * args->shape.heads, 1, 1, SLC_ISA_PICK(slc_attention_forward_range), args);
}

sluice_status slc_attention_forward(sluice_stream *stream, const slc_attention_forward_args *args)
{
    slc_attention_forward_args a = *args;
    a.cache = (slc_attention_cache){0};
    sluice_status status = resolve(stream, "attention_forward", &a.shape);
    return status ? status : SLC_DEVICE_RUN(stream, attention_forward, &a);
}

/* ---- With a cache ---- */

uint64_t slc_attention_cache_bytes(uint64_t heads, uint64_t head_size, uint64_t room)
{
    const uint64_t padded = attention_padded(head_size, LANE_COUNT);
    return heads * attention_padded(room, ATTENTION_FORWARD_KEYS) * (head_size + padded) * sizeof(float);
}

uint64_t slc_attention_extend_workspace_bytes(const sluice_stream *stream, const slc_attention_shape *shape)
{
    return slc_host_parts(stream, shape->heads, 1) * slc_attention_part_floats(shape, true) * sizeof(float);
}

static sluice_status check_extension(const sluice_stream *stream, const slc_attention_forward_args *args)
{
    const slc_attention_shape *shape = &args->shape;
    const slc_attention_cache *cache = &args->cache;
    if (shape->batch != 1 || !shape->causal || shape->key_mask || shape->bias || shape->relative || shape->dropout)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel attention_extend: the shape is of one causal sequence, without "
                                              "mask, biases and dropout");
    if (shape->tokens > cache->room || cache->tokens > cache->room - shape->tokens)
        return slc_error(
            SLUICE_ERR_ARGUMENT, "kernel attention_extend: %llu tokens follow %llu, and the cache has room for %llu",
            (unsigned long long)shape->tokens, (unsigned long long)cache->tokens, (unsigned long long)cache->room);
    return slc_host_check(stream, "attention_extend");
}

sluice_status slc_attention_extend(sluice_stream *stream, const slc_attention_forward_args *args)
{
    slc_attention_forward_args a = *args;
    a.logsumexp = NULL;
    sluice_status status = check_extension(stream, &a);
    if (!status) status = resolve(stream, "attention_extend", &a.shape);
    if (!status) attention_forward_host(stream, &a);
    return status;
}

/* ---- Backward ---- */

/* Adds up the parts' sums, in their order; the table has a column for each head. */
static void drelative_join(const sluice_stream *stream, const slc_attention_backward_args *args)
{
    const slc_attention_shape *s = &args->shape;
    const uint64_t rows = attention_distances(s) + 3, from = slc_attention_backward_layout(s).drelative;
    const uint64_t part_floats = slc_attention_part_floats(s, false);
    const uint32_t parts = slc_host_parts(stream, s->batch * s->heads, 1);
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t head = 0; head < s->heads; head++) {
            const float *sums = (const float *)args->workspace + from + head * rows + row;
            float sum = 0;
            for (uint32_t part = 0; part < parts; part++) sum += sums[part * part_floats];
            uint64_t at = row * s->heads + head;
            if (args->gradient == SLUICE_BF16) {
                uint16_t *to = (uint16_t *)args->drelative + at;
                *to = sluice_bf16_from_float(args->fresh ? sum : sluice_bf16_to_float(*to) + sum);
            } else {
                float *to = (float *)args->drelative + at;
                *to = args->fresh ? sum : *to + sum;
            }
        }
}

static void attention_backward_host(sluice_stream *stream, const slc_attention_backward_args *args)
{
    slc_host_run(stream, args->shape.batch * args->shape.heads, 1, 1, SLC_ISA_PICK(slc_attention_backward_range), args);
    if (args->drelative) drelative_join(stream, args);
}

sluice_status slc_attention_backward(sluice_stream *stream, const slc_attention_backward_args *args)
{
    slc_attention_backward_args a = *args;
    sluice_status status = resolve(stream, "attention_backward", &a.shape);
    if (status) return status;
    if (a.drelative && !a.shape.relative)
        return slc_error(SLUICE_ERR_ARGUMENT, "kernel attention_backward: a gradient of a relative-position bias that "
                                              "the shape does not have");
    return SLC_DEVICE_RUN(stream, attention_backward, &a);
}
