/* The place of a rank in a training: which of the sequences are its own. Sequences are numbered so that the global
 * batch does not depend on how it is split. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t rank, ranks;
    uint64_t replica, replicas; /* of the model: in a pipeline all stages together are one */
    bool has_head;              /* this rank holds the last layer, or there is no pipeline */
    uint32_t batch, length;     /* of a micro-batch: sequences or images; tokens of each, 0: images */
} slc_run_place;

static inline bool slc_run_place_pipelined(const slc_run_place *p)
{
    return p->replicas < p->ranks;
}

/* Returns the sequences of a micro-batch of every replica. */
static inline uint64_t slc_run_place_round(const slc_run_place *p)
{
    return p->replicas * p->batch;
}

/* Returns the first sequence of this rank's micro-batch of that number, which counts from 0. */
static inline uint64_t slc_run_place_first(const slc_run_place *p, uint64_t micro_batch)
{
    return (micro_batch * p->replicas + p->replica) * p->batch;
}
