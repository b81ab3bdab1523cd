/* One training run in this process: from the options to losses, times and memory. `sluice train` shows one; `sluice
 * bench` makes many, one after another, on one world. Collective: every rank of the world makes the same calls. */
#ifndef SLC_BENCH_TRAINING_RUN_H
#define SLC_BENCH_TRAINING_RUN_H

#include "bench/cli/outcome.h"
#include "bench/train/data/data.h"
#include "bench/train/deadline.h"
#include "bench/train/options/options.h"

#include <signal.h>
#include <sluice/runtime.h>
#include <stdbool.h>

/* The figures of one step; equal on every rank but for the times. */
typedef struct {
    uint64_t step; /* from 1 */
    double loss;   /* mean over the targets of all ranks and micro-batches */
    double learning_rate;
    double step_s;    /* on this rank, until the next step could begin, without planning */
    bool provisional; /* its plan served to measure: a re-plan was to follow */
    double exposed_s;
    double gradient_norm; /* NaN without clipping */
    bool skipped;
    bool compressed; /* a step of the compressed phase */
    uint64_t peak_bytes, bytes_sent;
    uint32_t plan;           /* the plan that ran it, from 1; a re-plan at its end shows in the next step */
    double predicted_step_s; /* predicted by that plan from measured times; NaN: not predicted */
    double evaluation_loss;  /* NaN: not evaluated after this step */
    double accuracy;         /* of that evaluation; NaN: none, or the model does not answer with classes */
} slc_training_step;

/* One phase of a run: the steps that exchange averaged gradients only, or those of a compressed optimizer's compressed
 * phase. */
typedef struct {
    uint64_t first, steps;    /* number of the first, from 1; how many */
    double step_s, exposed_s; /* medians under the phase's last plan, without its first two steps; NaN: fewer than three
                                 are left */
    double bytes_sent;        /* by rank 0 in a step; the mean, because not all steps of 0/1 Adam exchange */
} slc_training_phase;

typedef struct {
    slc_training_step *steps;                    /* step_count of them, done by this run */
    uint64_t step_count, skipped;                /* skipped: because a gradient was not finite */
    bool interrupted;                            /* before the last step, by the user or by the deadline */
    bool out_of_time;                            /* by the deadline alone */
    uint64_t steps_before;                       /* steps of the run that --resume continues */
    bool saved;                                  /* the last state is in --save DIR */
    uint64_t ranks, parameters, tokens_per_step; /* tokens of all ranks */
    uint64_t images_per_step;                    /* of all ranks; 0: text */
    /* Medians over the steps of the last plan without its first two; NaN where fewer than three are left. */
    double step_s, step_min_s, exposed_s, tokens_per_s;
    uint64_t steps_wanted;                  /* so many steps this run needs for them */
    double images_per_s;                    /* NaN: text */
    double predicted_step_s;                /* predicted by the last plan; NaN: not predicted */
    double train_s;                         /* all steps */
    double final_loss;                      /* mean of the last tenth of the steps */
    double evaluation_loss;                 /* at the end; NaN: none */
    double accuracy;                        /* of that evaluation; NaN: none, or no classes */
    slc_training_phase warm_up, compressed; /* steps 0: no such phase. Other optimizers only have a warm-up */
    const char *device;                     /* as sluice_runtime_device says */
    sluice_memory_report memory;
    uint64_t dp_bytes;    /* the bytes that a budget of 100 % means */
    char *new_parameters; /* names of those that --weights lacks, with commas between; NULL: none */
    char weights_sha256[65];
    slc_outcome
        outputs; /* errors of files that this rank could not write (its last save, weights, a trace); the run went on */
} slc_training_result;

typedef struct {
    /* Called on every rank after each step; a status that is not OK ends the run and is returned. NULL: none. */
    sluice_status (*stepped)(const slc_training_step *step, void *context);
    /* Called on every rank once the last step is done, before the runtime goes. NULL: none. */
    sluice_status (*finished)(sluice_runtime *rt, void *context);
    /* Called on every rank before the first step, when the memory is laid out. NULL: none. */
    sluice_status (*begun)(sluice_runtime *rt, const slc_training_result *so_far, const slc_training_data *data,
                           void *context);
    /* Called on every rank, between steps, when the runtime has a plan that it will keep, and of one that only served
     * to measure at the end of a run that kept no other. NULL: none. */
    sluice_status (*planned)(sluice_runtime *rt, void *context);
    void *context;
    /* How often the user asked to stop (stop_signals.h). 1: all ranks stop together after the step; 2: this rank gives
     * up at once. NULL: never. */
    const volatile sig_atomic_t *stops;
    slc_training_deadline *deadline; /* all ranks stop together before it; NULL: never */
} slc_training_watch;

/* `watch` may be NULL. The caller frees the result with slc_training_result_free, also after an error: it then holds
 * the steps so far. Errors: those of the library; INTERRUPTED after a second stop. A file that could not be written is
 * no error of the run: it is reported in out->outputs. */
sluice_status slc_training_run(sluice_world *world, const slc_training_options *options,
                               const slc_training_watch *watch, slc_training_result *out);
void slc_training_result_free(slc_training_result *result);

#endif
