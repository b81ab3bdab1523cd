/* From an order to a plan: buffers, lifetimes, packing, tickets. slc_plan_from_order has the steps. */
#include "sched/layout/parts.h"
#include "sched/layout/make_plan.h"
#include "sched/simulate/simulate.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static sluice_status make_program(const slc_scheduling *in, const slc_scheduler *scheduler, bool evaluate,
                                  slc_program *program)
{
    slc_order order = {0};
    (evaluate ? scheduler->evaluate : scheduler->train)(in, &order);
    if (order.failed) {
        slc_order_fini(&order);
        return slc_error(SLUICE_ERR_MEMORY, "no memory for the order of operations");
    }
    program->item_count = order.count;
    program->items = slc_order_take_items(&order);
    return SLUICE_OK;
}

static sluice_status copy_program(const slc_order *order, slc_program *program)
{
    program->items = order->failed ? NULL : malloc(((size_t)order->count + 1) * sizeof *program->items);
    if (!program->items) return slc_error(SLUICE_ERR_MEMORY, "no memory for the order of operations");
    memcpy(program->items, order->items, order->count * sizeof *program->items);
    program->item_count = order->count;
    return SLUICE_OK;
}

static sluice_status note_choices(const slc_scheduling *in, slc_plan *plan)
{
    const slc_job *job = in->job;
    plan->unit_count = job->unit_count;
    plan->layer_count = job->layer_count;
    plan->strategies = malloc(((size_t)job->unit_count + 1) * sizeof *plan->strategies);
    plan->recompute = calloc((size_t)job->layer_count + 1, sizeof *plan->recompute);
    if (!plan->strategies || !plan->recompute)
        return slc_error(SLUICE_ERR_MEMORY, "no memory for %u strategies", job->unit_count);
    memcpy(plan->strategies, in->strategies, job->unit_count * sizeof *in->strategies);
    if (in->recompute) memcpy(plan->recompute, in->recompute, job->layer_count * sizeof *in->recompute);
    return SLUICE_OK;
}

/* Counts the pairs of a slot and a unit as work. Some schedulers look at all units for each slot; up to so many pairs
 * that is in the price of an item, which was fitted on jobs of up to 50 layers. */
static void count_pairs(const slc_scheduling *in, double slots)
{
    static const double FEW_PAIRS = 20000;
    double pairs = slots * in->job->unit_count;
    if (pairs > FEW_PAIRS) slc_work_add(in->work, SLC_WORK_ORDERED, pairs - FEW_PAIRS);
}

static void *copy_of(const void *array, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    if (copy && bytes) memcpy(copy, array, bytes);
    return copy;
}

/* Takes over what all plans of the same choices, limit and scheduler have in common: buffers and the evaluation,
 * without its waits. */
static sluice_status copy_likeness(const slc_plan *like, slc_plan *plan)
{
    const slc_program *evaluate = &like->evaluate;
    plan->buffers = copy_of(like->buffers, like->buffer_count * sizeof *like->buffers);
    plan->statics = copy_of(like->statics, like->static_count * sizeof *like->statics);
    plan->evaluate.claims = copy_of(evaluate->claims, evaluate->claim_count * sizeof *evaluate->claims);
    plan->evaluate.items = copy_of(evaluate->items, evaluate->item_count * sizeof *evaluate->items);
    for (uint32_t i = 0; plan->evaluate.items && i < evaluate->item_count; i++) {
        plan->evaluate.items[i].after = NULL;
        plan->evaluate.items[i].after_count = 0;
    }
    if (!plan->buffers || !plan->statics || !plan->evaluate.claims || !plan->evaluate.items)
        return slc_error(SLUICE_ERR_MEMORY, "no memory for %u buffers", like->buffer_count);
    plan->buffer_count = like->buffer_count;
    plan->static_count = like->static_count;
    plan->evaluate.claim_count = evaluate->claim_count;
    plan->evaluate.item_count = evaluate->item_count;
    return SLUICE_OK;
}

/* Fills items and choices. `train` NULL: the scheduler orders the training program too. `like`: as in slc_trying; NULL:
 * the scheduler orders the evaluation. */
