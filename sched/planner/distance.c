/* Climbs the ladder of distance.h, from the bound to the plan. The model is quick to ask here, for it has nothing to
 * choose: fractions are continuous. */
#include "sched/planner/distance.h"

#include "ilp/slot_model.h"
#include "lib/base/status.h"
#include "sched/layout/make_plan.h"
#include "sched/layout/parts.h"
#include "sched/schedulers/slot_order.h"
#include "sched/simulate/simulate.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_RUNS = 16, UPDATE_DELAY = 2 }; /* how the model's answer is written down */

typedef enum { BOUND, MODEL, CHOICES, BLOCKS, ORDER, LATENCY, PLAN, STEPS } ladder_step;

/* ---- The model with the plan's choices ---- */

/* Solves the model with the plan's own strategies and recomputation. */
static sluice_status ask_model(const slc_joint_request *r, const slc_plan *plan, double most_s,
                               slc_slot_solution *solution)
{
    uint8_t *allowed = malloc((size_t)r->job->unit_count + 1), *recompute = calloc((size_t)r->job->layer_count + 1, 1);
    const slc_slot_request ask = {.job = r->job,
                                  .times = r->times,
                                  .allowed = allowed,
                                  .recompute = recompute,
                                  .limit = r->limit,
                                  .effort_s = most_s,
                                  .work = r->work,
                                  .cancel = r->cancel};
    sluice_status status = allowed && recompute ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "distance to the bound");
    for (uint32_t u = 0; !status && u < r->job->unit_count; u++) allowed[u] = (uint8_t)(1 << plan->strategies[u]);
    for (uint32_t l = 0; !status && plan->recompute && l < r->job->layer_count; l++) recompute[l] = plan->recompute[l];
    if (!status) status = slc_slot_model_solve(&ask, solution);
    free(recompute);
    free(allowed);
    return status;
}

/* ---- Steps without waits for memory ---- */

/* Returns true if every slot waits for all operations that come before it, as serial's do. */
static bool slots_wait_for_all(const slc_program *program)
{
    uint32_t last = SLC_NONE; /* the last operation before item i */
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        if (item->kind == SLC_ITEM_SLOT && last != SLC_NONE && !slc_waits_for_item(item, last)) return false;
        if (!slc_on_compute_lane(item)) last = i;
    }
    return true;
}

/* Simulates a plan's training with no waits but those for data; if `serial`, slots wait for all that is before them.
 * Only items, buffers and choices of the plan are read. */
static sluice_status simulate_apart(const slc_joint_request *r, const slc_plan *plan, bool serial, bool latency_once,
                                    double *step_s)
{
    const slc_simulation how = {.latency_once = latency_once};
    const slc_program *train = &plan->train;
    slc_forecast forecast = {0};
    slc_plan apart = *plan;
    apart.train.claim_count = 0;
    apart.train.items = malloc(((size_t)train->item_count + 1) * sizeof *apart.train.items);
    if (!apart.train.items) return slc_error(SLUICE_ERR_MEMORY, "distance to the bound");
    for (uint32_t i = 0; i < train->item_count; i++) {
        apart.train.items[i] = train->items[i];
        apart.train.items[i].after = NULL;
        apart.train.items[i].after_count = 0;
    }
    sluice_status status = slc_plan_add_waits(r->job, &apart, serial, false);
    if (!status) status = slc_simulate(r->job, r->times, &apart, &how, &forecast);
    *step_s = forecast.step_s;
    slc_program_forget_waits(&apart.train);
    free(apart.train.items);
    return status;
}

/* Writes the model's answer down in whole runs, updates `delay` operations after their reductions, and simulates that.
 * *step_s stays as it is if the order is illegal, or if what lives at once in it is above the limit. */
static sluice_status simulate_answer(const slc_joint_request *r, const slc_slot_solution *solution, uint32_t delay,
                                     double *step_s)
{
    slc_scheduling in = slc_joint_scheduling(r, solution->strategies, solution->recompute);
    const slc_slot_order_options how = {.most_runs = MOST_RUNS, .update_delay = delay, .fuse = true};
    slc_order order = {0};
    slc_plan *plan = NULL;
    double found_s = INFINITY;
    in.limit = 0; /* nothing is packed then: the plan has items and lives, and their lower bound */
    slc_order_from_slots(&in, solution, &how, &order);
    sluice_status status = order.failed ? slc_error(SLUICE_ERR_MEMORY, "order") : SLUICE_OK;
    if (!status) status = slc_plan_lay_out(&in, &order, &slc_scheduler_ilp, 0, &plan);
    if (!status && plan && plan->lower_bound <= r->limit) status = simulate_apart(r, plan, false, true, &found_s);
    if (!status) *step_s = fmin(*step_s, found_s);
    slc_order_fini(&order);
    slc_plan_destroy(plan);
    return status;
}

/* ---- The ladder ---- */

/* Divides the distance into parts: part k is what lies between the steps at[k] and at[k + 1]. */
static void divide(double *at, slc_plan_distance *out)
{
    at[PLAN] = fmax(at[PLAN], at[BOUND]);
    for (int k = BOUND + 1; k < PLAN; k++) at[k] = fmax(at[k - 1], fmin(at[k], at[PLAN]));
    for (int k = 0; k < PLAN; k++) out->part_s[k] = at[k + 1] - at[k];
    out->known = true;
}

static sluice_status climb(const slc_joint_request *r, const slc_plan *plan, const slc_slot_solution *solution,
                           double *at)
{
    const bool serial = slots_wait_for_all(&plan->train);
    sluice_status status = simulate_apart(r, plan, serial, true, &at[ORDER]);
    if (!status) status = simulate_apart(r, plan, serial, false, &at[LATENCY]);
    at[BLOCKS] = at[ORDER];
    if (!status) status = simulate_answer(r, solution, 0, &at[BLOCKS]);
    if (!status && !r->times->link.thread_moves) status = simulate_answer(r, solution, UPDATE_DELAY, &at[BLOCKS]);
    return status;
}

sluice_status slc_distance_find(const slc_joint_request *request, const slc_joint_answer *answer, double bound_s,
                                double most_s, slc_plan_distance *out)
{
    double at[STEPS] = {[BOUND] = bound_s, [PLAN] = answer->forecast.step_s};
    slc_slot_solution solution = {0};
    *out = (slc_plan_distance){0};
    if (!(bound_s > 0)) return SLUICE_OK;
    sluice_status status = ask_model(request, answer->plan, most_s, &solution);
    if (status == SLUICE_ERR_BUDGET) return SLUICE_OK; /* the plan is of a kind that the model does not know */
    if (!status && solution.found) {
        at[CHOICES] = solution.bound_s;
        at[MODEL] = answer->model_s > 0 ? fmin(answer->model_s, at[CHOICES]) : at[CHOICES];
        status = climb(request, answer->plan, &solution, at);
        if (!status) divide(at, out);
    }
    slc_slot_solution_fini(&solution);
    return status;
}
