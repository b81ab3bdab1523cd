/* What the validator knows of a program while it judges it. Private to lib/plan. */
#ifndef SLC_PLAN_JUDGE_H
#define SLC_PLAN_JUDGE_H

#include "lib/plan/plan.h"

/* Counts of finished slots and operations since the beginning of the step before. */
typedef struct {
    uint64_t slots, operations;
} slc_sure;

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    const slc_program *program;
    bool evaluate;
    const char *where;
    uint32_t *slot_item;        /* of each slot, micro-batch by micro-batch */
    uint32_t *ordinal;          /* of an item in its lane */
    uint64_t slots, operations; /* a step */
    slc_sure *known[2];         /* at an item's start, in the step before and in this one */
} slc_judge;

sluice_status slc_judge_fault(const slc_judge *j, uint32_t item, const char *what);

static inline bool slc_judge_is_slot(const slc_judge *j, uint32_t item)
{
    return j->program->items[item].kind == SLC_ITEM_SLOT;
}

static inline uint32_t slc_judge_slot_item(const slc_judge *j, uint32_t micro_batch, uint32_t slot)
{
    return j->slot_item[(uint64_t)micro_batch * (j->evaluate ? j->job->layer_count : slc_job_slots(j->job)) + slot];
}

/* Is `item` (of this step, or of the one before) surely over when `later` of this step starts? */
bool slc_judge_surely_over(const slc_judge *j, uint32_t later, uint32_t item, bool previous);

/* Are all buffers there, of the right size, and the resident ones apart from each other? */
sluice_status slc_judge_buffers(const slc_job *job, const slc_plan *plan);
/* Is every buffer claimed while items touch it, and nothing claimed that others may still hold? */
sluice_status slc_judge_memory(const slc_judge *j);

#endif
