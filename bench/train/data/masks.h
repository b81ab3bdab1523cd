/* Hides parts of a sequence, which the model has to guess. Results are functions of (seed, number of the sequence)
 * alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t seed;
    bool held_out; /* another stream of draws */
    uint32_t length;
    uint32_t stride;     /* no sequence is longer, so that no two have draws in common; 0: all are of `length` */
    uint32_t vocabulary; /* replacements are below it */
    int32_t mask_token;
} slc_token_mask;

/* Chooses 15 % of the positions, at least one: 80 % of those become the mask token, 10 % any token, 10 % stay; a target
 * is the token that was there, or -1. tokens, targets: length each; tokens are changed in place. */
void slc_mask_tokens(const slc_token_mask *mask, uint64_t sequence, int32_t *tokens, int32_t *targets);
/* Returns how many positions it chooses. */
uint32_t slc_mask_tokens_count(const slc_token_mask *mask, uint64_t sequence);

/* Masks BEiT's blocks: rectangles of at least min(16, a quarter of the patches) and of aspect .3 to 1/.3 until more
 * than 40 % are masked. masked: side * side, 0 or 1. Returns how many are. */
uint32_t slc_mask_blocks(uint64_t seed, bool held_out, uint64_t sequence, uint32_t side, uint8_t *masked);
