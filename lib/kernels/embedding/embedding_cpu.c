/* Forward adds up to three rows. Backward goes through the rows of the gradient and adds to each all that belongs to
 * it: the sum of these stays in the first-level cache, and is added at the end.
 * embedding_test.c covers this file. */
#include "lib/kernels/embedding/embedding.h"

#include "lib/kernels/host.h"
#include "lib/kernels/lanes.h"

enum { PIECE = 1024 }; /* channels that are summed at a time */

/* Prefetches a line of the next row: rows are scattered, so the processor cannot foresee it. */
LANES_INLINE void expect(sluice_dtype dtype, const void *p, uint64_t at)
{
    __builtin_prefetch((const char *)p + at * sluice_dtype_bytes(dtype));
}

/* Element at which each of the three rows, the next token's row and the output row begins. */
typedef struct {
    uint64_t token, position, type, next, out;
    bool stream; /* out is stored past the cache */
} places;

LANES_INLINE void forward_lanes(const slc_embedding_forward_args *args, sluice_dtype dtype, bool positions, bool types,
                                places at, uint64_t c, uint64_t left)
{
    expect(dtype, args->tables.token, at.next + c);
    lanes sum = lanes_load_some_as(dtype, args->tables.token, at.token + c, left, 0.0f);
    if (positions) sum = lanes_add(sum, lanes_load_some_as(dtype, args->tables.position, at.position + c, left, 0.0f));
    if (types) sum = lanes_add(sum, lanes_load_some_as(dtype, args->tables.type, at.type + c, left, 0.0f));
    lanes_stream_some_as(dtype, args->out, at.out + c, left, sum, at.stream);
}

LANES_INLINE void forward(const slc_embedding_forward_args *all, sluice_dtype dtype, bool positions, bool types,
                          bool stream, uint64_t first, uint64_t last)
{
    const slc_embedding_forward_args args = *all;
    const uint64_t channels = args.channels;
    for (uint64_t row = first; row < last; row++) {
        const places at = {.token = (uint64_t)args.tokens[row] * channels,
                           .position = row % args.length * channels,
                           .type = types && args.types ? (uint64_t)args.types[row] * channels : 0,
                           .next = (uint64_t)args.tokens[row + 1 < last ? row + 1 : row] * channels,
                           .out = row * channels,
                           .stream = stream};
        uint64_t c = 0;
        for (; c + LANES <= channels; c += LANES) forward_lanes(&args, dtype, positions, types, at, c, LANES);
        if (c < channels) forward_lanes(&args, dtype, positions, types, at, c, channels - c);
    }
    if (stream) lanes_stream_end();
}

LANES_INLINE void forward_by_tables(sluice_dtype dtype, bool stream, const slc_embedding_forward_args *args,
                                    uint64_t first, uint64_t last)
{
    if (args->tables.position && args->tables.type)
        forward(args, dtype, true, true, stream, first, last);
    else if (args->tables.position)
        forward(args, dtype, true, false, stream, first, last);
    else if (args->tables.type)
        forward(args, dtype, false, true, stream, first, last);
    else
        forward(args, dtype, false, false, stream, first, last);
}

void SLC_ISA(slc_embedding_forward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_embedding_forward_args *args = context;
    const uint64_t bytes = args->batch * args->length * args->channels * sluice_dtype_bytes(args->dtype);
    const bool stream = args->channels % LANES == 0 && slc_host_streams(args->out, bytes);
    if (stream)
        LANES_BY_TYPE(args->dtype, forward_by_tables, true, args, first, last);
    else
        LANES_BY_TYPE(args->dtype, forward_by_tables, false, args, first, last);
}

/* Rows of dout: those that `order` lists, or first, first + stride, ... */
typedef struct {
    const uint32_t *order;
    uint64_t first, stride, count, after; /* after: the row that will be read next */
} row_list;

LANES_INLINE uint64_t row_at(const row_list *rows, uint64_t i)
{
    return rows->order ? rows->order[i] : rows->first + i * rows->stride;
}

/* A row of dout that is added to `sum`; with the last one the sum is added to `to`. The row at next_at is the next one
 * to be read. */
