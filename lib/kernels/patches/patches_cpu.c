/* Unfolding copies runs of `patch` pixels. The embedding's backward reads dout once: the rows that one place has in the
 * whole batch go to dx and, summed in the first-level cache, to the place's gradient.
 * patches_test.c covers this file. */
#include "lib/kernels/patches/patches.h"

#include "lib/kernels/host.h"
#include "lib/kernels/lanes.h"

enum { PIECE = 1024 }; /* channels that are summed at a time */

/* Says whether results are stored past the cache; their rows are whole lanes then. */
static bool streams(sluice_dtype dtype, const void *out, uint64_t elements, uint64_t row)
{
    return row % LANES == 0 && slc_host_streams(out, elements * sluice_dtype_bytes(dtype));
}

/* ---- unfold ---- */

LANES_INLINE void convert_run(sluice_dtype dtype, bool stream, uint64_t count, const float *from, void *to, uint64_t at)
{
    uint64_t i = 0;
    for (; i + LANES <= count; i += LANES) lanes_stream_some_as(dtype, to, at + i, LANES, lanes_load(from + i), stream);
    if (i < count) lanes_store_some_as(dtype, to, at + i, count - i, lanes_load_tail(from + i, count - i, 0.0f));
}

/* Lines of an image lie apart, so the same line of the next patch is prefetched meanwhile. */
LANES_INLINE void unfold(sluice_dtype dtype, bool stream, const slc_patches_unfold_args *all, uint64_t first,
                         uint64_t last)
{
    const slc_patches_unfold_args copy = *all, *args = &copy; /* a copy that stores cannot change */
    const slc_patch_shape s = args->shape;
    const uint64_t down = s.height / s.patch, across = s.width / s.patch;
    uint64_t at = first * across * s.image_channels * s.patch * s.patch;
    for (uint64_t strip = first; strip < last; strip++)
        for (uint64_t px = 0; px < across; px++)
            for (uint64_t c = 0; c < s.image_channels; c++) {
                uint64_t plane = strip / down * s.image_channels + c, line = plane * s.height + strip % down * s.patch;
                const float *pixel = (const float *)args->pixels + line * s.width + px * s.patch;
                const uint64_t next = px + 1 < across ? s.patch : s.patch * s.width - px * s.patch;
                for (uint64_t i = 0; i < s.patch; i++, at += s.patch) {
                    __builtin_prefetch(pixel + i * s.width + next);
                    convert_run(dtype, stream, s.patch, pixel + i * s.width, args->columns, at);
                }
            }
    if (stream) lanes_stream_end();
}

void SLC_ISA(slc_patches_unfold_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_patches_unfold_args *args = context;
    const slc_patch_shape *s = &args->shape;
    const bool stream =
        streams(args->dtype, args->columns, s->batch * s->image_channels * s->height * s->width, s->patch);
    if (stream)
        LANES_BY_TYPE(args->dtype, unfold, true, args, first, last);
    else
        LANES_BY_TYPE(args->dtype, unfold, false, args, first, last);
}

/* ---- embedding, forward ---- */

/* Elements at which a row of out, what goes there and what is added to it begin. */
typedef struct {
    const void *from;
    uint64_t from_at, position_at, out_at;
    bool stream;
} row_place;

LANES_INLINE void forward_lanes(const slc_patch_embedding_forward_args *args, sluice_dtype dtype, bool positions,
                                row_place row, uint64_t c, uint64_t left)
{
    lanes sum = lanes_load_some_as(dtype, row.from, row.from_at + c, left, 0.0f);
    if (positions) sum = lanes_add(sum, lanes_load_some_as(dtype, args->position, row.position_at + c, left, 0.0f));
    lanes_stream_some_as(dtype, args->out, row.out_at + c, left, sum, row.stream);
}

LANES_INLINE void forward(sluice_dtype dtype, bool positions, const slc_patch_embedding_forward_args *all,
                          uint64_t first, uint64_t last)
{
    const slc_patch_embedding_forward_args copy = *all, *args = &copy;
    const uint64_t channels = args->channels, rows = 1 + args->patches;
    const bool stream = streams(dtype, args->out, args->batch * rows * channels, channels);
    for (uint64_t row = first; row < last; row++) {
        uint64_t place = row % rows, patch = row / rows * args->patches + place - 1, c = 0;
        row_place at = {args->cls, 0, place * channels, row * channels, stream};
        if (place) {
            bool hidden = args->masked && args->masked[patch];
            at.from = hidden ? args->mask_token : args->x;
            at.from_at = hidden ? 0 : patch * channels;
        }
        for (; c + LANES <= channels; c += LANES) forward_lanes(args, dtype, positions, at, c, LANES);
        if (c < channels) forward_lanes(args, dtype, positions, at, c, channels - c);
    }
    if (stream) lanes_stream_end();
}

