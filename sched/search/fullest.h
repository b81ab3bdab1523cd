/* When a program holds most memory. */
#ifndef SLC_FULLEST_H
#define SLC_FULLEST_H

#include "lib/plan/plan.h"

/* The first item at which most bytes are claimed, and how many (resident memory apart); 0 and 0 without claims. */
sluice_status slc_fullest_item(const slc_program *program, uint32_t *item, uint64_t *bytes);

#endif
