/* Which category of the arena's account a buffer of a plan belongs to. */
#ifndef SLC_MEMORY_CATEGORY_H
#define SLC_MEMORY_CATEGORY_H

#include "lib/memory/arena.h"
#include "lib/plan/plan.h"

slc_memory_category slc_memory_category_of(slc_buffer_kind kind);

#endif
