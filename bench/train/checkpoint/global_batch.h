/* The sequences (images) of a step: what becomes of them when a run goes on with another number of ranks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t ranks, batch, micro_batches; /* each at least 1; a step takes the product of the three */
} slc_global_batch;

/* Says whether the step is as large as before, and which --batch and --micro-batches would keep it. */
void slc_global_batch_words(const slc_global_batch *before, const slc_global_batch *now, char *out, size_t size);
