/* Medians over the steps of one plan, of the whole run and of each phase. */
#include "bench/train/summary.h"

#include "lib/base/numbers/median.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>

/* A re-plan comes after PROVISIONAL_STEPS of its phase, where the schedule wants times (lib/engine/replan/replan.c). */
enum { WARM_UP_STEPS = 2, LEAST_STEPS = 3, PROVISIONAL_STEPS = 3 };

/* Returns the first of the steps first..end-1 that ran under their last plan; `end`: all of them served to measure, and
 * the plan that was to follow ran no step. */
static uint64_t first_of_plan(const slc_training_result *result, uint64_t first, uint64_t end)
{
    const slc_training_step *steps = result->steps;
    if (end > first && steps[end - 1].provisional) return end;
    for (uint64_t i = first + 1; i < end; i++)
        if (steps[i].plan != steps[i - 1].plan || steps[i].provisional != steps[i - 1].provisional) first = i;
    return first;
}

/* Returns the first of them that counts: the third one under their last plan; `end`: fewer than LEAST_STEPS would. */
static uint64_t first_steady(const slc_training_result *result, uint64_t first, uint64_t end)
{
    first = first_of_plan(result, first, end) + WARM_UP_STEPS;
    return end >= first + LEAST_STEPS ? first : end;
}

/* How many steps it takes until LEAST_STEPS count. */
static uint64_t count_wanted(const slc_training_result *result)
{
    const uint64_t steps = result->step_count;
    uint64_t first = first_of_plan(result, 0, steps);
    if (first == steps && first < PROVISIONAL_STEPS) first = PROVISIONAL_STEPS;
    return result->steps_before + first + WARM_UP_STEPS + LEAST_STEPS;
}

/* `values` has room for all steps. */
static void summarise_phase(const slc_training_result *result, uint64_t first, uint64_t end, double *values,
                            slc_training_phase *out)
{
    *out = (slc_training_phase){.step_s = NAN, .exposed_s = NAN, .bytes_sent = NAN};
    if (first == end) return;
    uint64_t steady = first_steady(result, first, end);
    out->first = result->steps[first].step;
    out->steps = end - first;
    for (uint64_t i = steady; i < end; i++) values[i - steady] = result->steps[i].step_s;
    out->step_s = slc_median(values, end - steady);
    for (uint64_t i = steady; i < end; i++) values[i - steady] = result->steps[i].exposed_s;
    out->exposed_s = slc_median(values, end - steady);
    out->bytes_sent = 0; /* where no step is steady, those of all */
    if (steady == end) steady = first;
    for (uint64_t i = steady; i < end; i++)
        out->bytes_sent += (double)result->steps[i].bytes_sent / (double)(end - steady);
}

static uint64_t first_compressed(const slc_training_result *result)
{
    uint64_t first = 0;
    while (first < result->step_count && !result->steps[first].compressed) first++;
    return first;
}

/* Takes the mean of the last tenth, because one step's loss says more about its batch than about the run. Skipped steps
 * do not count: their losses need not be finite. NaN: all of them were skipped. */
static double final_loss(const slc_training_result *result)
{
    uint64_t count = 0, most = (result->step_count + 9) / 10;
    double sum = 0;
    for (uint64_t i = result->step_count; i-- > 0 && count < most;) {
        if (result->steps[i].skipped) continue;
        sum += result->steps[i].loss;
        count++;
    }
    return sum / (double)count;
}

sluice_status slc_training_summarise(slc_training_result *result)
{
    uint64_t steps = result->step_count, freeze = first_compressed(result), first = first_steady(result, 0, steps);
    double *values = malloc((steps + 1) * sizeof *values);
    if (!values) return slc_error(SLUICE_ERR_MEMORY, "step times");
    summarise_phase(result, 0, freeze, values, &result->warm_up);
    summarise_phase(result, freeze, steps, values, &result->compressed);
    for (uint64_t i = first; i < steps; i++) values[i - first] = result->steps[i].exposed_s;
    result->exposed_s = slc_median(values, steps - first);
    for (uint64_t i = first; i < steps; i++) values[i - first] = result->steps[i].step_s;
    result->step_s = slc_median(values, steps - first);
    result->step_min_s = steps > first ? values[0] : NAN; /* slc_median has sorted them */
    result->steps_wanted = count_wanted(result);
    result->predicted_step_s = steps ? result->steps[steps - 1].predicted_step_s : NAN;
    result->train_s = 0;
    for (uint64_t i = 0; i < steps; i++) result->train_s += result->steps[i].step_s;
    result->final_loss = final_loss(result);
    result->tokens_per_s = (double)result->tokens_per_step / result->step_s;
    result->images_per_s = result->images_per_step ? (double)result->images_per_step / result->step_s : NAN;
    free(values);
    return SLUICE_OK;
}
