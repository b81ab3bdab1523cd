/* Forward goes over runs of elements that lie in one row; their dropout factors are made in advance, into the
 * first-level cache. Column sums go down eight rows at a time: these are eight streams that the processor can prefetch,
 * and there is one access to the sums for eight to dy. residual_test.c covers this file. */
#include "lib/kernels/residual/residual.h"

#include "lib/kernels/dropout/dropout_lanes.h"
#include "lib/kernels/host.h"
#include "lib/kernels/lanes.h"

enum { RUN = 1024, ROOM = RUN + 2 * SLC_DROPOUT_GROUP };

LANES_INLINE uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* (x + bias) * factor */
LANES_INLINE lanes branch(sluice_dtype dtype, const void *x, uint64_t at, const void *bias, uint64_t column,
                          const float *factor, uint64_t left)
{
    lanes v = lanes_load_some_as(dtype, x, at, left, 0.0f);
    if (bias) v = lanes_add(v, lanes_load_some_as(dtype, bias, column, left, 0.0f));
    return factor ? lanes_mul(v, lanes_load(factor)) : v;
}

/* The factor of one sequence, which its rows share. */
typedef struct {
    uint64_t sequence; /* UINT64_MAX: none yet */
    float factor;
} path_factor;

static __attribute__((noinline, unused)) void draw_path(const slc_drop_path *path, uint64_t sequence, path_factor *out)
{
    float room[1 + 2 * SLC_DROPOUT_GROUP];
    *out = (path_factor){sequence, *dropout_factors(&path->draw, sequence, 1, room)};
}

/* The factor of a row: that of all rows times its sequence's. */
LANES_INLINE lanes take_row(float all, const slc_drop_path *path, uint64_t row, path_factor *last)
{
    if (path && row / path->rows != last->sequence) draw_path(path, row / path->rows, last);
    return lanes_set(all * last->factor);
}

LANES_INLINE void forward(sluice_dtype dtype, const slc_residual_forward_args *context, uint64_t first, uint64_t last)
{
    const slc_residual_forward_args args = *context;
    const uint64_t bytes = args.rows * args.channels * sluice_dtype_bytes(dtype);
    const bool in_place = args.out == args.x || args.out == args.residual,
               whole_rows = args.channels % LANES == 0 || args.rows == 1,
               stream = !in_place && whole_rows && slc_host_streams(args.out, bytes);
    float room[ROOM + LANES];
    path_factor drawn = {UINT64_MAX, 1};
    for (uint64_t at = first; at < last;) {
        const uint64_t column = at % args.channels, count = least(least(last - at, args.channels - column), RUN);
        const float *factors = args.dropout ? dropout_factors(args.dropout, at, count, room) : NULL;
        const lanes times = take_row(args.factor, args.path, at / args.channels, &drawn);
        for (uint64_t i = 0; i < count; i += LANES) {
            const uint64_t left = count - i;
            lanes v = branch(dtype, args.x, at + i, args.bias, column + i, factors ? factors + i : NULL, left);
            if (args.scale) v = lanes_mul(v, lanes_load_some_as(dtype, args.scale, column + i, left, 0.0f));
            v = lanes_mul(v, times);
            if (args.residual) v = lanes_add(v, lanes_load_some_as(dtype, args.residual, at + i, left, 0.0f));
            lanes_stream_some_as(dtype, args.out, at + i, left, v, stream);
        }
        at += count;
    }
    if (stream) lanes_stream_end();
}

LANES_KERNEL(slc_residual_forward_range, slc_residual_forward_args, dtype, forward)

LANES_INLINE void backward(sluice_dtype dtype, const slc_residual_backward_args *context, uint64_t first, uint64_t last)
{
    const slc_residual_backward_args args = *context;
    float room[ROOM + LANES], *sums = args.workspace;
    path_factor drawn = {UINT64_MAX, 1};
    for (uint64_t column = first; column < last; column++) sums[column] = 0;
    for (uint64_t row = 0; row < args.rows; row++) {
        const lanes times = take_row(args.factor, args.path, row, &drawn);
        for (uint64_t column = first; column < last; column += RUN) {
            const uint64_t at = row * args.channels + column, count = least(last - column, RUN);
            const float *factors = args.dropout ? dropout_factors(args.dropout, at, count, room) : NULL;
            for (uint64_t i = 0; i < count; i += LANES) {
                const uint64_t left = count - i;
                const float *factor = factors ? factors + i : NULL;
                lanes d = lanes_mul(lanes_load_some_as(dtype, args.dout, at + i, left, 0.0f), times);
                lanes kept = branch(dtype, args.x, at + i, args.bias, column + i, factor, left);
                lanes sum = lanes_load_some(sums + column + i, left, 0.0f);
                lanes dx = lanes_mul(d, lanes_load_some_as(dtype, args.scale, column + i, left, 0.0f));
                if (factor) dx = lanes_mul(dx, lanes_load(factor));
                lanes_store_some(sums + column + i, left, lanes_add(sum, lanes_mul(d, kept)));
                lanes_store_some_as(dtype, args.dx, at + i, left, dx);
            }
        }
    }
}

LANES_KERNEL(slc_residual_backward_range, slc_residual_backward_args, dtype, backward)

enum { ROWS = 8 };

/* Sums eight rows, or fewer: missing rows count as zero. */
LANES_INLINE lanes rows_sum(sluice_dtype dtype, const slc_bias_backward_args *args, uint64_t at, uint64_t rows,
                            uint64_t left)
{
    lanes row[ROWS];
    for (uint64_t i = 0; i < ROWS; i++)
        row[i] = i < rows ? lanes_load_some_as(dtype, args->dy, at + i * args->stride, left, 0.0f) : lanes_set(0.0f);
    for (int half = ROWS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) row[i] = lanes_add(row[i], row[i + half]);
    return row[0];
}

LANES_INLINE void bias(sluice_dtype dtype, const slc_bias_backward_args *args, uint64_t first, uint64_t last)
{
    float *sums = args->workspace;
    for (uint64_t column = first; column < last; column++) sums[column] = 0;
    for (uint64_t row = 0; row < args->rows; row += ROWS) {
        const uint64_t base = row * args->stride, rows = least(args->rows - row, ROWS);
        for (uint64_t column = first; column < last; column += LANES) {
            const uint64_t left = last - column;
            lanes sum = rows == ROWS && left >= LANES ? rows_sum(dtype, args, base + column, ROWS, LANES)
                                                      : rows_sum(dtype, args, base + column, rows, left);
            lanes_store_some(sums + column, left, lanes_add(lanes_load_some(sums + column, left, 0.0f), sum));
        }
    }
    for (uint64_t column = first; column < last; column++) sums[column] = args->factor * sums[column];
}

LANES_KERNEL(slc_bias_backward_range, slc_bias_backward_args, dtype, bias)
