/* The state of the validator while it checks a plan and one of its programs. Private to lib/plan. */
#pragma once

#include "lib/plan/plan.h"

/* ---- The plan's buffers ---- */

/* An index that finds a plan's buffers by kind, unit and number. */
typedef struct {
    const slc_plan *plan;
    uint32_t keys;   /* more than any number of a unit, activation or workspace */
    uint32_t *first; /* [kind * keys + unit, or number if there is no unit]: a buffer, others of that cell linked by
                        `next`; SLC_NONE: none */
    uint32_t *next;
    bool *resident; /* [buffers] in memory for good */
} slc_buffer_index;

sluice_status slc_buffer_index_init(slc_buffer_index *index, const slc_job *job, const slc_plan *plan);
void slc_buffer_index_fini(slc_buffer_index *index);
uint32_t slc_buffer_index_find(const slc_buffer_index *index, slc_buffer_kind kind, uint32_t unit, uint32_t number);

/* Checks that units of split tied parameters fit together (slc_unit.role, partner and rows). A wrong file has been
 * refused with its path before; this protects all later checks from a job that is wrong itself. */
sluice_status slc_validate_roles(const slc_job *job);

/* Checks that a step which leaves layers out, whichever, has all that the other layers need. */
sluice_status slc_validate_left_out(const slc_job *job);

/* Checks that all buffers exist and no others, with the right sizes, and that resident ones do not overlap. */
sluice_status slc_validate_buffers(const slc_job *job, const slc_buffer_index *index);

/* ---- A program ---- */

/* A lane, whose state is a count of items that have ended, from the beginning of the first of the two passes that are
 * looked at. Items that a pass leaves out count as ended when the items before them have. */
typedef enum {
    SLC_LANE_COMPUTE,
    SLC_LANE_COMMUNICATION,
    SLC_LANE_CHANNELS, /* the first end of a channel; the others follow */
    SLC_LANES = SLC_LANE_CHANNELS + SLC_STAGE_CHANNELS_MAX
} slc_lane;

typedef struct {
    uint32_t over[SLC_LANES];
} slc_sure;

typedef struct {
    uint64_t first_block, end_block;
    uint32_t item;
} slc_block_run;

/* The operations of one kind on one unit (in one micro-batch, for one window), sorted by their first block. */
typedef struct {
    const slc_block_run *at;
    uint32_t count;
} slc_block_runs;

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
    uint32_t *slot_item;       /* [micro-batches * slots of a pass] the item of each slot */
    uint32_t *ordinal;         /* [items] position of an item in its lane */
    uint32_t agree;            /* the item of the agreement; SLC_NONE in evaluation */
    uint32_t lanes;            /* that the job has */
    uint32_t count[SLC_LANES]; /* items of one pass in each lane */
    uint32_t *message_item;    /* [channels * micro-batches] the item of each message; NULL: there are no channels */
    slc_block_run *runs;       /* runs of all lists, each list's together */
    uint32_t *run_start;       /* [lists + 1] */
    uint32_t *unit_lists;      /* [units]: a unit's first list */
    slc_layer_use *uses;       /* uses of all layers, each layer's together */
    uint32_t *use_start;       /* [layers + 1] */
    uint32_t *workspaces;      /* workspaces of all slots, each slot's together */
    uint32_t *workspace_start;
    slc_pass_kind passes[2];
    slc_sure *known[2]; /* [items] what is known at an item's start, in the first pass and in the second */
} slc_validation;

/* Sets the error "invalid plan: step item 7 (...): what" and returns FORMAT. */
sluice_status slc_validate_fault(const slc_validation *j, uint32_t item, const char *what);

static inline slc_lane slc_lane_of(const slc_item *item)
{
    if (slc_is_message(item->kind)) return (slc_lane)(SLC_LANE_CHANNELS + item->index);
    return slc_on_compute_lane(item) ? SLC_LANE_COMPUTE : SLC_LANE_COMMUNICATION;
}

