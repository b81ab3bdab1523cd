/* train_run_test.c covers this file. */
#include "bench/train/right_answers.h"

uint64_t slc_right_answers(const float *logits, const int32_t *targets, uint64_t count, uint32_t classes)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < count; i++, logits += classes) {
        uint32_t best = 0;
        for (uint32_t c = 1; c < classes; c++)
            if (logits[c] > logits[best]) best = c;
        right += targets[i] >= 0 && (uint32_t)targets[i] == best;
    }
    return right;
}
