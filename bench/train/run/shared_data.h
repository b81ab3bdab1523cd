/* The data of a run, which every rank opens by itself: they must be the same on all. */
#pragma once

#include "bench/train/checkpoint/checkpoint.h"
#include "bench/train/data/data.h"
#include "bench/train/run/place.h"
#include "bench/train/watch.h"

/* Collective. Opens the data as slc_training_data_open does; rank 0 shows how far it is and what is to be said of the
 * data. The caller closes *out. Errors: its own; INTERRUPTED (the user asked to stop), MEMORY. */
sluice_status slc_run_data_open(sluice_world *world, const slc_training_options *options, const slc_run_place *place,
                                const slc_training_watch *watch, sluice_model_config *model, slc_training_data **out);

/* Collective. Fills the identity of a run but for its model, whose `beside` the caller decrefs, and checks that all
 * ranks have the same data. Errors: MISMATCH (names what differs), those of hashing the data, which only a run that
 * saves or resumes does. */
sluice_status slc_run_data_identify(sluice_world *world, const slc_training_options *options,
                                    const slc_training_data *data, slc_training_identity *out);
