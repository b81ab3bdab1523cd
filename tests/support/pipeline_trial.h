/* Small models that train in a pipeline, or as ranks without one, and what must be equal in both. */
#pragma once

#include "tests/support/ranks.h"

#include <sluice/model.h>

enum { BATCH = 2, LENGTH = 6, VOCABULARY = 37, IMAGE = 8, MICRO_BATCHES_MAX = 8, LAYERS = 4 };
enum { STEPS = 3, STEPS_LONG = 50, STEPS_MOST = 2500, REPLICAS_MAX = 3, LIMIT_S = 120 };
enum { SHARED_BYTES = 65536, PIXELS = BATCH * IMAGE * IMAGE };

enum { MODELS = 5 };

extern const sluice_model_config trial_models[MODELS];

/* One way to train. */
typedef struct {
    uint32_t model, micro_batches, stages, replicas, chunks; /* stages 0: no pipeline; replicas 0: 1 */
    const char *schedule, *optimizer, *strategy;             /* strategy NULL: auto */
    uint64_t block_bytes;                                    /* 0: as the engine chooses */
    char cuts[64];                                           /* "": auto */
    double clip, dropout;
    sluice_dtype precision;
    sluice_recompute recompute;
    sluice_nan_policy nan;
    uint32_t steps;             /* 0: STEPS */
    uint32_t freeze;            /* the last step of a compressed optimizer's warm-up */
    bool messages, tight, each; /* tight: in the smallest budget; each: every micro-batch is reduced */
    bool slow;                  /* the planner is told that messages are slow and layers are fast */
    uint32_t ranks_a_host;      /* so many are neighbours, and reach the others by messages; 0: all of them */
    uint64_t seed;
} trial;

typedef struct {
    char sha256[65];
    double losses[REPLICAS_MAX][STEPS_MOST];
    double evaluated[REPLICAS_MAX][2];
    uint64_t planned[RANKS_MAX], peak[RANKS_MAX];
} trial_outcome;

typedef struct {
    trial trial;
    trial_outcome *out;    /* shared by all processes */
    uint32_t first, last;  /* steps; last 0: all */
    const char *from, *to; /* folders of checkpoints; NULL: none. A step is saved behind those that follow, */
    uint32_t saved;        /* step number saved + 1; 0: the first */
} trial_run;

#define PLAIN .micro_batches = 4, .optimizer = "adamw"

typedef struct {
    int32_t tokens[BATCH * LENGTH], types[BATCH * LENGTH], targets[BATCH * LENGTH];
    uint8_t mask[BATCH * LENGTH];
    float pixels[PIXELS];
} trial_arrays;

/* Fills micro-batch `number` of all that are ever trained on; trial_batch borrows it. */
void trial_fill(trial_arrays *a, uint64_t number);
sluice_batch trial_batch(const sluice_model_config *c, const trial_arrays *a);

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
    bool skipped; /* the last step, because a gradient was not finite */
} trial_trainer;

sluice_config trial_config(const trial *t);
/* Functions that run in a rank, whose world is there; they return 0, or 1 after a failed RANK_CHECK. make commits, with
 * the smallest budget if the trial is tight; step trains one step. */
int trial_make(const trial *t, trial_trainer *made);
int trial_step(const trial *t, trial_trainer *with, uint32_t number, double *loss, bool *here);
void trial_end(trial_trainer *t);
/* All of a run, of which the context is a trial_run; a rank_function. */
int trial_train(int rank, int size, void *context);

/* Memory of SHARED_BYTES that all processes see. */
trial_outcome *trial_shared(void);
/* Prints the trial. */
void trial_describe(const trial *t);
int trial_replicas(const trial *t); /* of a stage, or ranks without a pipeline */
int trial_ranks(const trial *t);
/* Trains with and without a pipeline: weights, losses and evaluations must be equal to the bit, and the peak of each
 * rank what was planned. */
void trial_check(const trial *t);

/* A run that is saved after some steps into a folder of its own, beside the same run as a whole; and `next`, which goes
 * on from there as its trial says, after `first` steps. */
typedef struct {
    char folder[64];
    trial_run whole, saved, next;
} saved_trial;

/* Trains `whole`, and `saved`, which writes its checkpoint of `steps` steps while it trains `behind` more. */
void saved_trial_make(const trial *t, uint32_t steps, uint32_t behind, saved_trial *s);
/* Trains `next`, whose weights must be those that `like` ended with. */
void saved_trial_go_on(saved_trial *s, const trial_run *like);
/* Removes the folder and frees what the runs share. */
void saved_trial_end(saved_trial *s);

/* Draws a trial with replicas 1. */
trial trial_draw(uint64_t *seed);
