/* The units of a runtime: making them from what was registered, and setting them aside for others. Private to
 * lib/engine. */
#pragma once

#include "lib/engine/model/state.h"

#include <sluice/runtime.h>

/* Makes the units, after destroying those that there are, and what follows from them: the job's wire and scratch.
 * last[l] is the last layer whose own trainable parameters lie in layer l's unit, l itself if it begins no group. */
sluice_status slc_units_make(sluice_runtime *rt, const uint32_t *last);
void slc_units_destroy(sluice_runtime *rt);
/* Lists for each layer, which has no list yet, the units that it uses. Errors: MEMORY. */
sluice_status slc_units_list_by_layer(sluice_runtime *rt);

/* ---- Units that are set aside ---- */

typedef struct {
    uint32_t unit, rows_unit;
    uint64_t first; /* as in sluice_param */
} slc_place_in_unit;

typedef struct {
    uint32_t *units;
    uint32_t count;
} slc_layer_units;

typedef struct {
    slc_unit *units;
    slc_unit_state *states;
    uint32_t count;
    uint64_t scratch_bytes;    /* of the job that they make */
    slc_place_in_unit *places; /* of each parameter */
    slc_layer_units *of_layer; /* [L] */
} slc_unit_set;

/* Takes the units from the runtime, which has none then, so that others can be made. Errors: MEMORY; they stay. */
sluice_status slc_units_set_aside(sluice_runtime *rt, slc_unit_set *out);
/* Gives them back to the runtime, whose own are destroyed. `set` is empty then. */
void slc_units_put_back(sluice_runtime *rt, slc_unit_set *set);
/* Destroys the units of `set`, which is empty then. */
void slc_unit_set_fini(const sluice_runtime *rt, slc_unit_set *set);
