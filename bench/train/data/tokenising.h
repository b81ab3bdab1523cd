/* The progress of making a long text into tokens, in a line on standard error. Private to bench/train and bench/eval.
 * Rank 0 only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t start_ns, shown_ns;
} slc_training_tokenising;

/* Begun as {0}. `done` of `bytes` are tokens now. Nothing is shown of a text that takes less than two seconds; the line
 * is rewritten in place on a terminal, else printed every few seconds, and ends with the text. */
void slc_training_tokenising_show(slc_training_tokenising *progress, uint64_t done, uint64_t bytes);
/* Shows the line likewise while the records of a large file are looked for. */
void slc_training_indexing_show(slc_training_tokenising *progress, uint64_t done, uint64_t bytes);
