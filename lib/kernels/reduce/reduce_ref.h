/* The plain loop of reduce.h. It is in float, because the contract fixes every rounding. */
#ifndef SLC_KERNEL_REDUCE_REF_H
#define SLC_KERNEL_REDUCE_REF_H

#include <sluice/dtype.h>
#include <stdbool.h>
#include <stdint.h>

void slc_reduce_ref(uint64_t count, sluice_dtype from, const void *const *sources, uint32_t source_count, float scale,
                    bool accumulate, sluice_dtype to, void *const *destinations, uint32_t destination_count);

#endif
