/* The next token of a text, chosen from a model's logits. The choice is a function of the logits, the settings and the
 * token's number, so a text can be made again. */
#pragma once

#include <sluice/status.h>
#include <stdint.h>

typedef struct {
    double temperature; /* 0: the largest logit wins, of equal ones the first; else logits are divided by it */
    uint32_t top_k;     /* only so many of the largest logits can win, of equal ones the first; 0: all can */
    uint64_t seed;
} slc_sampling;

/* Chooses token `number` of the text among `count` > 0 logits. Errors: NON_FINITE (a logit is no number), MEMORY. */
sluice_status slc_sample_token(const slc_sampling *sampling, const float *logits, uint32_t count, uint64_t number,
                               int32_t *token);
