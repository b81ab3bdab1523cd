/* The slots of a layer. Each runs the list of operations of the layer's kind between the runtime's begin and end. */
#pragma once

#include "lib/model/state.h"

/* Registers the tensors of layer `number` with the runtime, before commit. Errors: as sluice_activation_add and
 * sluice_workspace_add. */
sluice_status slc_layer_slots_register(sluice_model *m, uint32_t number);

/* Run a slot. Both first ask the program's check (sluice_model_check). A backward recomputes where the plan says so.
 * Errors: those of the check, of the runtime and of kernels. */
sluice_status slc_layer_forward(sluice_model *m, uint32_t number, bool training);
sluice_status slc_layer_backward(sluice_model *m, uint32_t number);
