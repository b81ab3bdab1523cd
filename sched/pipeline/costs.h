/* Seconds of the tasks, messages and operations of a cut job, for the simulator and for the programmes that cut. */
#pragma once

#include "lib/plan/profile.h"
#include "lib/plan/strategy_table.h"
#include "sched/pipeline/simulate/pipeline_simulate.h"

/* A job that is cut into pieces. Borrowed. */
typedef struct {
    const slc_profile *profile; /* its world is R, the replicas of a stage; its micro-batches are M */
    const slc_pipeline_schedule *schedule;
    slc_pipeline_shape shape;
    const uint32_t *first_layer;    /* [pieces], ascending, from 0 */
    const slc_strategy *strategies; /* [units of the profile], as far as their roles allow */
    const bool *held; /* [units] under fsdp: gathered once a step. NULL: in each micro-batch and direction */
    bool recompute;   /* all layers that can */
} slc_cut_job;

/* The strategy that a unit has in its stage. A table whose rows are looked up elsewhere is whole on its ranks, since
 * its rows are sent from there; and each of several replicas reduces its own part of it, to which it then adds the
 * rows' gradients. */
slc_strategy slc_cut_strategy(const slc_cut_job *cut, uint32_t unit);
static inline bool slc_cut_holds(const slc_cut_job *cut, uint32_t unit)
{
    return cut->held && cut->held[unit] && slc_gathers_windows(slc_cut_strategy(cut, unit));
}

static inline uint32_t slc_piece_end(const slc_cut_job *cut, uint32_t piece)
{
    return piece + 1 < slc_pipeline_pieces(&cut->shape) ? cut->first_layer[piece + 1] : cut->profile->job.layer_count;
}

/* Bytes of one micro-batch that cross the cut behind a layer: forward what a forward before the cut makes and a layer
 * after it reads, backward what a backward after the cut makes and one before it reads. Readers that the profile does
 * not know follow from an activation's life: the last one is that of evaluation. */
uint64_t slc_cut_forward_bytes(const slc_job *job, uint32_t layer);
uint64_t slc_cut_backward_bytes(const slc_job *job, uint32_t layer);
/* The last layer that reads an activation which a forward makes, in either direction; that forward's own layer if none
 * after it does. */
uint32_t slc_last_reader_of(const slc_job *job, const slc_activation_life *life);

/* The unit of looked-up rows, whose table lies where the last piece is; NULL: there is none. */
const slc_unit *slc_cut_rows(const slc_job *job);
uint64_t slc_cut_rows_bytes(const slc_unit *rows); /* of the rows of a micro-batch, or of their gradients */

/* Seconds of a message on its sender's egress. */
double slc_message_s(const slc_times *times, uint64_t bytes);
/* Seconds of a layer's forward, and of its backward with what it recomputes. */
double slc_layer_forward_s(const slc_profile *profile, uint32_t layer);
double slc_layer_backward_s(const slc_profile *profile, bool recompute, uint32_t layer);
/* Seconds of a layer's backward that make the gradients of its weights: half of the backward where the profile does not
 * know. */
double slc_layer_weight_s(const slc_profile *profile, uint32_t layer);
bool slc_knows_weight_times(const slc_profile *profile); /* of all layers */
/* Seconds of what ends a step for the units whose first layer this is: reductions, updates, gathers. */
double slc_layer_tail_s(const slc_cut_job *cut, uint32_t layer);

/* The unit as a stage has it: a table whose rows are looked up elsewhere is whole there. */
slc_unit slc_unit_of_stage(const slc_unit *unit);

typedef struct {
    slc_pipeline_times times; /* its arrays belong to it */
    double *rooms;
    slc_stage_operation *operations;
    slc_stage_gather *gathers;
} slc_pipeline_costs;

/* slc_pipeline_costs_fini frees it, after an error too. Errors: MEMORY. */
sluice_status slc_pipeline_costs_init(const slc_cut_job *cut, slc_pipeline_costs *out);
void slc_pipeline_costs_fini(slc_pipeline_costs *costs);
