/* What the validator knows of a plan and of a program while it judges it. Private to lib/plan. */
#ifndef SLC_PLAN_JUDGE_H
#define SLC_PLAN_JUDGE_H

#include "lib/plan/plan.h"

/* ---- The plan's buffers ---- */

/* Finds buffers by what they are. */
typedef struct {
    const slc_plan *plan;
    uint32_t keys;   /* more than any unit's, activation's or workspace's number */
    uint32_t *first; /* [kind * keys + unit, or index where there is no unit]: chained by `next` */
    uint32_t *next;
    bool *resident; /* each buffer: in memory for good */
} slc_buffer_index;

sluice_status slc_buffer_index_init(slc_buffer_index *index, const slc_job *job, const slc_plan *plan);
void slc_buffer_index_fini(slc_buffer_index *index);
uint32_t slc_buffer_index_find(const slc_buffer_index *index, slc_buffer_kind kind, uint32_t unit, uint32_t number);

/* Do the units of tied parameters that are split fit together (slc_unit.role, partner and rows)? What a file says is
 * refused with its path before; this guards everything behind it against a job that is wrong itself. */
sluice_status slc_judge_roles(const slc_job *job);

/* Are all buffers there and no others, of the right size, and the resident ones apart from each other? */
sluice_status slc_judge_buffers(const slc_job *job, const slc_buffer_index *index);

/* ---- A program ---- */

/* Counts of each lane's finished items since the beginning of the pass before. What a pass leaves out counts as
 * finished with what stands before it. */
typedef enum { SLC_LANE_COMPUTE, SLC_LANE_COMMUNICATION, SLC_LANES } slc_lane;

typedef struct {
    uint64_t over[SLC_LANES];
} slc_sure;

/* With nothing before it a pass leaves late items out; a drain runs them alone. */
typedef enum { SLC_PASS_FULL, SLC_PASS_FRESH, SLC_PASS_DRAIN } slc_pass;

typedef struct {
    uint64_t first_block, end_block;
    uint32_t item;
} slc_run;

/* The operations of one kind on one unit (in one micro-batch, for one window), by their first block. */
typedef struct {
    const slc_run *at;
    uint32_t count;
} slc_run_list;

typedef struct {
    uint32_t unit, use;
} slc_layer_use;

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    const slc_program *program;
    const slc_buffer_index *buffers;
    bool evaluate, has_late;
    uint32_t micro_batches;
    const char *where;
    uint32_t *slot_item;       /* of each slot, micro-batch by micro-batch */
    uint32_t *ordinal;         /* of an item in its lane */
    uint32_t agree;            /* the item; SLC_NONE in evaluation */
    uint64_t count[SLC_LANES]; /* items of one pass */
    slc_run *runs;             /* of each list together */
    uint32_t *run_start;       /* [lists + 1] */
    uint32_t *unit_lists;      /* [units]: a unit's first list */
    slc_layer_use *uses;       /* those of a layer together */
    uint32_t *use_start;       /* [layers + 1] */
    uint32_t *workspaces;      /* the same of slots */
    uint32_t *workspace_start;
    slc_pass passes[2];
    slc_sure *known[2]; /* at an item's start, in the first pass and in the second */
} slc_judge;

/* "invalid plan: step item 7 (...): what" */
sluice_status slc_judge_fault(const slc_judge *j, uint32_t item, const char *what);

static inline slc_lane slc_judge_lane(const slc_judge *j, uint32_t item)
{
    return slc_on_compute_lane(&j->program->items[item]) ? SLC_LANE_COMPUTE : SLC_LANE_COMMUNICATION;
}

static inline bool slc_judge_same_lane(const slc_judge *j, uint32_t a, uint32_t b)
{
    return slc_judge_lane(j, a) == slc_judge_lane(j, b);
}

static inline bool slc_judge_runs(const slc_judge *j, int pass, uint32_t item)
{
    bool late = j->program->items[item].late;
    return j->passes[pass] == SLC_PASS_FULL || late == (j->passes[pass] == SLC_PASS_DRAIN);
}

static inline uint32_t slc_judge_slot_item(const slc_judge *j, uint32_t micro_batch, uint32_t slot)
{
    return j->slot_item[(uint64_t)micro_batch * (j->evaluate ? j->job->layer_count : slc_job_slots(j->job)) + slot];
}

/* Does this layer drop what it can make again? */
static inline bool slc_judge_recomputes(const slc_judge *j, uint32_t layer)
{
    return !j->evaluate && j->plan->recompute && j->plan->recompute[layer];
}

/* Lists of runs, uses and workspaces; items must be in form. */
sluice_status slc_judge_index_init(slc_judge *j);
void slc_judge_index_fini(slc_judge *j);
slc_run_list slc_judge_list(const slc_judge *j, slc_item_kind kind, uint32_t micro_batch, uint32_t unit,
                            uint32_t window);
/* The first run of a list that reaches beyond `block`. */
uint32_t slc_run_at(slc_run_list list, uint64_t block);
/* Does every operation move all its unit's blocks, each once? */
sluice_status slc_judge_once(const slc_judge *j);

/* What items may take for granted when they start, whatever the timing, in the two passes of `j->passes`. */
void slc_judge_derive(slc_judge *j);
/* Is `item` of `pass` surely over when `later` of `later_pass` starts? So it is where it does not run. */
bool slc_judge_surely_over(const slc_judge *j, int later_pass, uint32_t later, int pass, uint32_t item);

/* Is everything that the items of `pass` need over when they start? */
sluice_status slc_judge_data(const slc_judge *j, int pass);
/* Are claims in form, whatever the timing? */
sluice_status slc_judge_claims(const slc_judge *j);
/* Is every byte held by claims while items of `pass` touch it, and from its writer to its last reader by the same? */
sluice_status slc_judge_memory(const slc_judge *j, int pass);

/* Who held each stretch of addresses last. */
typedef struct slc_judge_addresses slc_judge_addresses;
sluice_status slc_judge_addresses_create(const slc_judge *j, slc_judge_addresses **out);
void slc_judge_addresses_destroy(slc_judge_addresses *addresses);
/* Is nothing claimed in the second pass (or, `first_too`, in both) that others may still hold? */
sluice_status slc_judge_tickets(const slc_judge *j, slc_judge_addresses *addresses, bool first_too);

#endif
