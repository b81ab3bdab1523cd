/* Everything that a model tells its runtime before commit. */
#pragma once

#include "lib/model/state.h"

/* Registers the model's layers, parameters, tensors and reserved memory. `precision` lists layers whose type is not the
 * model's, as "head=fp32,h.0=bf16"; NULL: none. Errors: ARGUMENT: the list names no layer or no type, or a layer would
 * share a parameter of another type; else as the runtime's calls. */
sluice_status slc_model_register(sluice_model *m, const char *precision);
