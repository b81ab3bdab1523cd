/* Choices that grow from those of little memory: one change after the other, while the plan of a simple scheduler fits
 * and gets faster. */
#pragma once

#include "sched/joint/joint_request.h"

/* Changes `strategies` and `recompute` into choices whose plan under `scheduler` fits the request's limit and is
 * faster. Free units become `to` or go back; layers that may recompute stop it or begin it again. *fits is false, and
 * the choices stay, if their own plan does not fit. Ends at `until_s` nominal seconds of the request's work. Errors:
 * MEMORY, INTERRUPTED. */
sluice_status slc_growth_find(const slc_joint_request *request, const slc_scheduler *scheduler, slc_strategy to,
                              double until_s, slc_strategy *strategies, bool *recompute, bool *fits);