static sluice_status write_programs(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                                    const slc_plan *like, slc_plan *plan)
{
    const double ordered = (train ? 0.0 : (double)in->job->micro_batches * slc_job_slots(in->job)) +
                           (like ? 0.0 : (double)in->job->layer_count);
    plan->schedule = scheduler->name;
    sluice_status status = note_choices(in, plan);
    count_pairs(in, ordered);
    if (!status) status = train ? copy_program(train, &plan->train) : make_program(in, scheduler, false, &plan->train);
    if (status) return status;
    return like ? copy_likeness(like, plan) : make_program(in, scheduler, true, &plan->evaluate);
}

static sluice_status add_evaluation_claims(const slc_scheduling *in, slc_plan *plan)
{
    slc_places places;
    sluice_status status = slc_places_init(&places, in->job, &plan->evaluate);
    if (!status) status = slc_plan_add_claims(in->job, plan, &places);
    slc_places_fini(&places);
    return status;
}

/* Adds buffers and claims; `places` are those of the training program. A plan that is `like` another one has its
 * buffers, and the claims of its evaluation. */
static sluice_status add_lives(const slc_scheduling *in, const slc_places *places, const slc_plan *like, slc_plan *plan)
{
    slc_work_add(in->work, SLC_WORK_ITEM, plan->train.item_count + (like ? 0.0 : (double)plan->evaluate.item_count));
    sluice_status status = like ? SLUICE_OK : slc_plan_add_buffers(in->job, plan);
    if (!status) status = slc_plan_add_claims(in->job, plan, places);
    return status || like ? status : add_evaluation_claims(in, plan);
}

/* Returns the effort with which slc_plan_make packs. */
static slc_packing_effort usual_effort(const slc_scheduling *in, uint64_t limit)
{
    return (slc_packing_effort){.limit = limit, .work = in->work};
}

/* Fills all of a plan but the waits, which is enough to know its size. */
static sluice_status lay_out(const slc_scheduling *in, const slc_places *places, const slc_packing_effort *effort,
                             slc_plan *plan)
{
    sluice_status status = add_lives(in, places, NULL, plan);
    return status ? status : slc_plan_pack(plan, effort);
}

sluice_status slc_plan_from_order(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                                  slc_plan **out)
{
    slc_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return slc_error(SLUICE_ERR_MEMORY, "plan");
    const slc_packing_effort effort = usual_effort(in, UINT64_MAX);
    slc_places places = {0};
    sluice_status status = write_programs(in, train, scheduler, NULL, plan);
    if (!status) status = slc_cancel_check(in->cancel);
    if (!status) status = slc_places_init(&places, in->job, &plan->train);
    if (!status) status = lay_out(in, &places, &effort, plan);
    if (!status) status = slc_plan_renew_waits_of(in, scheduler, &places, plan);
    if (!status) status = slc_plan_renew_evaluation_waits(in, scheduler, plan);
    if (!status) slc_work_add(in->work, SLC_WORK_CHECKED, slc_plan_length(plan));
    if (!status) status = slc_plan_validate(in->job, plan);
    slc_places_fini(&places);
    if (status) {
        slc_plan_destroy(plan);
        return slc_error_context(status, "plan");
    }
    *out = plan;
    return SLUICE_OK;
}

sluice_status slc_plan_make(const slc_scheduling *in, const slc_scheduler *scheduler, slc_plan **out)
{
    return slc_plan_from_order(in, NULL, scheduler, out);
}

/* Fills items, lifetimes and packing: from `like` if it is there, else packed with this effort. */
static sluice_status lay_out_order(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                                   const slc_plan *like, const slc_packing_effort *effort, slc_plan **out)
{
    *out = NULL;
    slc_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return slc_error(SLUICE_ERR_MEMORY, "plan");
    slc_places places = {0};
    sluice_status status = slc_cancel_check(in->cancel);
    if (!status) status = write_programs(in, train, scheduler, like, plan);
    if (!status) status = slc_places_init(&places, in->job, &plan->train);
    if (!status && !slc_plan_order_is_legal(in->job, plan, &places)) status = SLUICE_ERR_FORMAT;
    if (!status) status = add_lives(in, &places, like, plan);
    if (!status) status = like ? slc_plan_place(plan, NULL, in->limit, in->work) : slc_plan_pack(plan, effort);
    slc_places_fini(&places);
    if (!status && plan->arena_bytes != UINT64_MAX) {
        *out = plan;
        return SLUICE_OK;
    }
    slc_plan_destroy(plan);
    return status == SLUICE_ERR_FORMAT ? SLUICE_OK : status;
}

