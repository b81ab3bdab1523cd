/* The prices of work were fitted by non-negative least squares to the processor time of 65 plannings on one core of a
 * Xeon of 2.6 GHz: drawn profiles of 6 to 20 layers, and GPT-2 and BERT of up to 50 layers. A tenth of the plannings
 * took more than 1.23 times their nominal time there, a tenth less than 0.88 of it. */
#include "lib/plan/effort/work.h"

#include "lib/base/clock.h"

#include <math.h>

static const double price_ns[SLC_WORK_KINDS] = {
    [SLC_WORK_PIVOT] = 1000, [SLC_WORK_PIVOT_ROW] = 105, [SLC_WORK_MODEL_CELL] = 100, [SLC_WORK_NODE_ROW] = 60,
    [SLC_WORK_ITEM] = 50,    [SLC_WORK_LIFE] = 100,      [SLC_WORK_PLACED] = 15,      [SLC_WORK_PACKED] = 1.6,
    [SLC_WORK_WAIT] = 120,   [SLC_WORK_SIMULATED] = 120, [SLC_WORK_CHECKED] = 100,    [SLC_WORK_ORDERED] = 5,
};

double slc_work_price(slc_work_kind kind)
{
    return 1e-9 * price_ns[kind];
}

void slc_work_add(slc_work *work, slc_work_kind kind, double amount)
{
    if (work) work->spent_s += slc_work_price(kind) * amount;
}

bool slc_work_is_over(slc_work *work, double until_s)
{
    if (!work) return false;
    if (work->spent_s >= until_s) return true;
    bool late = work->ceiling_ns && slc_clock_ns() >= work->ceiling_ns;
    work->cut |= late;
    return late;
}

double slc_work_ceiling_left_s(const slc_work *work)
{
    if (!work || !work->ceiling_ns) return INFINITY;
    uint64_t now = slc_clock_ns();
    return now < work->ceiling_ns ? slc_seconds(work->ceiling_ns - now) : 0;
}
