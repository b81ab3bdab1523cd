/* The settings that a trial of the engine draws or sets: the model, the engine's settings, the number of steps. */
#pragma once

#include <sluice/runtime.h>
#include <stdbool.h>
#include <stdint.h>

enum { LAYERS_MAX = 5, STEPS = 4, STEPS_RANDOM = 8, STEPS_A_WORLD = 40, STEPS_A_PLAN = 8 };

typedef struct {
    uint64_t seed;
    int ranks;
    uint32_t layers, micro_batches;
    bool fewer;      /* steps have micro_batches at most, each a number of its own */
    bool leaves_out; /* steps leave layers out, each others */
    const char *schedule, *strategy;
    sluice_recompute recompute;
    bool random;             /* strategies and order are drawn from the seed */
    uint32_t changing_steps; /* > 0: the number of steps; plans of all schedules follow each other */
    uint32_t *regroups;      /* not NULL: these plans are of other units, too; in memory that ranks share: how often */
    bool each, direct, delays;
    bool bf16_wire, mixed_update; /* mixed_update: the model's own optimizer reads bf16 and rounds by itself */
    bool lamb;                    /* LAMB in place of the model's own optimizer */
    bool look_ups, split;         /* some tied parameters are looked up by rows; split: and split by their uses */
    uint64_t bf16_layers;         /* bit l: layer l computes in bf16 */
    double clip;
    uint64_t block;
    const char *updates;      /* SLUICE_PLAN_UPDATES; NULL: the model's own optimizer takes one thread at a time */
    const char *saves;        /* a checkpoint of a step in the middle is saved into this folder behind further steps */
    uint32_t threads, larger; /* parameters are `larger` + 1 times as large as usual */
} trial;
