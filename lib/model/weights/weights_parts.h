/* Matches files of weights with models: the configurations, and the tensor that holds each parameter. Private to
 * lib/model. */
#pragma once

#include "lib/weights/config.h"
#include "lib/weights/tensors.h"

#include <sluice/model.h>

void slc_model_config_from_file(const slc_config *config, sluice_model_config *out);
void slc_model_config_to_file(const sluice_model_config *model, slc_config *out);

typedef struct {
    const slc_tensors *tensors;
    const slc_tensor **of_param; /* by number; NULL: the parameter is new, so it keeps the values that it has */
    uint32_t params, fresh;      /* how many there are; how many of them are new */
    bool *used;                  /* by index in the set of tensors: it holds a parameter */
    const slc_tensor **copy_of;  /* the same: the tensor whose values it must have; NULL: it is no copy */
    uint64_t *fingerprint;       /* the same: of the values of those that are used; 0 if nobody asked for it */
} slc_weight_matches;

/* Finds the tensor of every parameter by its name, and says what the other tensors are; reads no values. new_head: if
 * the file's configuration has another head than the model, or need not have one (headless), then parameters of the
 * model's head may be new: those that the file lacks, and a classifier for another number of classes. `path` is for
 * messages. The caller frees *out, also after an error. Errors: FORMAT (a parameter is missing, or has another shape or
 * no real numbers; a tensor that belongs to no part of the model), UNSUPPORTED (a head that does not share the token
 * table), MEMORY. */
sluice_status slc_weights_match(const sluice_model_config *model, const slc_config *file, const slc_tensors *tensors,
                                const char *path, bool new_head, slc_weight_matches *out);
void slc_weight_matches_free(slc_weight_matches *matches);

/* Reads all values: those of parameters must be finite, those of copies must equal what they copy. fingerprints:
 * takes those of the values too. Errors: NON_FINITE, UNSUPPORTED (a copy that is none, by both names), IO, MEMORY. */
sluice_status slc_weights_check_values(slc_weight_matches *matches, bool fingerprints);

/* Checks that the embedding and all blocks are there, by name. A configuration with more layers than the file is
 * refused before anything is made from it. Errors: FORMAT names the first that is missing. */
sluice_status slc_weights_have_layers(const sluice_model_config *model, const slc_config *file,
                                      const slc_tensors *tensors, const char *path);
