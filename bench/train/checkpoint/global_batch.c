/* A step keeps its size if the ranks divide it; the batch of a rank does not grow, since its memory would. */
#include "bench/train/checkpoint/global_batch.h"

#include <stdio.h>

static uint64_t size_of(const slc_global_batch *b)
{
    return b->ranks * b->batch * b->micro_batches;
}

void slc_global_batch_words(const slc_global_batch *before, const slc_global_batch *now, char *out, size_t size)
{
    static const char what[] = "the global batch (ranks x batch x micro-batches)";
    const unsigned long long was = size_of(before), is = size_of(now), each = was / now->ranks;
    uint64_t batch = before->batch;
    if (was == is) {
        snprintf(out, size, "%s stays %llu, so only roundings differ", what, was);
        return;
    }
    int used = snprintf(out, size, "%s was %llu and is %llu", what, was, is);
    if (used < 0 || (size_t)used >= size) return;
    if (was % now->ranks) {
        snprintf(out + used, size - (size_t)used, ", and %llu ranks cannot keep it", (unsigned long long)now->ranks);
        return;
    }
    while (each % batch) batch--;
    snprintf(out + used, size - (size_t)used, "; --batch %llu --micro-batches %llu keeps it", (unsigned long long)batch,
             each / batch);
}
