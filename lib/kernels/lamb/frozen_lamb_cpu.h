/* The fast frozen LAMB, compiled once for each instruction set. */
#pragma once

#include "lib/kernels/compress/compress_cpu.h"
#include "lib/kernels/lamb/frozen_lamb.h"

typedef struct {
    slc_adamw_factors factors; /* for learning rate 1 */
    float fresh_rescale;       /* 1 / sqrt(fresh_correction) */
    double learning_rate;
    const double *coefficient; /* of UPDATE and MOVE, read when the kernel runs */
    float rate;                /* for the host's loop: lr * coefficient */
    slc_frozen_lamb_range range;
    sluice_dtype gradient_dtype;
    const void *gradient;
    slc_compress_packets packets;
    uint64_t offset;
    double divisor;
    slc_frozen_lamb_sums sums; /* added to atomically */
    const sluice_step_words *words;
} slc_frozen_lamb_args;

/* `receive` adds up the squares of this many elements before they go to bins. */
enum { SLC_FROZEN_LAMB_UNIT = 64 };

/* All work on ranges of elements; those of `receive`, which has a whole tensor, begin at multiples of
 * SLC_FROZEN_LAMB_UNIT. */
SLC_ISA_DECLARE(slc_frozen_lamb_measure_range);
SLC_ISA_DECLARE(slc_frozen_lamb_update_range);
SLC_ISA_DECLARE(slc_frozen_lamb_receive_range);
SLC_ISA_DECLARE(slc_frozen_lamb_move_range);
#define SLC_FROZEN_LAMB_FORM(pass)                                                                                     \
    SLC_C_LINKAGE sluice_status slc_frozen_lamb_##pass##_many_cuda(sluice_stream *stream, uint32_t count,              \
                                                                   const slc_frozen_lamb_args *args)
SLC_FROZEN_LAMB_FORM(measure);
SLC_FROZEN_LAMB_FORM(update);
SLC_FROZEN_LAMB_FORM(receive);
SLC_FROZEN_LAMB_FORM(move);
