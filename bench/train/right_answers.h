/* Accuracy of models that answer with classes. */
#pragma once

#include <stdint.h>

/* Returns how many of `count` rows of logits, `classes` each, are largest at their target; of equal logits the first
 * counts. A target below 0 is never right. Any thread. */
uint64_t slc_right_answers(const float *logits, const int32_t *targets, uint64_t count, uint32_t classes);
