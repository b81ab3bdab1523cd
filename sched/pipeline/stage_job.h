/* A stage of a pipeline as a job of its own: its layers, the units that lie there, R ranks, M micro-batches, and a
 * place for each micro-batch that it holds at once. So the strategy table, the lifetimes and the packer say what a
 * stage needs as they do for a job without a pipeline.
 *
 * A stage keeps an activation that it has received until its last reader there, if the profile knows the readers. Else
 * it keeps one whose life ends in a backward of another stage until its own backward of that piece ends.
 *
 * Channel 2k carries what goes forward over the cut behind piece k, channel 2k + 1 what comes back. Behind the last cut
 * are those of a table whose rows are looked up elsewhere: rows, and their gradients. */
#pragma once

#include "sched/pipeline/costs.h"

typedef struct {
    uint32_t stage;
    slc_job job; /* world R; its arrays belong to it, names to the profile */
    slc_times times;
    slc_strategy *strategies;    /* [units] */
    bool *recompute;             /* [layers] */
    uint32_t *layer;             /* [layers] the layer in the profile; SLC_NONE: the one that stage_job.c adds */
    uint32_t *first_local;       /* [chunks + 1] first layer of each chunk in this job */
    slc_task *tasks;             /* of a step, in the order of the schedule */
    uint32_t task_count, ahead;  /* ahead: slc_pipeline_ahead */
    slc_stage_channel *channels; /* the job's */
    slc_stage_slot *slots;       /* in the order of the schedule */
    uint32_t slot_count;         /* M times those of a micro-batch */
    uint32_t *first_slot;        /* [tasks + 1] of `slots`, the first of each task */
    slc_activation_turn *turns;  /* the job's */
    uint64_t older_values_bytes; /* of job.scratch_bytes: versions of the values before the latest */
} slc_stage_job;

/* Makes the job of a stage from the programs of one step; slc_stage_job_fini frees it, after an error too. Errors:
 * MEMORY. */
sluice_status slc_stage_job_init(const slc_cut_job *cut, const slc_pipeline_program *program, uint32_t stage,
                                 slc_stage_job *out);
void slc_stage_job_fini(slc_stage_job *stage);

/* Returns true if two tasks of the stage, by their numbers, are of the same micro-batch of the same piece. There need
 * be no task `other`. */
bool slc_stage_same_micro_batch(const slc_stage_job *stage, uint32_t task, uint32_t other);