/* Returns an item's lane, also for a message on a channel that the stage does not have, which is a fault of its own. */
static inline slc_lane slc_validate_lane(const slc_validation *j, uint32_t item)
{
    const slc_item *i = &j->program->items[item];
    const bool nowhere = slc_is_message(i->kind) && i->index >= j->job->channel_count;
    return nowhere ? SLC_LANE_COMMUNICATION : slc_lane_of(i);
}

static inline bool slc_validate_same_lane(const slc_validation *j, uint32_t a, uint32_t b)
{
    return slc_validate_lane(j, a) == slc_validate_lane(j, b);
}

static inline bool slc_validate_runs(const slc_validation *j, int pass, uint32_t item)
{
    bool late = j->program->items[item].late;
    return j->passes[pass] == SLC_PASS_WHOLE || late == (j->passes[pass] == SLC_PASS_DRAIN);
}

static inline uint32_t slc_validate_slot_item(const slc_validation *j, uint32_t micro_batch, uint32_t slot)
{
    return j->slot_item[(uint64_t)micro_batch * (j->evaluate ? j->job->layer_count : slc_job_slots(j->job)) + slot];
}

/* Returns true if this layer drops the activations that it can make again. */
static inline bool slc_validate_recomputes(const slc_validation *j, uint32_t layer)
{
    return !j->evaluate && j->plan->recompute && j->plan->recompute[layer];
}

/* Makes the lists of runs, uses and workspaces; the items must have been checked one by one. The caller calls fini also
 * after an error. */
sluice_status slc_validate_index_init(slc_validation *j);
void slc_validate_index_fini(slc_validation *j);
slc_block_runs slc_validate_list(const slc_validation *j, slc_item_kind kind, uint32_t micro_batch, uint32_t unit,
                                 uint32_t window);
/* Index of the first run in a list that ends after `block` begins; list.count if there is none. */
uint32_t slc_block_run_at(slc_block_runs list, uint64_t block);
/* Checks that the operations of each kind that a unit needs move all its blocks, each once, and that there are no
 * others. */
sluice_status slc_validate_once(const slc_validation *j);

/* Checks a message by itself, and that each channel has one for each micro-batch, in order; fills j->message_item. */
sluice_status slc_validate_message(const slc_validation *j, uint32_t item);
sluice_status slc_validate_channels(slc_validation *j);
/* The item of a message; the channel's place in slc_job.channels. */
static inline uint32_t slc_validate_message_item(const slc_validation *j, uint32_t channel, uint32_t micro_batch)
{
    return j->message_item[(size_t)channel * j->micro_batches + micro_batch];
}

/* Fills j->known: what items may rely on when they start, whatever the timing, in the two passes of `j->passes`. */
void slc_validate_derive(slc_validation *j);
/* Returns true if `item` of `pass` has surely ended when `later` of `later_pass` starts; also if `item` does not run in
 * that pass. */
bool slc_validate_surely_over(const slc_validation *j, int later_pass, uint32_t later, int pass, uint32_t item);

/* Checks that everything the items of `pass` need has ended when they start. */
sluice_status slc_validate_data(const slc_validation *j, int pass);
/* Checks each claim by itself, whatever the timing. */
sluice_status slc_validate_claims(const slc_validation *j);
/* Checks that claims hold every byte while items of `pass` touch it, and one claim from its writer to its last
 * reader. */
sluice_status slc_validate_memory(const slc_validation *j, int pass);

/* Remembers which claim held each range of addresses last. */
typedef struct slc_validate_addresses slc_validate_addresses;
sluice_status slc_validate_addresses_create(const slc_validation *j, slc_validate_addresses **out);
void slc_validate_addresses_destroy(slc_validate_addresses *addresses);
/* Checks that nothing is claimed in the second pass (with `first_too`, in both) that another claim may still hold. */
sluice_status slc_validate_tickets(const slc_validation *j, slc_validate_addresses *addresses, bool first_too);
