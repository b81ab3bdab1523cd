/* The plain loops of reduce.h. They are in float: the contract fixes every rounding. */
#ifndef SLC_KERNEL_REDUCE_REF_H
#define SLC_KERNEL_REDUCE_REF_H

#include <stdbool.h>
#include <stdint.h>

void slc_reduce_ref(uint64_t count, const float *const *sources, uint32_t source_count, float scale, bool accumulate,
                    float *const *destinations, uint32_t destination_count);

#endif
