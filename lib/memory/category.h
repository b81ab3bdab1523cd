/* The category under which the arena counts a buffer of a plan. */
#pragma once

#include "lib/memory/arena.h"
#include "lib/plan/plan.h"

slc_memory_category slc_memory_category_of(slc_buffer_kind kind);
