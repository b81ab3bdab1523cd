/* The agreement of all ranks once a step: the norms that the optimizer asks for, and whether gradients are finite.
 * Private to lib/engine. */
#pragma once

#include "lib/device/device.h"
#include "lib/engine/step_state.h"
#include "lib/kernels/step_words/step_words.h"

#include <sluice/runtime.h>

/* The step words of one step on a device that runs ahead (step/words.h). */
typedef struct slc_word_set {
    slc_step_words *words;               /* in device memory, as are the next two */
    double *norms;                       /* of all parameters, as slc_step_state.norms */
    int64_t (*norm_bins)[SLC_NORM_BINS]; /* this step's sums, as slc_agreement.norm_bins */
    slc_step_words *seen;                /* the copy in pinned memory */
} slc_word_set;

typedef struct {
    int64_t *words;                      /* of the all-reduce, in the arena */
    uint64_t summed;                     /* how many of them it adds up; 0: all that the job has */
    uint32_t item;                       /* of the training program */
    uint32_t norm_count;                 /* norms and maxima that the optimizer asks for, of all parameters */
    uint32_t norm_words;                 /* words that they take */
    int64_t (*norm_bins)[SLC_NORM_BINS]; /* this rank's sums in this step; of a maximum only the first word counts */
    slc_agreed *agreed;                  /* of the call that tells the optimizer; NULL if it is not told */
    slc_word_set sets[2];                /* of steps[0], steps[1]; on a device that runs ahead, instead of the above */
    slc_pinned seen;                     /* their copies */
} slc_agreement;

/* ---- operations.c: around the all-reduce of agreement.words, to and from the step ---- */
sluice_status slc_agreement_begin(sluice_runtime *rt, slc_step_state *step);
sluice_status slc_agreement_end(sluice_runtime *rt, slc_step_state *step);

/* Words that a rank brings to an agreement of stages: those of the job, and under a compressed optimizer the bins of
 * the rank's own gradient, of which each stage has only a part. */
uint64_t slc_agreement_stage_words(const sluice_runtime *rt);

/* ---- norms.c: norms of whole parameters, for an optimizer that asks for them ---- */
sluice_status slc_norms_create(sluice_runtime *rt);
void slc_norms_destroy(sluice_runtime *rt);
/* pack moves this rank's sums to the agreement's words and zeroes them. unpack makes norms of the ranks' sums. */
void slc_norms_pack(sluice_runtime *rt, int64_t *words);
void slc_norms_unpack(const sluice_runtime *rt, const int64_t *words, slc_step_state *step);
/* Tells the optimizer of the norms of all parameters that are not in a onebit unit; they lie where its kernels read. A
 * compressed optimizer is told of those that this rank holds. */
sluice_status slc_norms_tell(const sluice_runtime *rt, const slc_step_state *step, double *norms);
/* The norm of this rank's own gradients in onebit units, scaled as if they were averaged over one rank, before
 * clipping. */
double slc_own_norm(const slc_step_state *step);

/* ---- non_finite.c: with nan = stop an error, else nothing ---- */
/* NON_FINITE if the step's gradients are not finite. Its agreement is over. Collective if it is an error. */
sluice_status slc_engine_check_finite(sluice_runtime *rt, const slc_step_state *step);
/* NON_FINITE after an exchange that overflowed and that no agreement has told of. Everything is complete. */
sluice_status slc_engine_check_exchanges(const sluice_runtime *rt);
