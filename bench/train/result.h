/* The figures of a training run: of each step, of its phases, of all of it. */
#pragma once

#include "bench/cli/outcome.h"
#include "bench/train/data/data_about.h"
#include "bench/train/options/training_options.h"
#include "bench/train/stages.h"

#include <sluice/plan.h>
#include <stdbool.h>
#include <stdint.h>

/* The figures of one step; equal on every rank but for the times. */
typedef struct {
    uint64_t step; /* from 1 */
    double loss;   /* mean over the targets of all ranks and micro-batches */
    double learning_rate;
    double share;     /* of --micro-batches that it ran */
    double step_s;    /* on this rank, until the next step could begin, without planning */
    bool provisional; /* its plan served to measure: a re-plan was to follow */
    double exposed_s;
    double planning_s;    /* after the step: planning again and moving over; 0: there was none */
    double gradient_norm; /* NaN: not measured (sluice_step_report.gradient_norm) */
    bool skipped;
    bool compressed; /* a step of the compressed phase */
    uint64_t peak_bytes, bytes_sent;
    uint32_t plan;           /* the plan that ran it, from 1; a re-plan at its end shows in the next step */
    double predicted_step_s; /* predicted by that plan from measured times; NaN: not predicted */
    double evaluation_loss;  /* NaN: not evaluated after this step */
    double accuracy;         /* of that evaluation; NaN: none, or the model does not answer with classes */
    uint64_t tokens;         /* of all ranks since the very beginning of the training; of images: patches and one */
    double passes;           /* how often the training data was seen since then, 0.25: a quarter; NaN: not known */
    double smoothed_loss;    /* mean of the latest losses of this run (smoothing.h); NaN: none was finite */
} slc_training_step;

enum { SLC_TRAINING_POINTS = 65536 };

/* A step of a run's course. */
typedef struct {
    double loss, learning_rate;
    double elapsed_s; /* of training, up to the step's end */
    double tokens;    /* slc_training_step.tokens */
    bool skipped;
} slc_training_point;

/* The course of a run of any length: its steps, and if there are more than SLC_TRAINING_POINTS of them every second,
 * every fourth, and so on. */
typedef struct {
    slc_training_point *points;
    uint64_t count, room;
    uint64_t every; /* 1: all steps; 0: there was none */
    uint64_t seen;  /* steps */
    double elapsed_s;
} slc_training_course;

/* The steps from which the medians of a run, or of a phase, are made: the latest under the last plan and of one size,
 * without the first two. */
typedef struct {
    uint64_t first, steps; /* number of the first step of all, from 1; how many there are */
    uint32_t plan;
    bool provisional;
    double share;   /* slc_training_step.share of these steps */
    uint64_t under; /* steps under that plan */
    double *step_s, *exposed_s;
    uint64_t kept, room;        /* steps that were kept; if there are more than `room` the latest are left */
    double bytes, steady_bytes; /* sent in all steps; in those that were kept */
} slc_training_steady;

/* One phase of a run: the steps that exchange averaged gradients only, or those of a compressed optimizer's compressed
 * phase. */
typedef struct {
    uint64_t first, steps;    /* number of the first, from 1; how many */
    double step_s, exposed_s; /* medians under the phase's last plan, without its first two steps; NaN: fewer than three
                                 are left */
    double bytes_sent;        /* by rank 0 in a step; the mean, because not all steps of 0/1 Adam exchange */
} slc_training_phase;

/* The saves of a run, on this rank (sluice_save_report). */
typedef struct {
    bool latest;    /* the last state is in --save DIR */
    uint64_t count; /* that succeeded */
    double held_s;  /* a step was held so long at most; 0 where no step came after a save */
    double whole_s; /* one was written so long at most */
    double last_s;  /* how long the run waited for the last one, behind its last step; 0: none was there */
} slc_training_saved;

typedef struct {
    uint64_t step_count, skipped; /* done by this run; skipped: because a gradient was not finite */
    slc_training_course course;
    slc_training_steady all, before_freeze, after_freeze; /* the latter two: of the phases */
    double first_loss, last_loss;                         /* of steps whose loss is finite; NaN: there was none */
    double last_predicted_s;                              /* predicted_step_s of the last step */
    bool interrupted;                                     /* before the last step, by the user or by the deadline */
    bool out_of_time;                                     /* by the deadline alone */
    uint64_t steps_before;                                /* steps of the run that --resume continues */
    slc_training_saved saved;
    bool weights_saved;                          /* they are in --save-weights DIR */
    uint64_t ranks, parameters, tokens_per_step; /* tokens of all ranks */
    uint64_t images_per_step;                    /* of all ranks; 0: text */
    /* Medians over the steps of the last plan without its first two; NaN if fewer than three are left. */
    double step_s, step_min_s, exposed_s, tokens_per_s;
    double step_mean_s;    /* the mean over these steps, which predicted_step_s is for where steps draw their layers */
    uint64_t steps_wanted; /* so many steps this run needs for them */
    double images_per_s;   /* NaN: text */
    double predicted_step_s;                       /* predicted by the last plan; NaN: not predicted */
    sluice_plan_trial trials[SLC_TRAINING_TRIALS]; /* the plans that were tried */
    uint32_t trial_count;
    sluice_prediction prediction;           /* by the last plan, beside its steps */
    double train_s;                         /* all steps */
    double final_loss;                      /* mean of the last tenth of the steps */
    double evaluation_loss;                 /* at the end; NaN: none */
    double accuracy;                        /* of that evaluation; NaN: none, or no classes */
    slc_training_phase warm_up, compressed; /* steps 0: no such phase. Other optimizers only have a warm-up */
    const char *device;                     /* as sluice_runtime_device says */
    sluice_model_config model;              /* with what the data decided */
    uint32_t length;                        /* tokens a sequence; 0: images */
    sluice_memory_report memory;            /* in a pipeline of the rank that needs most */
    slc_training_pipeline *pipeline;        /* NULL: there is none */
    bool cuts_measured;                     /* a pipeline's cuts go by measured times */
    uint64_t dp_bytes;                      /* the bytes that a budget of 100 % means */
    char *new_parameters;                   /* names of those that --weights lacks, with commas between; NULL: none */
    char weights_sha256[65];                /* "": not hashed */
    slc_training_data_counts examples;      /* that all ranks took; all 0 for windows and images */
    slc_outcome
        outputs; /* errors of files that this rank could not write (its last save, weights, a trace); the run went on */
} slc_training_result;
