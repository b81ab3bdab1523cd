/* The options that the subcommands which train share, as an argp parser to put among a command's children: its input is
 * a slc_training_options. A command that takes lists for strategy, schedule or budget reads their text itself and sets
 * them for each run. */
#ifndef SLC_BENCH_TRAINING_OPTIONS_H
#define SLC_BENCH_TRAINING_OPTIONS_H

#include <argp.h>
#include <sluice/model.h>
#include <sluice/runtime.h>
#include <sluice/world.h>

enum { SLC_TRAINING_DATA_MAX = 64 };

typedef struct {
    const char *model, *size, *head;         /* head "": the model's */
    const char *weights;                     /* NULL: first values */
    const char *save_weights;                /* NULL: nowhere */
    const char *data[SLC_TRAINING_DATA_MAX]; /* paths */
    uint64_t data_count;
    uint64_t batch, context, micro_batches, steps, seed, threads; /* context 0: by the model's size */
    const char *device, *precision, *wire;
    const char *layer_precision;         /* NULL: none differs */
    const char *optimizer;               /* "": by strategy and lossy (training_onebit.h), until the check names it */
    const char *lossy;                   /* none, onebit */
    uint64_t freeze_step, onebit_compat; /* 0: by the steps; 0 or 1 */
    double freeze_change;                /* 0: the step decides */
    const char *onebit;                  /* KEY=VALUE,...; NULL: none */
    double learning_rate, clip, dropout;
    uint64_t warmup;
    const char *nan, *accumulate, *tied;
    const char *strategy, *schedule, *recompute;
    sluice_updates updates; /* no option: SLUICE_PLAN_UPDATES says */
    const char *budget;     /* as given: "", "900MiB", "60%" */
    const char *block;
    const char *throttle;
    double timeout_s; /* 0: the world's default */
    uint64_t eval_every, eval_batches;
    uint64_t ranks;                 /* 0: as the launcher says */
    const char *json, *csv, *trace; /* NULL: none */
    const char *save, *resume;      /* folders; NULL: none */
    uint64_t save_every;            /* 0: only at the end */
    const char *on_save_error;      /* stop, warn */
} slc_training_options;

const struct argp *slc_training_argp(void);

/* Defaults; also done by the parser before it reads the first option. */
void slc_training_options_init(slc_training_options *options);

/* What can be known without a runtime: names that this version lacks, sizes that are none, a context that is too long.
 * With weights, model and size become theirs; a head and an optimizer that are left open are named. Errors: ARGUMENT,
 * UNSUPPORTED, and those of reading weights. */
sluice_status slc_training_options_check(slc_training_options *options);

/* For commands that train only to measure: keeping what was trained is refused (ARGUMENT). */
sluice_status slc_training_options_keep_nothing(const slc_training_options *options);

/* Collective, before anything that the options decide: ranks that train with different ones would wait for each other,
 * or train with two learning rates. Errors: MISMATCH on every rank, naming the option. */
sluice_status slc_training_options_compare(const slc_training_options *options, sluice_world *world);

/* The model and the runtime that the options describe; they have passed the check. *length: tokens a sequence, 0 for
 * images. What data alone decides (classes) is not known yet. */
sluice_status slc_training_model(const slc_training_options *options, sluice_model_config *model, uint32_t *length);
sluice_status slc_training_config(const slc_training_options *options, sluice_config *config);
/* The launcher's world with the options' throttle and time limit. */
sluice_status slc_training_world(const slc_training_options *options, sluice_world_config *config);

#endif
