/* A profile of the job that a runtime has made of its registration. Private to lib/engine. */
#pragma once

#include "lib/plan/profile.h"

#include <sluice/runtime.h>

/* Copies the job and its times into a profile, with the unpadded lengths and the tensors that other worlds need. The
 * caller destroys it. Errors: MEMORY; those of slc_profile_create. */
sluice_status slc_job_profile(const sluice_runtime *rt, const slc_times *times, const char *model, const char *source,
                              slc_profile **out);
