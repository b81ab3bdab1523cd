/* The one file that knows whether the build has GLPK when it names the default schedule.
 * sched/joint/effort_test.c covers this file. */
#include "lib/plan/request.h"

#if SLUICE_GLPK
const char slc_schedule_default[] = "ilp";
#else
const char slc_schedule_default[] = "portfolio";
#endif
