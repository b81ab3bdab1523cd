/* What a search has learned of packing from the orders that it has tried. Private to sched. */
#pragma once

#include <stdint.h>

/* Begins empty. */
typedef struct {
    uint32_t tolerance; /* the tolerance of slc_plan_pack_in_time that did last */
    uint32_t countdown; /* after how many more orders the tolerance before it is tried again */
} slc_packing_memory;
