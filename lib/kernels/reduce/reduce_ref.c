/* Sum in rank order, scale once, store everywhere. */
#include "lib/kernels/reduce/reduce_ref.h"

void slc_reduce_ref(uint64_t count, const float *const *sources, uint32_t source_count, float scale, bool accumulate,
                    float *const *destinations, uint32_t destination_count)
{
    for (uint64_t i = 0; i < count; i++) {
        float sum = sources[0][i];
        for (uint32_t s = 1; s < source_count; s++) sum += sources[s][i];
        float value = scale * sum;
        if (accumulate) value = destinations[0][i] + value;
        for (uint32_t d = 0; d < destination_count; d++) destinations[d][i] = value;
    }
}
