/* measure_link_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/runtime.h"

#include <stdlib.h>

typedef struct {
    uint64_t begin, end;
} span;

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

sluice_status slc_measure_find_stretch(sluice_runtime *rt, uint64_t *offset, uint64_t *bytes)
{
    const slc_plan *plan = rt->current.plan;
    span *taken = calloc(plan->static_count + 1, sizeof *taken);
    *offset = *bytes = 0;
    if (!taken) return slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "link measurement"));
    for (uint32_t i = 0; i < plan->static_count; i++) {
        const slc_claim *claim = &plan->statics[i];
        uint64_t first = plan->buffers[claim->buffer].offset;
        taken[i] = (span){first + claim->first_byte, first + claim->end_byte};
    }
    taken[plan->static_count] = (span){plan->arena_bytes, plan->arena_bytes};
    qsort(taken, plan->static_count + 1, sizeof *taken, by_begin);
    uint64_t end = 0;
    for (uint32_t i = 0; i <= plan->static_count; i++) {
        uint64_t begin = (end + 63) / 64 * 64;
        if (taken[i].begin > begin && taken[i].begin - begin > *bytes) {
            *offset = begin;
            *bytes = taken[i].begin - begin;
        }
        if (taken[i].end > end) end = taken[i].end;
    }
    free(taken);
    return SLUICE_OK;
}
