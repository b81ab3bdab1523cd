/* The options that subcommands which train share, as an argp parser for a command's children: its input is a
 * slc_training_options. A command that takes lists for strategy, schedule or budget reads their text itself and sets
 * them for each run. Strings stay their owner's (argv, the table). One thread. */
#ifndef SLC_BENCH_TRAINING_OPTIONS_H
#define SLC_BENCH_TRAINING_OPTIONS_H

#include <argp.h>
#include <jansson.h>
#include <sluice/model.h>
#include <sluice/runtime.h>
#include <sluice/world.h>

enum { SLC_TRAINING_DATA_MAX = 64, SLC_TRAINING_OPTIONS_MAX = 128, SLC_TRAINING_SETTINGS_MAX = 16 };

/* A setting of the optimizer that an option gives: a number, NaN while it is left open; of a switch 0 or 1. */
typedef union {
    double real;
    uint64_t on;
} slc_training_setting;

typedef struct {
    const char *model, *size, *head;         /* head "": the model's */
    const char *weights;                     /* NULL: first values */
    const char *save_weights;                /* NULL: nowhere */
    const char *tokenizer;                   /* NULL: that of the weights, if they have one */
    const char *first_batch;                 /* NULL: not written */
    sluice_model_config shape;               /* of the checkpoint that is gone on from; struct_size 0: none */
    const char *data[SLC_TRAINING_DATA_MAX]; /* paths */
    uint64_t data_count;
    uint64_t batch, context, micro_batches, steps, seed, threads; /* context 0: by the model's size */
    const char *device, *precision, *wire;
    const char *layer_precision;         /* NULL: none differs */
    const char *optimizer;               /* "": the check names it, by strategy and lossy (onebit_options.h) */
    const char *lossy;                   /* none, onebit */
    uint64_t freeze_step, onebit_compat; /* 0: it follows from the steps; 0 or 1 */
    double freeze_change;                /* 0: the step decides */
    const char *onebit;                  /* KEY=VALUE,...; NULL: none */
    double learning_rate, clip, dropout;
    uint64_t warmup;
    const char *lr_schedule, *lr_over; /* lr_schedule.h; steps, tokens */
    double lr_min;
    uint64_t lr_horizon, lr_decay, lr_timescale; /* as warmup counted in what lr_over says; 0: their defaults */
    slc_training_setting optimizer_settings[SLC_TRAINING_SETTINGS_MAX]; /* optimizer_options.h */
    double label_smoothing;
    const char *nan, *accumulate, *tied;
    uint64_t nan_limit; /* skipped steps in a row that end the run */
    const char *strategy, *schedule, *recompute;
    sluice_updates updates; /* no option: SLUICE_PLAN_UPDATES says */
    const char *budget;     /* as given: "", "900MiB", "60%" */
    const char *block;
    const char *throttle;
    double timeout_s;    /* 0: the world's default */
    double time_limit_s; /* of planning; 0: none */
    uint64_t eval_every, eval_batches;
    uint64_t ranks;                              /* 0: as the launcher says */
    const char *json, *csv, *trace;              /* NULL: none */
    const char *plan, *plan_out, *profile_out;   /* files; NULL: none */
    const char *save, *resume;                   /* folders; NULL: none */
    const char *go_on;                           /* a folder that becomes both (checkpoint/go_on.h); NULL: none */
    const char *stop_after;                      /* a time as given (deadline.h); NULL: none */
    uint64_t save_every;                         /* 0: only at the end */
    const char *on_save_error;                   /* stop, warn */
    bool shape_only;                             /* no option: a config.json without weights will do for `weights` */
    const char *typed[SLC_TRAINING_OPTIONS_MAX]; /* what the command line or slc_training_option_set gave each option;
                                                    NULL: nothing */
} slc_training_options;

/* The difference between an option (or several, with commas) in one command and in the table; a field that is NULL is
 * as there. An option with a `doc` of its own is in the command's short help. */
typedef struct {
    const char *name;
    const char *fallback; /* its default, as it would be typed */
    const char *argument, *doc;
    const char *refused; /* why this command does not take it; its help leaves the option out */
    bool list; /* of a number: it takes several with commas, of which the first is set; slc_training_option_typed */
} slc_training_difference;

/* `differences` end with {0}; NULL: there are none. They hold for the process, in slc_training_options_init too. */
const struct argp *slc_training_argp(const slc_training_difference *differences);

/* Sets the defaults; the parser does it too before it reads the first option. */
void slc_training_options_init(slc_training_options *options);

/* Sets the option as if `text` had been typed; both strings stay the caller's, and `text` must live as long as the
 * options. Errors: ARGUMENT. */
sluice_status slc_training_option_set(slc_training_options *options, const char *name, const char *text);
/* Was the option typed or set, or does it have its default? */
bool slc_training_option_given(const slc_training_options *options, const char *name);
/* The text that was typed or set; NULL: none was, and the option has its default. */
const char *slc_training_option_typed(const slc_training_options *options, const char *name);

/* Who else than the command line reads an option: columns of the table. */
typedef enum {
    SLC_SAVED = 1,            /* a checkpoint keeps it; a run that is resumed with another value is warned */
    SLC_SAVED_COMPRESSED = 2, /* as SAVED, where the optimizer is a compressed one */
    SLC_EQUAL = 4,            /* a run that is resumed with another value is refused */
    SLC_REPORTED = 8,         /* one of the "settings" of a JSON report */
    SLC_OWN = 16,             /* ranks may differ: hosts keep files at different places, the least budget counts */
    SLC_MEASURED = 32,        /* what is measured depends on it */
} slc_option_use;

/* Adds the options that have one of `uses` to the object `settings`, in the order of the table, with the optimizer's
 * numbers and the schedule's horizon in place of what was left open. Keys are the options'
 * names, in a report with underscores. Returns 0, or -1: no memory, no object, or a text that is no UTF-8. */
int slc_training_options_json(const slc_training_options *options, unsigned uses, json_t *settings);
bool slc_training_option_must_equal(const char *name); /* EQUAL; false for a name that is no option */

/* The tokenizer that raw text is read with: --tokenizer, or the folder of --weights where it has a tokenizer.json;
 * NULL: bytes are tokens. */
const char *slc_training_tokenizer(const slc_training_options *options);

/* Checks all that can be known without a runtime: unknown names, texts that are no sizes, a context that is too long.
 * With weights, model and size become those of the weights; a head and an optimizer that are left open get their names,
 * and threads their number (bench/cli/default_threads.h).
 * Errors: ARGUMENT, UNSUPPORTED, and those of reading weights. */
sluice_status slc_training_options_check(slc_training_options *options);

/* Collective, before the options decide anything: ranks with different ones would wait for each other, or train with
 * two learning rates. Errors: MISMATCH on every rank, naming the option. */
sluice_status slc_training_options_compare(const slc_training_options *options, sluice_world *world);

/* Describe the model and the runtime that options which have passed the check ask for. *length: tokens a sequence, 0
 * for images. Fields that the data decides (classes) are not set yet. */
sluice_status slc_training_model(const slc_training_options *options, sluice_model_config *model, uint32_t *length);
sluice_status slc_training_config(const slc_training_options *options, sluice_config *config);
/* Describes the launcher's world, with the options' throttle and time limit. Errors: MISMATCH (another number of ranks
 * than -n says), those of sluice_world_config_init. */
sluice_status slc_training_world(const slc_training_options *options, sluice_world_config *config);

#endif
