/* --save and --resume of a training run: a checkpoint keeps, next to the weights, where the run is in its data and the
 * settings that decide its numbers; a run goes on only from a checkpoint that fits. A function is collective unless its
 * comment says that it is local. */
#pragma once

#include "bench/train/options/options.h"

#include <jansson.h>

/* The place of a run. */
typedef struct {
    uint64_t steps;     /* done, skipped ones too */
    uint64_t sequences; /* of the training data, that all ranks have taken */
    uint64_t tokens;    /* the same in tokens; 0: not known, a checkpoint of an earlier version does not say */
} slc_training_position;

typedef struct {
    sluice_world *world;
    const slc_training_options *options;
    uint64_t data, content; /* fingerprint of the data, and the hash of all of it */
    uint64_t tokenizer;     /* its hash; 0: none */
    uint64_t reading;       /* a hash of how images become pixels and classes; 0: text */
    const sluice_model_config *model;
    json_t *beside; /* goes beside the weights that `sluice weights` makes (data/beside.h); NULL: nothing */
} slc_training_identity;

/* Loads --resume DIR into the runtime. A model of another shape, another tokenizer, images that become other pixels or
 * classes, and a setting that differs from the saved run and must not (SLC_EQUAL) are refused; rank 0 warns about other
 * settings by name. If the latest checkpoint is damaged, the error names the latest one that is whole. Errors: as
 * sluice_checkpoint_load; MISMATCH. */
sluice_status slc_training_resume(const slc_training_identity *run, sluice_runtime *rt, slc_training_position *out);

/* Local, before the options are checked: without --model, --size and --weights a run that goes on has the model, head
 * and shape of the checkpoint. Errors: those of reading the checkpoint; ARGUMENT (says which option the saved run had
 * that this one needs too: --data, --tokenizer, --weights). */
sluice_status slc_training_resume_model(slc_training_options *options);

/* Local. Makes options of what a checkpoint says of the run that saved it, for one rank that reads it: the model, its
 * precision and its optimizer, in `options` that slc_training_options_init has begun. *beside is what belongs beside
 * its weights (data/beside.h), which the caller decrefs; NULL: nothing is known. Errors: those of reading the
 * checkpoint; FORMAT (it was not saved by `sluice train`). */
sluice_status slc_training_saved_run(const char *folder, slc_training_options *options, json_t **beside);

/* Local, before slc_training_resume: if the options leave the freeze of a compressed optimizer open, they get that of
 * the saved run. Errors: those of reading the checkpoint. */
sluice_status slc_training_resume_freeze(slc_training_options *options);

/* Checks, before the first step, that all ranks can write to --save DIR, and that no other run keeps its checkpoints
 * there. Errors: PATH, IO, ARGUMENT. */
sluice_status slc_training_save_check(const slc_training_identity *run, sluice_runtime *rt);

/* Begins to save, as sluice_checkpoint_begin does; sluice_checkpoint_end ends it. */
sluice_status slc_training_save_begin(const slc_training_identity *run, sluice_runtime *rt,
                                      const slc_training_position *position);
