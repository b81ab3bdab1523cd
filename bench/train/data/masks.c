/* Draws come from the counter-based generator: one stream for training and one for held-out data, a range of indices
 * for each sequence. data_test.c covers this file. */
#include "bench/train/data/masks.h"

#include "lib/base/numbers/random.h"

#include <math.h>
#include <string.h>

enum { STREAM_TOKENS = 33, STREAM_BLOCKS = 35, BLOCK_TRIES = 64 };

static double unit(uint32_t word)
{
    return word * 0x1p-32;
}

/* The draws of one sequence. */
typedef struct {
    uint64_t stream, first;
    uint64_t always; /* the position that is chosen in any case */
} token_draws;

static token_draws draws_of(const slc_token_mask *mask, uint64_t sequence)
{
    const uint64_t stride = mask->stride ? mask->stride : mask->length;
    token_draws draws = {.stream = STREAM_TOKENS + mask->held_out, .first = sequence * (stride + 1)};
    draws.always = slc_random_below(mask->seed, draws.stream, draws.first + mask->length, mask->length);
    return draws;
}

/* Returns true if the token at this position is to be guessed: word[0] decides, except at the position that is chosen
 * in any case. The other words say what becomes of the token. */
static bool is_chosen(const slc_token_mask *mask, const token_draws *draws, uint32_t position, uint32_t word[4])
{
    slc_random_block(mask->seed, draws->stream, draws->first + position, word);
    return position == draws->always || unit(word[0]) < 0.15;
}

uint32_t slc_mask_tokens_count(const slc_token_mask *mask, uint64_t sequence)
{
    const token_draws draws = draws_of(mask, sequence);
    uint32_t word[4], count = 0;
    for (uint32_t i = 0; i < mask->length; i++) count += is_chosen(mask, &draws, i, word);
    return count;
}

void slc_mask_tokens(const slc_token_mask *mask, uint64_t sequence, int32_t *tokens, int32_t *targets)
{
    const token_draws draws = draws_of(mask, sequence);
    for (uint32_t i = 0; i < mask->length; i++) {
        uint32_t word[4];
        targets[i] = -1;
        if (!is_chosen(mask, &draws, i, word)) continue;
        targets[i] = tokens[i];
        if (unit(word[1]) < 0.8)
            tokens[i] = mask->mask_token;
        else if (unit(word[1]) < 0.9)
            tokens[i] = (int32_t)((uint64_t)word[2] * mask->vocabulary >> 32);
    }
}

typedef struct {
    uint32_t rows, columns, top, left;
} block;

/* Bao et al., algorithm 1: draws the block's size, then its aspect, then its place. */
static block draw_block(const uint32_t word[4], uint32_t side, double least, double most)
{
    double size = least + unit(word[0]) * (most > least ? most - least : 0);
    double aspect = 0.3 * pow(1 / 0.09, unit(word[1]));
    double rows = round(sqrt(size * aspect)), columns = round(sqrt(size / aspect));
    block b = {.rows = rows < 1      ? 1
                       : rows > side ? side
                                     : (uint32_t)rows,
               .columns = columns < 1      ? 1
                          : columns > side ? side
                                           : (uint32_t)columns};
    b.top = (uint32_t)((uint64_t)word[2] * (side - b.rows + 1) >> 32);
    b.left = (uint32_t)((uint64_t)word[3] * (side - b.columns + 1) >> 32);
    return b;
}

uint32_t slc_mask_blocks(uint64_t seed, bool held_out, uint64_t sequence, uint32_t side, uint8_t *masked)
{
    uint32_t patches = side * side, count = 0;
    double goal = 0.4 * patches, least = patches < 64 ? patches / 4.0 : 16;
    memset(masked, 0, patches);
    for (uint32_t i = 0; i < BLOCK_TRIES && count <= goal; i++) {
        uint32_t word[4];
        slc_random_block(seed, STREAM_BLOCKS + held_out, sequence * BLOCK_TRIES + i, word);
        block b = draw_block(word, side, least, goal - count);
        for (uint32_t r = b.top; r < b.top + b.rows; r++)
            for (uint32_t c = b.left; c < b.left + b.columns; c++) {
                count += !masked[r * side + c];
                masked[r * side + c] = 1;
            }
    }
    return count;
}
