/* A rank's stage of a pipeline. The runtime's job, units and layers are those of the stage; what every rank has
 * registered is kept beside them. Private to lib/engine. */
#pragma once

#include "lib/comm/channels.h"
#include "lib/engine/model/state.h"
#include "lib/engine/step_state.h"
#include "lib/optim/compressed.h"
#include "lib/plan/request.h"

#include <sluice/plan.h>

enum { SLC_ROWS, SLC_ROW_GRADIENTS };

/* A table whose rows are looked up in another stage (step/stage_rows.h). */
typedef struct {
    sluice_param *param;   /* NULL: there is none */
    const slc_unit *whole; /* the ROWS unit of the whole job */
    bool looks_up, holds;  /* this rank has the layer that looks rows up; it has the table */
    uint32_t unit;         /* of the table, where this rank holds it */
    uint64_t row_elements, row_count, most_rows;
    sluice_dtype dtype, gradient_dtype;
    uint32_t channels[2];  /* SLC_ROWS, SLC_ROW_GRADIENTS: places in job.channels */
    slc_row_mark *marks;   /* of all rows */
    unsigned char *lists;  /* rows of each micro-batch of the step */
    unsigned char *memory; /* at the holder: slc_table_places begin here, in the scratch of the plan that runs */
    slc_table_places places;
    slc_rows sum;             /* as collectives know the rows that have gradients in this step, */
    slc_row_list *sum_list;   /* and this rank's own list of them */
    slc_unit_state table;     /* what the look-up's slots see: values and gradients of one micro-batch */
    struct slc_look_up *none; /* of `table`, which looks rows up; nothing is in it */
} slc_stage_rows;

/* The stage in a phase of the optimizer: strategies differ from phase to phase, cuts do not. All phases are known at
 * commit; there is one if the optimizer compresses nothing. */
typedef struct {
    slc_compressed_phase phase;
    slc_stages_cut cut;
    slc_stage_answer own; /* its job is the runtime's while the phase runs, its plan NULL meanwhile */
} slc_stage_phase;

typedef struct {
    char *schedule, *cuts;   /* as configured */
    sluice_stage_times told; /* as the program says; 0: it does not */
    uint32_t stages;         /* 0: there is no pipeline */
    uint32_t number;         /* of this rank's stage */
    slc_stage_phase phases[SLC_PHASES_MAX];
    uint32_t phase_count;
    slc_stage_phase *now; /* the one that runs; NULL before commit */

    slc_job whole; /* the job of all layers, and its units */
    slc_unit_state *whole_units;
    slc_region *whole_regions;
    sluice_layer **layers; /* of the whole model, in registration order */
    uint32_t layer_count;

    slc_comm *group;        /* of the replicas of this stage */
    slc_channel **channels; /* [job.channel_count] */
    uint32_t **carried;     /* [job.channel_count] the job's activations that a channel carries, all turns of them */
    uint32_t *carried_count;
    uint32_t *transfers;          /* [job.channel_count] of one message, each of one activation */
    uint32_t *next_transfer;      /* [job.channel_count] number that the next one will get */
    void **places;                /* [job.activation_count] where they lie in the plan that runs */
    uint32_t *lives, *first_life; /* activations that live in slot s: lives[first_life[s] .. first_life[s + 1]) */

    slc_stage_rows rows;

    slc_gate agreed;            /* counts agreements that are over, */
    uint32_t agreements;        /* and passes that have begun, each of which has one */
    int64_t *words, *all_words; /* of this rank; of all ranks */

    struct {
        slc_stage_times times;
        double exposed_s;
        uint64_t bytes_before[SLC_STAGE_CHANNELS_MAX],
            bytes[SLC_STAGE_CHANNELS_MAX];            /* of channels, all steps so far */
    } last;                                           /* the last step that has ended */
    uint64_t evaluated_bytes[SLC_STAGE_CHANNELS_MAX]; /* that evaluations have sent or received on a channel */
} slc_stage;

/* The piece of the model, after commit, that has a layer of the whole model. */
static inline uint32_t slc_stage_piece_of(const slc_stage *stage, uint32_t layer)
{
    uint32_t piece = 0;
    while (piece + 1 < stage->stages * stage->now->cut.chunks && stage->now->cut.first_layer[piece + 1] <= layer)
        piece++;
    return piece;
}

/* Seconds in which a stage's compute waited for other stages; 0 where there is no pipeline. */
static inline double slc_stage_idle_s(const slc_stage_times *times)
{
    double sum_s = times->end_s;
    for (uint32_t c = 0; c < SLC_STAGE_CHANNELS_MAX; c++) sum_s += times->waited_s[c];
    return sum_s;
}

static inline bool slc_is_stage(const slc_stage *stage)
{
    return stage->stages > 0;
}
