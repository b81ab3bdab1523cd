/* The folder of --save-weights: checks that it may be written and has room, writes what goes into it besides the
 * weights, and waits if the disk is full when all is trained. */
#pragma once

#include "bench/train/data/data.h"
#include "bench/train/options/options.h"

#include <signal.h>

typedef struct {
    sluice_world *world;
    const slc_training_options *options;
    sluice_model *model;
    const slc_training_data *data;
    const volatile sig_atomic_t *stops; /* NULL: nobody can stop the waiting */
    const json_t *beside; /* said by the data of inputs and answers, where they are not at hand; NULL: nothing */
} slc_saved_weights;

/* Local. Makes the folder, with those that it lies in. Errors: ARGUMENT (it has weights that no run of ours has
 * written, and there is no --overwrite), PATH, IO. */
sluice_status slc_saved_weights_check(const slc_training_options *options);

/* Local: checks that the folder's disk has room for so many parameters. Errors: ARGUMENT (it has not), PATH, IO. */
sluice_status slc_saved_weights_check_room(const slc_training_options *options, uint64_t parameters);

/* Collective, between steps. Writes weights, configuration, tokenizer, names of classes, the folder's mark, and what
 * the folder of --weights has and ours must keep: the dropout and the stochastic depth that it asks for if the run had
 * no option for it, and generation_config.json. While the disk is full rank 0 says so and all wait until there is room,
 * or until one more signal to stop gives the weights up. Errors: those of sluice_model_save; PATH, IO, MEMORY. */
sluice_status slc_saved_weights_write(const slc_saved_weights *saved);

/* Local. Returns the value that config.json of --weights gives in the place of this option, "dropout" or "drop-path";
 * 0: it gives none, or the weights are no folder. */
double slc_saved_weights_drops(const slc_training_options *options, const char *option);