typedef struct {
    const void *x;
    uint64_t x_at, next_at;
    float *sum;
    void *to;
} addition;

LANES_INLINE void add_lanes(sluice_dtype dtype, sluice_dtype gradient, bool begins, bool ends, addition a, uint64_t c,
                            uint64_t left)
{
    expect(dtype, a.x, a.next_at + c);
    lanes sum = begins ? lanes_set(0.0f) : lanes_load_some_as(SLUICE_FP32, a.sum, c, left, 0.0f);
    sum = lanes_add(sum, lanes_load_some_as(dtype, a.x, a.x_at + c, left, 0.0f));
    if (ends)
        lanes_store_some_as(gradient, a.to, c, left, lanes_add(lanes_load_some_as(gradient, a.to, c, left, 0.0f), sum));
    else
        lanes_store_some_as(SLUICE_FP32, a.sum, c, left, sum);
}

LANES_INLINE void add(sluice_dtype dtype, sluice_dtype gradient, bool begins, bool ends, addition a, uint64_t count)
{
    uint64_t c = 0;
    for (; c + LANES <= count; c += LANES) add_lanes(dtype, gradient, begins, ends, a, c, LANES);
    if (c < count) add_lanes(dtype, gradient, begins, ends, a, c, count - c);
}

/* Adds to channels first..last-1 of one row of the table. */
LANES_INLINE void add_rows(const slc_embedding_table_args *args, sluice_dtype dtype, sluice_dtype gradient,
                           uint64_t table_row, row_list rows, uint64_t first, uint64_t last)
{
    const uint64_t channels = args->all.channels;
    for (uint64_t at = first; at < last; at += PIECE) {
        uint64_t count = last - at < PIECE ? last - at : PIECE;
        float sum[PIECE];
        for (uint64_t i = 0; i < rows.count; i++) {
            const bool begins = i == 0, ends = i + 1 == rows.count;
            const addition a = {.x = args->all.dout,
                                .x_at = row_at(&rows, i) * channels + at,
                                .next_at = (ends ? rows.after : row_at(&rows, i + 1)) * channels + at,
                                .sum = sum,
                                .to = (char *)args->table + (table_row * channels + at) * sluice_dtype_bytes(gradient)};
            if (begins && ends)
                add(dtype, gradient, true, true, a, count);
            else if (begins)
                add(dtype, gradient, true, false, a, count);
            else if (ends)
                add(dtype, gradient, false, true, a, count);
            else
                add(dtype, gradient, false, false, a, count);
        }
    }
}

LANES_INLINE void by_key(sluice_dtype dtype, sluice_dtype gradient, const slc_embedding_table_args *args,
                         uint64_t first, uint64_t last)
{
    const uint64_t rows = args->all.batch * args->all.length;
    if (!args->keys) {
        add_rows(args, dtype, gradient, 0, (row_list){NULL, 0, 1, rows, 0}, first, last);
        return;
    }
    for (uint64_t at = 0, end; at < rows; at = end) {
        int32_t key = args->keys[args->order[at]];
        for (end = at + 1; end < rows && args->keys[args->order[end]] == key;) end++;
        uint64_t after = args->order[end < rows ? end : at];
        if (key == args->padding) continue;
        add_rows(args, dtype, gradient, (uint64_t)key, (row_list){args->order + at, 0, 0, end - at, after}, first,
                 last);
    }
}

LANES_INLINE void by_position(sluice_dtype dtype, sluice_dtype gradient, const slc_embedding_table_args *args,
                              uint64_t first, uint64_t last)
{
    for (uint64_t t = 0; t < args->all.length; t++)
        add_rows(args, dtype, gradient, t, (row_list){NULL, t, args->all.length, args->all.batch, t + 1}, first, last);
}

LANES_KERNEL_OF_TYPES(slc_embedding_keys_range, slc_embedding_table_args, all.dtype, all.gradient, by_key)

LANES_KERNEL_OF_TYPES(slc_embedding_position_range, slc_embedding_table_args, all.dtype, all.gradient, by_position)
