/* A unit at run time: where the plan in force has its arrays, which elements a rank owns, and which of them are a
 * parameter's. Private to lib/engine. */
#pragma once

#include "lib/base/element.h"
#include "lib/base/ownership.h"
#include "lib/engine/model/state.h"
#include "lib/engine/step_state.h"

#include <sluice/runtime.h>

/* ---- Parts ---- */

/* Returns the part of block `block` that `rank` of `world` owns: all of it if `world` is 1 and `rank` 0. */
slc_part slc_unit_part(const slc_unit *unit, uint32_t world, uint64_t block, uint32_t rank);
/* The elements of `part` that belong to a parameter; count 0: none. */
slc_part slc_part_of_param(const slc_part *part, const sluice_param *param);
/* The first run of elements [first, first + count) of a parameter that this rank owns; count 0: none. */
slc_part slc_part_first_owned(const sluice_param *param, uint64_t first, uint64_t count);

/* Returns the address of the reduced gradient of an owned part; its type is the unit's reduced_dtype. */
const void *slc_reduced_at(const sluice_runtime *rt, uint32_t unit, const slc_part *part);
/* The update of a run of elements of one parameter, whole or owned as its unit's strategy says. The caller sets the
 * gradient. */
sluice_update slc_update_of(const sluice_runtime *rt, uint32_t unit, const sluice_param *param, const slc_part *range,
                            const slc_step_state *step);
