/* The model as the program registers it before commit: layers, parameters, activations and workspaces. Private to
 * lib/engine. */
#pragma once

#include "lib/engine/model/state.h"

sluice_layer *slc_find_layer(const sluice_runtime *rt, const char *name); /* NULL: there is none */
/* Frees everything. */
void slc_registration_fini(slc_registration *model);

/* Lists the times that the program gave to layers: [2L], as slc_times.slot_s. *out, which the caller frees, is NULL
 * where some layer has none. Errors: MEMORY. */
sluice_status slc_registration_times(const slc_registration *model, double **out);

/* ARGUMENT unless the optimizer is a compressed one. `what` names what is asked to be onebit. */
sluice_status slc_engine_allow_onebit(const sluice_runtime *rt, const char *what);

/* Compares registration and settings of all ranks (compare.c). Collective. Errors: MISMATCH names the difference;
 * MEMORY; ARGUMENT (a setting). */
sluice_status slc_engine_compare_registration(sluice_runtime *rt);
