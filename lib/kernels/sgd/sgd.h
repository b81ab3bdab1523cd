/* SGD with momentum on a range of elements (formula: sluice/optimizer.h). One pass moves 20 bytes for each element with
 * momentum, 12 without, in fp32. It is elementwise: any split of a range gives the same bits. */
#pragma once

#include "lib/kernels/isa.h"
#include "lib/kernels/kernel.h"

#include <sluice/optimizer.h>
#include <stdbool.h>

typedef struct {
    uint64_t count;
    sluice_dtype gradient_dtype;
    const void *gradient;
    void *value;   /* fp32 */
    void *buffer;  /* fp32: the momentum's; NULL if `momentum` is 0 */
    void *rounded; /* receives the new values rounded to bf16; overlaps nothing else. NULL: not wanted */
    /* Each is rounded to fp32 once. */
    double learning_rate, momentum, weight_decay;
    double rest; /* what the gradient is multiplied by on its way into the buffer: 1 - dampening, in the first step 1 */
    double gradient_factor; /* each gradient is multiplied by this before everything else */
    bool nesterov;
    const sluice_step_words *words; /* not NULL: kernels read gradient_factor and whether to do nothing there, when they
                                       run; memory of the stream's device */
} slc_sgd_args;

sluice_status slc_sgd(sluice_stream *stream, const slc_sgd_args *args);

/* ---- Forms ---- */

/* All arrays hold double; `rounded` and `words` are not read. */
void slc_sgd_ref(const slc_sgd_args *args);
SLC_ISA_DECLARE(slc_sgd_range); /* over ranges of elements */

#ifdef __cplusplus
extern "C" {
#endif
sluice_status slc_sgd_cuda(sluice_stream *stream, const slc_sgd_args *args);
#ifdef __cplusplus
}
#endif
