/* Each run costs the same, and the runs of a unit are compared with each other.
 * effort_test.c covers this file. */
#include "sched/joint/affordable_run.h"

#include "lib/plan/strategy_table.h"
#include "lib/plan/effort/work.h"

#include <math.h>

/* Returns roughly the nominal seconds of a plan of fsdp whose units are cut into runs of `bytes`: each run has
 * reductions, an update and gathers, and the runs of a unit are compared with each other. */
static double plan_s(const slc_job *job, double bytes)
{
    enum { COMPARED = 8 };
    const double item_s = slc_work_price(SLC_WORK_ITEM) + 3 * slc_work_price(SLC_WORK_LIFE) +
                          2 * slc_work_price(SLC_WORK_WAIT) + 4 * slc_work_price(SLC_WORK_SIMULATED) +
                          2 * slc_work_price(SLC_WORK_CHECKED);
    const double run_s = item_s * (2 + (job->each ? 3.0 : 2.0) * job->micro_batches);
    double seconds = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        const double runs =
            ceil((double)slc_operation_bytes(job, unit, SLC_ITEM_GATHER_WINDOW, unit->elements) / bytes);
        if (runs > 1) seconds += runs * run_s + runs * runs * COMPARED * slc_work_price(SLC_WORK_PACKED);
    }
    return seconds;
}

uint64_t slc_affordable_run(const slc_job *job, uint64_t wanted, double seconds)
{
    static const double LONGER = 1.1;
    double bytes = (double)wanted;
    while (plan_s(job, bytes) > seconds) bytes *= LONGER;
    return bytes > (double)wanted ? (uint64_t)bytes : wanted;
}
