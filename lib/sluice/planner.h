/* The planner of the library, made of the functions of sched, as an engine gets it. */
#pragma once

#include "lib/plan/request.h"

slc_planner slc_library_planner(void);