sluice_status slc_plan_lay_out(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                               uint32_t tries, slc_plan **out)
{
    const slc_packing_effort effort = {
        .limit = in->limit, .enough = tries ? in->limit : 0, .tries = tries, .work = in->work};
    return lay_out_order(in, train, scheduler, NULL, &effort, out);
}

sluice_status slc_plan_lay_out_like(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                                    const slc_plan *like, slc_plan **out)
{
    return lay_out_order(in, train, scheduler, like, NULL, out);
}

/* Returns true if any item waits for itself or a later item; then two lives of one buffer would overlap. */
static bool waits_for_later(const slc_program *program)
{
    for (uint32_t i = 0; i < program->item_count; i++)
        for (uint32_t a = 0; a < program->items[i].after_count; a++)
            if (!program->items[i].after[a].previous && program->items[i].after[a].item >= i) return true;
    return false;
}

/* Packs the plan and adds the waits of its training. *fits becomes false if the plan is too large, or illegal after
 * all. */
static sluice_status pack_to_fit(const slc_scheduling *in, const slc_scheduler *scheduler, const slc_places *places,
                                 const slc_packing_effort *effort, slc_plan *plan, bool *fits)
{
    sluice_status status = slc_plan_pack(plan, effort);
    *fits = !status && plan->arena_bytes <= in->limit;
    if (*fits) status = slc_plan_renew_waits_of(in, scheduler, places, plan);
    if (*fits && !status) *fits = !waits_for_later(&plan->train);
    return status;
}

/* Finds whether the plan could be fast enough if no two buffers shared memory. Packing costs most, so it is done only
 * for plans that could. *least_s becomes the step that it would have. */
static sluice_status could_be_fast(const slc_scheduling *in, const slc_scheduler *scheduler, const slc_places *places,
                                   double at_most_s, slc_plan *plan, double *least_s, bool *could)
{
    const slc_packing_effort apart = {.apart = true, .work = in->work};
    const slc_simulation how = slc_simulation_of_search(in->work);
    slc_forecast forecast;
    sluice_status status = slc_plan_pack(plan, &apart);
    *could = !status && plan->lower_bound <= in->limit;
    if (*could) status = slc_plan_renew_waits_of(in, scheduler, places, plan);
    *could = *could && !status && !waits_for_later(&plan->train);
    if (*could) status = slc_simulate(in->job, in->times, plan, &how, &forecast);
    *could = *could && !status && forecast.step_s <= at_most_s;
    if (*could) *least_s = forecast.step_s;
    return status;
}

/* Leaves buffers at their places in trying->places. *kept becomes false if those that overlap there fit nowhere else,
 * or if the step would be too long. */
static sluice_status keep_places(const slc_scheduling *in, const slc_scheduler *scheduler, const slc_places *places,
                                 const slc_trying *trying, slc_plan *plan, slc_forecast *forecast, bool *kept)
{
    const slc_simulation how = slc_simulation_of_search(in->work);
    sluice_status status = slc_plan_place(plan, trying->places, in->limit, in->work);
    *kept = !status && plan->arena_bytes <= in->limit;
    if (*kept) status = slc_plan_renew_waits_of(in, scheduler, places, plan);
    *kept = *kept && !status && !waits_for_later(&plan->train);
    if (*kept) status = slc_simulate(in->job, in->times, plan, &how, forecast);
    *kept = *kept && !status && !(trying->at_most_s > 0 && forecast->step_s > trying->at_most_s);
    return status == SLUICE_ERR_FORMAT ? SLUICE_OK : status; /* another packing may be able to go on */
}

/* Simulates the packed plan, and packs it again if it should wait less. *wanted becomes false if its step is too long.
 */
