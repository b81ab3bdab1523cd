/* Finds the moment at which a program holds most memory. */
#pragma once

#include "lib/plan/plan.h"

/* The first item at which most bytes are claimed, and how many (without resident memory); 0 and 0 if there are no
 * claims. Errors: MEMORY. */
sluice_status slc_fullest_item(const slc_program *program, uint32_t *item, uint64_t *bytes);
