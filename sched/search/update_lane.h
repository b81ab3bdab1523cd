/* Chooses the lane of updates: the communication thread, where orders put them, or the compute threads between
 * slots. */
#pragma once

#include "lib/plan/request.h"
#include "sched/scheduler.h"
#include "sched/simulate/simulate.h"

/* Puts updates of a plan of `scheduler`, whose forecast is known, where `updates` says. AUTO: moves updates to the
 * compute lane, if an update's time there is known, as long as the step becomes shorter in the simulator. COMPUTE: puts
 * all of them on the compute lane, at the places that give the shortest step. BOTH: half of the elements, without
 * changing their places. Updates of onebit units never move. An update that moves goes before the first slot that
 * starts when its gradient is ready, after the step's last slot, or shortly before its unit's first use in the next
 * step; gathers follow it.
 *
 * *plan (owned) and *forecast are replaced by a plan that is valid and within in->limit. The choice ends at
 * `until_s` nominal seconds of in->work (0: none). Deterministic, as long as that has no ceiling. Errors: MEMORY;
 * FORMAT (a defect of ours). */
sluice_status slc_updates_place(const slc_scheduling *in, const slc_scheduler *scheduler, slc_updates updates,
                                double until_s, slc_plan **plan, slc_forecast *forecast);
