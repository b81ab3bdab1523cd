/* The values of the options that subcommands which train share (options.h has the table). Strings stay their owner's
 * (argv, the table). */
#pragma once

#include <sluice/model.h>
#include <sluice/runtime.h>
#include <stdbool.h>
#include <stdint.h>

enum { SLC_TRAINING_DATA_MAX = 64, SLC_TRAINING_OPTIONS_MAX = 160, SLC_TRAINING_SETTINGS_MAX = 16 };

/* A setting of the optimizer that an option gives: a number, NaN while it is left open; of a switch 0 or 1. */
typedef union {
    double real;
    uint64_t on;
} slc_training_setting;

enum { SLC_TRAINING_TRIALS = 8 }; /* --replan-trials at most, and the planner's own plan */

typedef struct {
    const char *model, *size, *head;         /* head "": the model's */
    const char *norm;                        /* before, after; "": as the model has them */
    const char *positions;                   /* own, shared; "": as the model has them */
    const char *weights;                     /* NULL: first values */
    const char *save_weights;                /* NULL: nowhere */
    const char *tokenizer;                   /* NULL: that of the weights, if they have one */
    uint64_t token_cache;                    /* bytes; 0: there is none */
    const char *first_batch;                 /* NULL: not written */
    sluice_model_config shape;               /* of the checkpoint that is gone on from; struct_size 0: none */
    const char *data[SLC_TRAINING_DATA_MAX]; /* paths */
    uint64_t data_count;
    const char *eval_data[SLC_TRAINING_DATA_MAX]; /* paths; none: a part of `data` is held out */
    uint64_t eval_data_count;
    const char *data_type, *fields, *data_index; /* lib/data/dataset.h; fields, data_index NULL: none */
    const char *sequences, *too_long;            /* auto, windows, documents; cut, skip */
    const char *chat_template;                   /* NULL: the tokenizer's */
    const char *visual_tokens;                   /* NULL: those of the weights or of a codebook of the images */
    uint64_t image_draft;                        /* 0 or 1 */
    uint64_t pad_to, length_groups;              /* pad_to 0: it follows from the context */
    double epochs;                               /* 0: `steps` says how many steps there are */
    uint64_t first_batches;                      /* steps that `first_batch` gets */
    uint64_t batch, context, micro_batches, steps, seed, threads; /* context 0: by the model's size */
    const char *device, *precision, *wire;
    const char *layer_precision;         /* NULL: none differs */
    const char *optimizer;               /* "": the check names it, by strategy and lossy (onebit_options.h) */
    const char *lossy;                   /* none, onebit */
    uint64_t freeze_step, onebit_compat; /* 0: it follows from the steps; 0 or 1 */
    double freeze_change;                /* 0: the step decides */
    const char *onebit;                  /* KEY=VALUE,...; NULL: none */
    double learning_rate, clip, dropout, drop_path;
    uint64_t warmup, warmup_again, warmup_again_at; /* 0: none */
    const char *lr_schedule, *lr_over;              /* lr_schedule.h; steps, tokens */
    double lr_min;
    double layer_decay;
    const char *pld;     /* "THETA" or "THETA,GAMMA" (depth_options.h); "": no layer is left out */
    uint64_t pld_compat; /* 0 or 1 */
    const char *recipe;  /* a file (recipe_file.h); NULL: none */
    uint64_t new_recipe; /* 0 or 1 */
    uint64_t micro_batches_from, micro_batches_over; /* batch_options.h; 0: they do not grow */
    const char *lr_rule;                             /* none, linear, sqrt */
    uint64_t lr_batch;
    const char *curriculum, *curriculum_batch;   /* length_options.h; "": lengths do not grow; fixed, tokens */
    uint64_t lr_horizon, lr_decay, lr_timescale; /* as warmup counted in what lr_over says; 0: their defaults */
    slc_training_setting optimizer_settings[SLC_TRAINING_SETTINGS_MAX]; /* optimizer_options.h */
    double label_smoothing;
    const char *nan, *accumulate, *tied, *sums;
    uint64_t nan_limit; /* skipped steps in a row that end the run */
    const char *strategy, *schedule, *recompute;
    const char *pipeline, *pipeline_schedule, *pipeline_cuts; /* off, or a number of stages; a name; auto, or layers */
    uint64_t pipeline_chunks;                                 /* 0: as the schedule has them */
    sluice_updates updates;                                   /* no option: SLUICE_PLAN_UPDATES says */
    const char *budget;                                       /* as given: "", "900MiB", "60%" */
    const char *block;
    const char *throttle;
    double timeout_s;    /* 0: the world's default */
    double time_limit_s; /* of planning; 0: none */
    uint64_t replan_trials;
    uint64_t eval_every, eval_batches;
    uint64_t ranks;                              /* 0: as the launcher says */
    const char *json, *csv, *trace;              /* NULL: none */
    const char *log;                             /* a folder (log/run_log.h); NULL: none */
    const char *config;                          /* a file with options (bench/cli/options/config_file.h); NULL: none */
    uint64_t verbose, overwrite, no_hash;        /* 0 or 1 */
    uint64_t sample_every;                       /* 0: never */
    uint64_t observe;                            /* steps from one observation to the next; 0: none (log/observer.h) */
    const char *prompt;                          /* NULL: none */
    const char *plan, *plan_out, *profile_out;   /* files; NULL: none */
    const char *save, *resume;                   /* folders; NULL: none */
    const char *go_on;                           /* a folder that becomes both (checkpoint/go_on.h); NULL: none */
    const char *stop_after;                      /* a time as given (deadline.h); NULL: none */
    uint64_t save_every;                         /* 0: only at the end */
    const char *on_save_error;                   /* stop, warn */
    bool shape_only;                             /* no option: a config.json without weights will do for `weights` */
    bool data_of_config;                         /* no option: `data` is what --config says, and --data replaces it */
    const char *typed[SLC_TRAINING_OPTIONS_MAX]; /* what the command line or slc_training_option_set gave each option;
                                                    NULL: nothing */
} slc_training_options;
