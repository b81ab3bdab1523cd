/* The stages of a pipeline together: each has a job and a plan of its own, and messages between them. */
#pragma once

#include "lib/plan/plan.h"

/* Checks plans of all stages against each other; slc_plan_validate has taken each of them. Both ends of each channel
 * must be there, with messages of one length, between the stages that they name. And no timing may make stages wait for
 * each other, even if a send is over only once its receive has begun: two steps are run through by the items' waits
 * alone. Errors: FORMAT (which channel; or which stages stand still, and at which items), MEMORY. */
sluice_status slc_stages_validate(const slc_job *const *jobs, const slc_plan *const *plans, uint32_t stages);
