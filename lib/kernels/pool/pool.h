/* One row for each sequence: its first, or the mean of the rows after the first (BEiT's mean pooling). x:
 * [batch][tokens][channels], y: [batch][channels]. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

typedef enum { SLC_POOL_FIRST, SLC_POOL_MEAN_OF_REST /* needs tokens > 1 */ } slc_pool_kind;

typedef struct {
    sluice_dtype dtype;
    slc_pool_kind kind;
    uint64_t batch, tokens, channels;
    const void *from; /* x; in backward dy */
    void *to;         /* y; in backward dx, all of which is stored: rows that do not count in y get 0 */
} slc_pool_args;

sluice_status slc_pool_forward(sluice_stream *stream, const slc_pool_args *args);
sluice_status slc_pool_backward(sluice_stream *stream, const slc_pool_args *args);

/* ---- Forms ---- */

void slc_pool_forward_ref(const slc_pool_args *args);
void slc_pool_backward_ref(const slc_pool_args *args);

SLC_ISA_DECLARE(slc_pool_forward_range);  /* over ranges of sequences */
SLC_ISA_DECLARE(slc_pool_backward_range); /* over ranges of rows */
SLC_DEVICE_DECLARE(slc_pool_forward);
SLC_DEVICE_DECLARE(slc_pool_backward);
