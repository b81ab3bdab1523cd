/* Packing by time. In the order a claim is over when its last user is, but in time an item after that one, on the other
 * lane, may start while the last user still runs; if it gets the same place, it waits. So a plan is simulated as if any
 * free memory would do, and what lives at the same time in that simulation gets places of its own, as far as it fits.
 * make_plan_test.c covers this file. */
#include "sched/layout/parts.h"
#include "sched/simulate/simulate.h"

#include "lib/base/status.h"

#include <stdlib.h>

/* Returns true if the item starts, in this pass or the next one, while the claim still needs its memory. */
static bool starts_before(const slc_item_times *times, uint32_t item, uint32_t count, double step_s, double over_s)
{
    double start_s = item < count ? times[item].start_s : times[item - count].start_s + step_s;
    return start_s < over_s;
}

/* until[c] becomes the last item that starts more than `tolerance_s` before claim c is over, at least its last user;
 * items of the next pass are counted on. */
static void lives_in_time(const slc_program *program, const slc_item_times *times, double step_s, double tolerance_s,
                          slc_work *work, uint32_t *until)
{
    const uint32_t count = program->item_count;
    slc_work_add(work, SLC_WORK_PACKED, (double)program->claim_count * count / 2);
    for (uint32_t c = 0; c < program->claim_count; c++) {
        const slc_claim *claim = &program->claims[c];
        const bool wraps = slc_claim_wraps(program, claim);
        const double over_s = times[claim->to].over_s + (wraps ? step_s : 0) - tolerance_s;
        const uint32_t to = claim->to + (wraps ? count : 0), last = claim->from + count - 1;
        until[c] = to;
        for (uint32_t i = to + 1; i <= last && i < to + count / 2; i++)
            if (starts_before(times, i, count, step_s, over_s)) until[c] = i;
    }
}

static const double tolerances[] = {0, 0.003, 0.01, 0.03}; /* shares of the step that an item may wait for memory */

static void copy_offsets(slc_plan *plan, const uint64_t *offsets)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++) plan->buffers[b].offset = offsets[b];
}

typedef struct {
    const slc_places *places; /* of the training program */
    slc_item_times *times;    /* of the plan as if any free memory would do */
    uint32_t *until;
    uint64_t *offsets; /* of the packing so far */
    slc_forecast ideal;
} in_time;

/* Steps that differ by less are not told apart. */
static const double LITTLE = 1e-3;

static bool is_shorter(double step_s, double than_s)
{
    return step_s < than_s * (1 - LITTLE);
}

static sluice_status simulate_by_sum(const slc_scheduling *in, const slc_scheduler *scheduler, slc_plan *plan,
                                     in_time *t)
{
    const slc_simulation how = slc_simulation_of_search(in->work);
    slc_program_forget_waits(&plan->train);
    sluice_status status =
        slc_plan_add_waits_by_sum(in->job, plan, t->places, scheduler->slots_wait_for_all, in->limit);
    slc_work_add(in->work, SLC_WORK_WAIT, slc_plan_length(plan));
    if (!status) status = slc_simulate_items(in->job, in->times, plan, &how, &t->ideal, t->times);
    slc_program_forget_waits(&plan->train);
    return status;
}

/* Packs again for the tolerance; *better: the plan fits and is faster than *forecast, which becomes its own. Otherwise
 * its offsets are as they were. */
static sluice_status pack_in_time(const slc_scheduling *in, const slc_scheduler *scheduler,
                                  const slc_packing_effort *effort, double tolerance, slc_plan *plan, in_time *t,
                                  slc_forecast *forecast, bool *better)
{
    slc_forecast found;
    slc_packing_effort mine = *effort;
    const slc_simulation how = slc_simulation_of_search(in->work);
    const uint64_t arena_bytes = plan->arena_bytes, lower_bound = plan->lower_bound;
    mine.until = t->until;
    lives_in_time(&plan->train, t->times, t->ideal.step_s, tolerance * t->ideal.step_s, in->work, t->until);
    sluice_status status = slc_plan_pack(plan, &mine);
    plan->lower_bound = lower_bound;
    *better = !status && plan->arena_bytes <= in->limit;
    if (*better) status = slc_plan_renew_waits_of(in, scheduler, t->places, plan);
    if (*better && !status) status = slc_simulate(in->job, in->times, plan, &how, &found);
    *better = *better && !status && found.step_s < forecast->step_s;
    if (*better) {
        *forecast = found;
        return SLUICE_OK;
    }
    copy_offsets(plan, t->offsets);
    plan->arena_bytes = arena_bytes;
    return status == SLUICE_ERR_FORMAT ? SLUICE_OK : status;
}

/* Tries the tolerances in turn, if the plan is of interest at all. */
static sluice_status wait_less(const slc_scheduling *in, const slc_scheduler *scheduler,
                               const slc_packing_effort *effort, double at_most_s, slc_plan *plan, in_time *t,
                               slc_forecast *forecast)
{
    bool better = false;
    for (uint32_t b = 0; b < plan->buffer_count; b++) t->offsets[b] = plan->buffers[b].offset;
    sluice_status status = simulate_by_sum(in, scheduler, plan, t);
    const bool in_vain = at_most_s > 0 && forecast->step_s > at_most_s && t->ideal.step_s > at_most_s;
    if (!status && in_vain) return SLUICE_OK;
    for (size_t k = 0; !status && !better && k < sizeof tolerances / sizeof *tolerances; k++)
        if (is_shorter(t->ideal.step_s * (1 + tolerances[k]), forecast->step_s))
            status = pack_in_time(in, scheduler, effort, tolerances[k], plan, t, forecast, &better);
    /* A simulation that cannot go on leaves the plan as it was. */
    if ((!status || status == SLUICE_ERR_FORMAT) && !better)
        status = slc_plan_renew_waits_of(in, scheduler, t->places, plan);
    return status;
}

sluice_status slc_plan_pack_in_time(const slc_scheduling *in, const slc_scheduler *scheduler, const slc_places *places,
                                    const slc_packing_effort *effort, const slc_packing_aim *aim, slc_plan *plan,
                                    slc_forecast *forecast)
{
    const slc_simulation how = slc_simulation_of_search(in->work);
    sluice_status status = slc_simulate(in->job, in->times, plan, &how, forecast);
    if (status || !is_shorter(aim->least_s, forecast->step_s)) return status;
    in_time t = {.places = places,
                 .times = malloc((plan->train.item_count + (size_t)1) * sizeof *t.times),
                 .until = malloc((plan->train.claim_count + (size_t)1) * sizeof *t.until),
                 .offsets = malloc((plan->buffer_count + (size_t)1) * sizeof *t.offsets)};
    status = t.times && t.until && t.offsets ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "plan");
    if (!status) status = wait_less(in, scheduler, effort, aim->at_most_s, plan, &t, forecast);
    free(t.offsets);
    free(t.until);
    free(t.times);
    return status;
}
