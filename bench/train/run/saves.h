/* The saves of a run. A save goes on during the steps that follow it, and the run waits for the end of the last one. A
 * save that fails is tried once more, at once, with the state that the run has by then; after that --on-save-error
 * decides whether training goes on. Functions are collective, between steps. */
#pragma once

#include "bench/train/checkpoint/checkpoint.h"
#include "bench/train/deadline.h"
#include "bench/train/result.h"

typedef struct {
    const slc_training_identity *run;
    sluice_runtime *rt;
    slc_training_deadline *deadline; /* hears how long saves take; NULL: there is none */
    slc_training_saved *saved;       /* what the run's result says of them */
    bool under_way, last;            /* last: no step comes after it */
    uint64_t step;                   /* of the latest save */
    slc_outcome unsaved;             /* the latest save, if it failed */
} slc_training_saves;

/* Begins to save the run as it is at `position`, once the save before has ended, and waits for its end if `last`.
 * *stop: a save failed, and the run is to end. Errors: those of the library but IO. */
sluice_status slc_training_saves_begin(slc_training_saves *saves, const slc_training_position *position, bool last,
                                       bool *stop);
/* Goes on with the save that is under way, if there is one; slc_training_saves_end waits until it has ended. */
sluice_status slc_training_saves_go_on(slc_training_saves *saves, const slc_training_position *position, bool *stop);
sluice_status slc_training_saves_end(slc_training_saves *saves, const slc_training_position *position, bool *stop);
