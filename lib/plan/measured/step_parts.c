#include "lib/plan/measured/step_parts.h"

#include "lib/base/integer.h"
#include "lib/base/numbers/median.h"

#include <math.h>
#include <stdlib.h>

void slc_kept_steps_add(slc_kept_steps *kept, const sluice_step_parts *step)
{
    kept->steps[kept->count++ % SLC_STEPS_KEPT] = *step;
}

static int by_length(const void *a, const void *b)
{
    const sluice_step_parts *x = a, *y = b;
    return (x->step_s > y->step_s) - (x->step_s < y->step_s);
}

/* The mean of the kept steps without the `left_out` shortest and the `left_out` longest ones. */
static sluice_step_parts mean_without(const slc_kept_steps *kept, size_t left_out)
{
    const size_t count = slc_least(kept->count, SLC_STEPS_KEPT);
    const double n = (double)(count - 2 * left_out);
    sluice_step_parts steps[SLC_STEPS_KEPT], usual = {0};
    for (size_t i = 0; i < count; i++) steps[i] = kept->steps[i];
    qsort(steps, count, sizeof *steps, by_length);
    for (size_t i = left_out; i < count - left_out; i++) {
        usual.step_s += steps[i].step_s / n;
        usual.compute_s += steps[i].compute_s / n;
        usual.waiting_s += steps[i].waiting_s / n;
        usual.outside_s += steps[i].outside_s / n;
        usual.transfer_s += steps[i].transfer_s / n;
    }
    return usual;
}

sluice_step_parts slc_kept_steps_usual(const slc_kept_steps *kept)
{
    return mean_without(kept, slc_least(kept->count, SLC_STEPS_KEPT) / 3);
}

sluice_step_parts slc_kept_steps_mean(const slc_kept_steps *kept)
{
    return mean_without(kept, 0);
}

double slc_kept_steps_median_s(const slc_kept_steps *kept, uint64_t count)
{
    double values[SLC_STEPS_KEPT];
    if (!count || count > slc_least(kept->count, SLC_STEPS_KEPT)) return 0;
    for (uint64_t i = 0; i < count; i++) values[i] = kept->steps[(kept->count - 1 - i) % SLC_STEPS_KEPT].step_s;
    return slc_median(values, count);
}

sluice_step_miss slc_step_miss_of(const sluice_step_parts *predicted, const sluice_step_parts *measured)
{
    const double waiting_s = measured->waiting_s - predicted->waiting_s;
    const double transfer_s = measured->transfer_s - predicted->transfer_s;
    const double moved_s = fmin(fmax(transfer_s, fmin(waiting_s, 0)), fmax(waiting_s, 0));
    return (sluice_step_miss){.compute_s = measured->compute_s - predicted->compute_s,
                              .transfer_s = moved_s,
                              .waiting_s = waiting_s - moved_s,
                              .outside_s = measured->outside_s - predicted->outside_s};
}
