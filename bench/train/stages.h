/* The stages of a pipeline in a run's result: what each of them holds, and how its steps went. Each rank notes its own
 * steps, and after the last one all of them share the medians. */
#pragma once

#include <sluice/plan.h>

/* One end of a channel (sluice_stage_channel). */
typedef struct {
    char what[24]; /* "activations", ... */
    uint32_t piece, stage;
    bool receives;
    uint64_t step_bytes;
    double waited_s; /* median; NaN: no step counts */
} slc_training_channel;

/* A stage. Times are those of its replica that computes longest, bytes those of its replica that needs most. */
typedef struct {
    uint64_t planned_bytes, peak_bytes;
    double compute_s, idle_s, exposed_s, end_s; /* medians (sluice_stage_report); NaN: no step counts */
    double predicted_compute_s, predicted_idle_s, predicted_exposed_s; /* before the first step; NaN: not predicted */
    uint32_t channel_count;
    slc_training_channel channels[SLUICE_STAGE_CHANNELS_MAX];
} slc_training_stage;

typedef struct {
    uint32_t stage_count, replicas, chunks, micro_batches;
    char schedule[24];
    double predicted_step_s; /* before the first step; NaN: not predicted */
    double measured_step_s;  /* a usual step on the rank that computes longest (sluice_prediction); NaN: none counts */
    uint32_t layer_count;
    char **layers;    /* [layer_count] names, in forward order */
    uint32_t *pieces; /* [layer_count] the piece that has the layer; piece c * stage_count + s is chunk c of stage s */
    slc_training_stage *stages; /* [stage_count] */
} slc_training_pipeline;

void slc_training_pipeline_destroy(slc_training_pipeline *pipeline); /* NULL is allowed */

/* Names the layers of a stage in `out`, as "embed-h.2, h.6-h.7"; cut where there is no room. */
void slc_training_stage_layers(const slc_training_pipeline *pipeline, uint32_t stage, char *out, size_t bytes);

/* The latest steps of this rank's stage. */
typedef struct slc_stage_notes slc_stage_notes;

/* *out becomes NULL where there is no pipeline. Errors: MEMORY, ORDER (before commit). */
sluice_status slc_stage_notes_create(const sluice_runtime *rt, slc_stage_notes **out);
void slc_stage_notes_destroy(slc_stage_notes *notes); /* NULL is allowed */
/* Notes the step that has ended. The first two after a change of `plan` do not count. Does nothing for NULL. Local. */
sluice_status slc_stage_notes_add(slc_stage_notes *notes, const sluice_runtime *rt, uint32_t plan);
/* Gathers all stages, on every rank; *memory becomes that of the rank that needs most. `prediction` is the run's.
 * Collective, on all ranks or on none. The caller destroys *out, which is NULL where there is no pipeline. */
sluice_status slc_stage_notes_gather(slc_stage_notes *notes, sluice_runtime *rt, uint32_t micro_batches,
                                     const sluice_prediction *prediction, sluice_memory_report *memory,
                                     slc_training_pipeline **out);