void SLC_ISA(slc_patch_embedding_forward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_patch_embedding_forward_args *args = context;
    if (args->position)
        LANES_BY_TYPE(args->dtype, forward, true, args, first, last);
    else
        LANES_BY_TYPE(args->dtype, forward, false, args, first, last);
}

/* ---- embedding, backward ---- */

/* A row of dout, which is added to `sum` and, unless dx is NULL, stored there (0 if `hidden`). */
typedef struct {
    const void *dout;
    uint64_t at, next_at; /* next_at: the row that is read next */
    float *sum;
    void *dx;
    uint64_t dx_at;
    bool hidden, stream;
} dout_row;

LANES_INLINE void take_lanes(sluice_dtype dtype, dout_row row, uint64_t c, uint64_t left)
{
    __builtin_prefetch((const char *)row.dout + (row.next_at + c) * sluice_dtype_bytes(dtype));
    lanes x = lanes_load_some_as(dtype, row.dout, row.at + c, left, 0.0f);
    lanes_store(row.sum + c, lanes_add(lanes_load(row.sum + c), x));
    if (row.dx) lanes_stream_some_as(dtype, row.dx, row.dx_at + c, left, row.hidden ? lanes_set(0.0f) : x, row.stream);
}

LANES_INLINE void take_row(sluice_dtype dtype, uint64_t count, dout_row row)
{
    uint64_t c = 0;
    for (; c + LANES <= count; c += LANES) take_lanes(dtype, row, c, LANES);
    if (c < count) take_lanes(dtype, row, c, count - c);
}

LANES_INLINE void put_sum(sluice_dtype gradient, uint64_t count, const float *sum, bool fresh, void *to, uint64_t at)
{
    if (!to) return;
    for (uint64_t c = 0; c < count; c += LANES) {
        lanes x = lanes_load(sum + c);
        if (!fresh) x = lanes_add(lanes_load_some_as(gradient, to, at + c, count - c, 0.0f), x);
        lanes_store_some_as(gradient, to, at + c, count - c, x);
    }
}

/* Computes channels first..first+count-1, at most PIECE. */
LANES_INLINE void backward(sluice_dtype dtype, sluice_dtype gradient, const slc_patch_embedding_backward_args *all,
                           bool stream, uint64_t first, uint64_t count)
{
    const slc_patch_embedding_backward_args copy = *all, *args = &copy;
    const uint64_t channels = args->channels, rows = 1 + args->patches;
    float sum[PIECE], hidden_sum[PIECE] = {0};
    for (uint64_t place = 0; place < rows; place++) {
        memset(sum, 0, sizeof sum);
        for (uint64_t b = 0; b < args->batch; b++) {
            uint64_t at = (b * rows + place) * channels + first, patch = b * args->patches + place - 1;
            bool hidden = place && args->masked && args->masked[patch];
            dout_row row = {.dout = args->dout,
                            .at = at,
                            .next_at = b + 1 < args->batch ? at + rows * channels : (place + 1) * channels + first,
                            .sum = sum,
                            .dx = place ? args->dx : NULL,
                            .dx_at = patch * channels + first,
                            .hidden = hidden,
                            .stream = stream};
            take_row(dtype, count, row);
            row.sum = hidden_sum, row.dx = NULL;
            if (hidden) take_row(dtype, count, row);
        }
        put_sum(gradient, count, sum, args->fresh, args->dposition, place * channels + first);
        if (!place) put_sum(gradient, count, sum, args->fresh, args->dcls, first);
    }
    if (args->masked) put_sum(gradient, count, hidden_sum, args->fresh, args->dmask_token, first);
}

void SLC_ISA(slc_patch_embedding_backward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_patch_embedding_backward_args *args = context;
    const bool stream = streams(args->dtype, args->dx, args->batch * args->patches * args->channels, args->channels);
    for (uint64_t at = first; at < last; at += PIECE) {
        uint64_t count = last - at < PIECE ? last - at : PIECE;
        LANES_BY_TYPES(args->dtype, args->gradient, backward, args, stream, at, count);
    }
    if (stream) lanes_stream_end();
}
