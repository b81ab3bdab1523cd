/* --save and --resume of a training run: what goes into a checkpoint beside the weights (where the run is in its data,
 * and the settings that decide its numbers), and whether a checkpoint may be gone on from. Collective. */
#ifndef SLC_BENCH_TRAINING_CHECKPOINT_H
#define SLC_BENCH_TRAINING_CHECKPOINT_H

#include "bench/train/options.h"

/* Where a run is. */
typedef struct {
    uint64_t steps;     /* done, skipped ones too */
    uint64_t sequences; /* of the training data, taken by all ranks */
} slc_training_position;

typedef struct {
    sluice_world *world;
    const slc_training_options *options;
    uint64_t data, content; /* fingerprint, and hash of all of it */
} slc_training_identity;

/* Loads --resume DIR into the runtime. What is set otherwise than in the run that was saved is refused (another model,
 * size or optimizer) or warned about by name on rank 0. Errors: as sluice_checkpoint_load; MISMATCH. */
sluice_status slc_training_resume(const slc_training_identity *run, sluice_runtime *rt, slc_training_position *out);

/* Local, before that: a compressed optimizer whose freeze the options leave open goes on with the saved run's.
 * Errors: those of reading the checkpoint. */
sluice_status slc_training_resume_freeze(slc_training_options *options);

/* Before the first step: can --save DIR be written to, and has no other run its checkpoints there? Errors: IO,
 * ARGUMENT. */
sluice_status slc_training_save_check(const slc_training_identity *run, sluice_runtime *rt);

sluice_status slc_training_save(const slc_training_identity *run, sluice_runtime *rt,
                                const slc_training_position *position);

#endif
