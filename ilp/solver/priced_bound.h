/* A lower bound of every valid plan from prices alone, without a program (Lagrangian relaxation of the model's rows). A
 * second of room in a slot and a byte at a moment each have a price. Each unit takes what is cheapest for itself at
 * these prices, and the price of all the room and memory that exist is subtracted. Any prices of at least 0 give a
 * bound; those of the best answer's own program give a good one, and subgradients improve them. Private to ilp. */
#pragma once

#include "ilp/parts/slot_parts.h"

/* Prices in seconds of the step. */
typedef struct {
    double *room;   /* [slots] of a second that communication takes from a slot */
    double *memory; /* [half_rows] of a byte in a half row */
} slc_prices;

sluice_status slc_prices_init(slc_prices *prices, uint32_t slots); /* all are 0. Errors: MEMORY */
void slc_prices_fini(slc_prices *prices);

/* Finds a bound in seconds: prices begin as `prices`, those of a program of `folded_micro_batches`, and change until
 * request->work has spent `until_s` nominal seconds, or some rounds have passed. `step_s` is a step that the bound can
 * be expected to be near, that of an answer; INFINITY: none is known. Without work the bound is the compute alone.
 * Errors: MEMORY; FORMAT as slc_slot_parts_init. */
sluice_status slc_priced_bound(const slc_slot_request *request, const slc_prices *prices, uint32_t folded_micro_batches,
                               double step_s, double until_s, double *bound_s);
