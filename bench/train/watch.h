/* A watch goes along with a training run: it is told what happens, and says when to stop. */
#pragma once

#include "bench/train/data/data.h"
#include "bench/train/deadline.h"
#include "bench/train/result.h"

#include <signal.h>
#include <sluice/runtime.h>

typedef struct {
    /* Called on every rank after each step; a status that is not OK ends the run and is returned. NULL: none. */
    sluice_status (*stepped)(const slc_training_step *step, void *context);
    /* Called on every rank once the last step is done, before the runtime goes. NULL: none. */
    sluice_status (*finished)(sluice_runtime *rt, void *context);
    /* Called on every rank before the first step, when the memory is laid out. NULL: none. */
    sluice_status (*begun)(sluice_runtime *rt, const slc_training_result *so_far, const slc_training_data *data,
                           void *context);
    /* Called on every rank, between steps, when the runtime has a plan that it will keep. A plan that only served to
     * measure is given at the end of a run that kept no other. NULL: none. */
    sluice_status (*planned)(sluice_runtime *rt, void *context);
    /* Called on every rank with a sample (run/samples.h), which is "" but on rank 0. NULL: none. */
    sluice_status (*sampled)(const slc_training_step *step, const char *text, void *context);
    void *context;
    /* Counts how often the user asked to stop (stop_signals.h). 1: all ranks stop together after the step; 2: this rank
     * gives up at once. NULL: never. */
    const volatile sig_atomic_t *stops;
    slc_training_deadline *deadline; /* all ranks stop together before it; NULL: never */
} slc_training_watch;
