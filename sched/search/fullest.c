/* Sums the bytes that begin and end at each item. sched/planner/planner_test.c covers this file. */
#include "sched/search/fullest.h"

#include "lib/base/status.h"

#include <stdlib.h>

sluice_status slc_fullest_item(const slc_program *program, uint32_t *item, uint64_t *bytes)
{
    *item = 0;
    *bytes = 0;
    int64_t *change = calloc((size_t)program->item_count + 1, sizeof *change);
    if (!change) return slc_error(SLUICE_ERR_MEMORY, "plan: no memory for the account of its memory");
    for (uint32_t c = 0; c < program->claim_count; c++) {
        const slc_claim *claim = &program->claims[c];
        int64_t size = (int64_t)(claim->end_byte - claim->first_byte);
        change[claim->from] += size;
        change[claim->to + 1] -= size;
        if (slc_claim_wraps(program, claim)) change[0] += size; /* from the pass before */
    }
    int64_t level = 0;
    for (uint32_t i = 0; i < program->item_count; i++) {
        level += change[i];
        if (level <= (int64_t)*bytes) continue;
        *bytes = (uint64_t)level;
        *item = i;
    }
    free(change);
    return SLUICE_OK;
}