static sluice_status look_ahead(const slc_scheduling *in, const slc_scheduler *scheduler, const slc_places *places,
                                const slc_trying *trying, const slc_packing_effort *effort, double least_s,
                                slc_plan *plan, slc_forecast *forecast, bool *wanted)
{
    const slc_packing_aim aim = {least_s, trying->at_most_s};
    const slc_simulation how = slc_simulation_of_search(in->work);
    sluice_status status = trying->in_time ? slc_plan_pack_in_time(in, scheduler, places, effort, &aim, plan, forecast)
                                           : slc_simulate(in->job, in->times, plan, &how, forecast);
    *wanted = !status && !(trying->at_most_s > 0 && forecast->step_s > trying->at_most_s);
    return status;
}

/* Packs the plan, which has lives, and adds the waits of its training. *wanted becomes false if it is too large, or too
 * slow. */
static sluice_status pack_anew(const slc_scheduling *in, const slc_scheduler *scheduler, const slc_places *places,
                               const slc_trying *trying, slc_plan *plan, uint64_t *arena_bytes, slc_forecast *forecast,
                               bool *wanted)
{
    const slc_packing_effort effort = {
        .limit = in->limit, .enough = trying->tries ? in->limit : 0, .tries = trying->tries, .work = in->work};
    double least_s = 0;
    sluice_status status = SLUICE_OK;
    *wanted = true;
    if (in->times && trying->at_most_s > 0) {
        status = could_be_fast(in, scheduler, places, trying->at_most_s, plan, &least_s, wanted);
        if (!status && !*wanted && plan->lower_bound > in->limit) *arena_bytes = plan->lower_bound;
    }
    if (!status && *wanted) {
        status = pack_to_fit(in, scheduler, places, &effort, plan, wanted);
        *arena_bytes = plan->arena_bytes;
    }
    if (!status && *wanted && in->times && (forecast || trying->in_time)) {
        slc_forecast own;
        status = look_ahead(in, scheduler, places, trying, &effort, least_s, plan, forecast ? forecast : &own, wanted);
        *arena_bytes = plan->arena_bytes;
    }
    return status;
}

sluice_status slc_plan_try(const slc_scheduling *in, const slc_order *train, const slc_scheduler *scheduler,
                           const slc_trying *trying, slc_plan **out, uint64_t *arena_bytes, slc_forecast *forecast)
{
    slc_plan *plan = calloc(1, sizeof *plan);
    *out = NULL;
    *arena_bytes = UINT64_MAX;
    if (!plan) return slc_error(SLUICE_ERR_MEMORY, "plan");
    slc_places places = {0};
    bool wanted = false;
    sluice_status status = slc_cancel_check(in->cancel);
    if (!status) status = write_programs(in, train, scheduler, trying->like, plan);
    if (!status) status = slc_places_init(&places, in->job, &plan->train);
    if (!status && !slc_plan_order_is_legal(in->job, plan, &places)) status = SLUICE_ERR_FORMAT;
    if (!status) status = add_lives(in, &places, trying->like, plan);
    if (!status && trying->places) {
        status = keep_places(in, scheduler, &places, trying, plan, forecast, &wanted);
        if (wanted) *arena_bytes = plan->arena_bytes;
    }
    if (!status && !wanted && !trying->only_places)
        status = pack_anew(in, scheduler, &places, trying, plan, arena_bytes, forecast, &wanted);
    if (!status && wanted) status = slc_plan_renew_evaluation_waits(in, scheduler, plan);
    slc_places_fini(&places);
    if (!status && wanted) {
        *out = plan;
        return SLUICE_OK;
    }
    slc_plan_destroy(plan);
    return status == SLUICE_ERR_FORMAT ? SLUICE_OK : status;
}

sluice_status slc_plan_measure(const slc_scheduling *in, const slc_scheduler *scheduler, uint64_t limit,
                               uint64_t *arena_bytes)
{
    slc_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return slc_error(SLUICE_ERR_MEMORY, "plan");
    slc_places places = {0};
    const slc_packing_effort effort = usual_effort(in, limit);
    sluice_status status = slc_cancel_check(in->cancel);
    if (!status) status = write_programs(in, NULL, scheduler, NULL, plan);
    if (!status) status = slc_places_init(&places, in->job, &plan->train);
    if (!status) status = lay_out(in, &places, &effort, plan);
    slc_places_fini(&places);
    *arena_bytes = plan->arena_bytes;
    slc_plan_destroy(plan);
    return slc_error_context(status, "plan");
}
