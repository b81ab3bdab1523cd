/* The shape of a model as a checkpoint keeps it, so that a run is known by what it trains and not by the name of a
 * folder. Private to bench/train/checkpoint. Any thread. */
#pragma once

#include <jansson.h>
#include <sluice/model.h>

/* All fields but dropout, which is an option; NULL: no memory. The caller decreases the reference. */
json_t *slc_training_shape_json(const sluice_model_config *model);

/* Makes a configuration of that JSON; *out is begun with SLUICE_INIT. False: a field is missing or no number, or there
 * can be no such model. */
bool slc_training_shape_read(const json_t *shape, sluice_model_config *out);

/* True if weights of `a` are weights of `b`. Where not, `what` gets the first difference, as "4 layers, and this run's
 * has 6". */
bool slc_training_shape_equal(const sluice_model_config *a, const sluice_model_config *b, char what[128]);
