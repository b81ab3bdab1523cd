/* The plain version of step_words.h, which looks at one element after the other. */
#ifndef SLC_KERNEL_STEP_WORDS_REF_H
#define SLC_KERNEL_STEP_WORDS_REF_H

#include "lib/kernels/step_words/step_words.h"

/* Does to the words what slc_step_words_inspect does, with the elements widened to fp32. */
void slc_step_words_inspect_ref(uint64_t count, const float *x, bool norm, uint32_t parameter, slc_step_words *words);
/* Returns the square root of the sum in the bins, off by a few roundings of long double. */
long double slc_step_words_norm_ref(const int64_t *bins);

#endif
