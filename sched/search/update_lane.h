/* Which lane updates run on: the communication thread, where orders have them, or the compute threads between slots. */
#ifndef SLC_UPDATE_LANE_H
#define SLC_UPDATE_LANE_H

#include "lib/plan/request.h"
#include "sched/scheduler.h"
#include "sched/simulate/simulate.h"

/* Does what `updates` says with a plan of `scheduler` whose forecast is known: AUTO, where the compute lane's time of
 * an update is known: moves updates there while the step becomes shorter in the simulator; COMPUTE: puts all there, and
 * to where that is shortest; BOTH: half of the elements, where they stand. Never onebit units' updates. An update that
 * moves goes in front of the first slot that starts when its gradient is there, behind the step's last slot, or shortly
 * before its unit's first use in the next step; gathers follow it.
 *
 * *plan (owned) and *forecast are replaced by what is valid and within in->limit. The choice ends at `deadline_ns`
 * (slc_clock_ns; 0: none); but for that it is deterministic. Errors: MEMORY; FORMAT (a defect of ours). */
sluice_status slc_updates_place(const slc_scheduling *in, const slc_scheduler *scheduler, slc_updates updates,
                                uint64_t deadline_ns, slc_plan **plan, slc_forecast *forecast);

#endif
