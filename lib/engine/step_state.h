/* The settings and results of one step. A runtime has two, because the last operations of a step run into the next one,
 * late ones as part of its pass. Private to lib/engine. */
#pragma once

#include "lib/kernels/norm/norm.h"
#include "lib/optim/compressed.h"
#include "lib/plan/plan.h"

/* The time of a step of a stage of a pipeline that its operations do not tell. */
typedef struct {
    double slots_s;
    double waited_s[SLC_STAGE_CHANNELS_MAX]; /* compute waited for messages of each channel, */
    double end_s;                            /* and for the other stages at the step's end */
} slc_stage_times;

typedef struct slc_step_state {
    uint64_t step;
    uint32_t micro_batches; /* that it runs (slc_step_ordinal) */
    double learning_rate;
    bool has_group_rates; /* else all parameters have learning_rate */
    double *group_rates;  /* the factors on it, by the parameters' groups; kept from step to step */
    bool leaves_out;      /* some layers, those for which left_out is set */
    bool *left_out;       /* [layers], kept from step to step */
    uint64_t *updates;    /* [parameters]: which of its updates the step makes, from 1; kept from step to step */
    float scale;          /* of sums over ranks and micro-batches, by which reductions multiply them */
    double left_scale;    /* what is left of it to updates: 1, unless reductions leave it to them */
    double factor;        /* of clipping */
    bool skip;            /* NAN_SKIP: nothing is updated */
    int64_t bins[SLC_NORM_BINS];
    int64_t non_finite; /* reduced ranges with NaN or infinity, of all ranks after agreement */
    uint32_t bad_param; /* the first parameter in which this rank found such a range, or SLC_NONE */
    double exposed_s;
    slc_stage_times stage;
    uint64_t started_ns, bytes_sent_before;
    const struct slc_word_set *ahead; /* step/words.h; NULL on a device that does not run ahead. Where it is not NULL,
                                         factor stays 1, and bins, non_finite, bad_param and skip are known to the
                                         caller's thread alone, after the agreement */
    double *norms; /* that the optimizer asks for, of all parameters, after agreement; kept from step to step */

    /* Settings and results of units under onebit. */
    slc_step_mode mode;
    bool compressed;                /* the step's phase */
    bool average_off, exchange_off; /* in this step they are neither averaged nor exchanged */
    double own_scale, own_factor;   /* of this rank's own gradient: as if it was averaged over one rank; of clipping */
    int64_t own_bins[SLC_NORM_BINS];
} slc_step_state;

/* The number among the micro-batches that the step runs; SLC_NONE: it is left out. */
static inline uint32_t slc_step_ordinal(const slc_step_state *step, uint32_t most, uint32_t micro_batch)
{
    return slc_ordinal_of_run(step->micro_batches, most, micro_batch);
}
