/* Column sums go down eight rows at a time: eight streams that the processor can prefetch, and one access to the sums
 * for eight to dy. */
#include "lib/kernels/residual/residual_cpu.h"

#include "lib/kernels/lanes.h"

void SLC_ISA(slc_add_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_add_args args = *(const slc_add_args *)context;
    uint64_t at = first;
    for (; at + LANES <= last; at += LANES)
        lanes_store(args.out + at, lanes_add(lanes_load(args.a + at), lanes_load(args.b + at)));
    if (at < last) {
        uint64_t left = last - at;
        lanes_store_tail(args.out + at, left,
                         lanes_add(lanes_load_tail(args.a + at, left, 0.0f), lanes_load_tail(args.b + at, left, 0.0f)));
    }
}

enum { ROWS = 8 };

LANES_INLINE lanes eight_rows(const float *dy, uint64_t stride, uint64_t left)
{
    lanes row[ROWS];
    for (int i = 0; i < ROWS; i++) row[i] = lanes_load_some(dy + (uint64_t)i * stride, left, 0.0f);
    for (int half = ROWS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) row[i] = lanes_add(row[i], row[i + half]);
    return row[0];
}

void SLC_ISA(slc_bias_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_bias_args args = *(const slc_bias_args *)context;
    float *sums = args.dbias;
    if (args.fresh && first < last) memset(sums + first, 0, (last - first) * sizeof *sums);
    uint64_t whole = first + (last - first) / LANES * LANES, row = 0;
    for (; row < args.rows; row += ROWS) {
        const float *dy = args.dy + row * args.columns;
        uint64_t some = args.rows - row < ROWS ? args.rows - row : ROWS;
        if (some == ROWS) {
            for (uint64_t at = first; at < whole; at += LANES)
                lanes_store(sums + at, lanes_add(lanes_load(sums + at), eight_rows(dy + at, args.columns, LANES)));
            if (whole < last) {
                lanes sum = lanes_add(lanes_load_tail(sums + whole, last - whole, 0.0f),
                                      eight_rows(dy + whole, args.columns, last - whole));
                lanes_store_tail(sums + whole, last - whole, sum);
            }
        } else {
            for (uint64_t i = 0; i < some; i++)
                for (uint64_t at = first; at < last; at++) sums[at] += dy[i * args.columns + at];
        }
    }
}
