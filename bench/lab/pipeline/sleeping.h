/* The model that `sluice-lab pipeline` trains: layers that sleep for a given time in each slot, and hand one activation
 * and one gradient on. Private to bench/lab/pipeline. */
#pragma once

#include <sluice/world.h>

typedef struct {
    const char *schedule;
    uint32_t chunks, layers; /* of a stage; of a chunk */
    double forward_s, backward_s;
    double factor; /* the first layer takes so much longer */
    uint64_t message_bytes;
    uint32_t steps;
} slc_sleeping;

/* A rank's figures of a step, means over the steps. */
typedef struct {
    double idle_share;      /* of the step: compute waits for other stages */
    double simulated_share; /* the same as the simulator has predicted it */
    double step_s;
    double cpu_s;    /* of the process, without what sleeping takes */
    double messages; /* that it sends or receives */
} slc_sleeping_row;

/* Trains with so many micro-batches: a stage on each rank. Collective. Errors: those of the runtime. */
sluice_status slc_sleeping_train(sluice_world *world, const slc_sleeping *model, uint32_t micro_batches,
                                 slc_sleeping_row *out);
