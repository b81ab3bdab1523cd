/* The planner of the library, made of the functions of sched, as an engine gets it. */
#ifndef SLC_SLUICE_PLANNER_H
#define SLC_SLUICE_PLANNER_H

#include "lib/plan/request.h"

slc_planner slc_library_planner(void);

#endif
