/* Softmax in double over the logits in the order of their tokens; one uniform number decides. */
#include "bench/eval/sampling.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_TOKENS = 60 };

static sluice_status largest(const float *logits, uint32_t count, uint32_t *at)
{
    *at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!isfinite(logits[i]))
            return slc_error(SLUICE_ERR_NON_FINITE,
                             "the logit of token %u is %f: the weights are damaged, or too large for this precision", i,
                             (double)logits[i]);
        if (logits[i] > logits[*at]) *at = i;
    }
    return SLUICE_OK;
}

/* Puts the element that is number `rank` in descending order at x[rank] and returns it (Hoare's selection). */
static float select_largest(float *x, uint32_t count, uint32_t rank)
{
    for (uint32_t low = 0, high = count - 1; low < high;) {
        const float pivot = x[low + (high - low) / 2];
        uint32_t i = low, j = high;
        for (;; i++, j--) {
            while (x[i] > pivot) i++;
            while (x[j] < pivot) j--;
            if (i >= j) break;
            const float swap = x[i];
            x[i] = x[j], x[j] = swap;
        }
        if (rank <= j)
            high = j;
        else
            low = j + 1;
    }
    return x[rank];
}

/* Tells which logits can win: those above *least, and the first *ties of those that are equal to it. */
static sluice_status find_least(const float *logits, uint32_t count, uint32_t top_k, float *least, uint32_t *ties)
{
    *least = -INFINITY;
    *ties = count;
    if (!top_k || top_k >= count) return SLUICE_OK;
    float *x = malloc(count * sizeof *x);
    if (!x) return slc_error(SLUICE_ERR_MEMORY, "%u logits", count);
    memcpy(x, logits, count * sizeof *x);
    *least = select_largest(x, count, top_k - 1);
    *ties = top_k;
    for (uint32_t i = 0; i < count; i++) *ties -= logits[i] > *least;
    free(x);
    return SLUICE_OK;
}

static double weight(const slc_sampling *s, float logit, float top)
{
    return exp(((double)logit - (double)top) / s->temperature);
}

static int32_t draw(const slc_sampling *s, const float *logits, uint32_t count, uint32_t top, float least,
                    uint32_t ties, uint64_t number)
{
    uint32_t words[4];
    slc_random_block(s->seed, STREAM_TOKENS, number, words);
    const double uniform = (double)((uint64_t)words[0] << 21 | words[1] >> 11) * 0x1p-53;
    double total = 0, sum = 0;
    for (uint32_t i = 0, left = ties; i < count; i++)
        if (logits[i] > least || (logits[i] == least && left && left--)) total += weight(s, logits[i], logits[top]);
    uint32_t chosen = top;
    for (uint32_t i = 0, left = ties; i < count && sum <= uniform * total; i++)
        if (logits[i] > least || (logits[i] == least && left && left--)) {
            sum += weight(s, logits[i], logits[top]);
            chosen = i;
        }
    return (int32_t)chosen;
}

sluice_status slc_sample_token(const slc_sampling *s, const float *logits, uint32_t count, uint64_t number,
                               int32_t *token)
{
    uint32_t top, ties;
    float least;
    sluice_status status = largest(logits, count, &top);
    *token = (int32_t)top;
    if (status || s->temperature == 0) return status;
    status = find_least(logits, count, s->top_k, &least, &ties);
    if (!status) *token = draw(s, logits, count, top, least, ties, number);
    return status;
}
