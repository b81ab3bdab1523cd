/* Deep models on a coarse scale. Neighbouring layers are joined into one, and their units of one kind into one unit, so
 * that the program stays small however many layers there are. An answer for the joined job is an answer for the real
 * one: what moves in a joined slot moves one member after another in the slots that it stands for. It costs a little
 * memory, since a joined unit waits for all of its members. Prices of the joined program give a bound of the real job,
 * as any prices do (priced_bound.h). Private to ilp. */
#pragma once

#include "ilp/solver/priced_bound.h"

typedef struct {
    const slc_slot_request *fine;
    slc_slot_request request; /* of the joined job */
    slc_job job;
    slc_times times;
    uint32_t *joined_layer; /* [L] the joined layer of each layer */
    uint32_t *first_layer;  /* [joined layers + 1] the first layer of each joined one */
    uint32_t *joined_unit;  /* [units] the joined unit of each unit */
    uint64_t *fit_elements; /* [joined units] elements of a unit's largest member */
    slc_use *uses;
    uint8_t *allowed, *recompute;
} slc_coarse;

/* Returns true if the job has more layers than the program should be made of, and the request asks neither for whole
 * blocks nor for the relaxation alone. */
bool slc_coarse_is_wanted(const slc_slot_request *request);

/* Joins the request's layers; `request` must outlive `coarse`. Errors: MEMORY. */
sluice_status slc_coarse_init(slc_coarse *coarse, const slc_slot_request *request);
void slc_coarse_fini(slc_coarse *coarse);

/* Makes the choices and flows of an answer for the joined job into those of the real one. Errors: MEMORY. */
sluice_status slc_coarse_refine(const slc_coarse *coarse, slc_slot_solution *solution);

/* Spreads the prices of a program of `micro_batches` over the real job's slots; `fine` has been initialized for them.
 */
void slc_coarse_refine_prices(const slc_coarse *coarse, const slc_prices *prices, uint32_t micro_batches,
                              slc_prices *fine);
