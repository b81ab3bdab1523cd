/* Units are first tried together, those updated last first: their updates are exposed at the step's end. All of them
 * are tried too, since all may be cheaper if the communication thread takes compute's time anyway. Then single units
 * are tried.
 *
 * A place counts from a step's own pass: item i of that pass is at i, item i of the next pass at n + i. An update that
 * moves to an item's place goes to place - 1/2, right before that item; the gathers of its values go right after it. */
#include "sched/search/update_lane.h"

#include "lib/base/status.h"
#include "sched/layout/parts.h"
#include "sched/layout/make_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { IN_PLACE, SOON, AFTER_SLOTS, BEFORE_USE, TARGET_KINDS } target_kind;
enum { PACKING_TRIES = 8 };

typedef struct {
    double place; /* in its step, as above */
    uint32_t from;
    slc_item item;
} moved_item;

typedef struct {
    const slc_scheduling *in;
    const slc_scheduler *scheduler;
    slc_plan **plan;
    slc_forecast *forecast;
    bool all;
    double until_s;
    slc_item_times *times; /* of the plan's items */
    moved_item *placed;
    uint32_t room;
    uint32_t *units; /* those with updates that may move, in the order of their last updates */
    uint32_t unit_count;
} lanes;

static const slc_program *program(const lanes *l)
{
    return &(*l->plan)->train;
}

static bool may_move(const slc_strategy *strategies, const slc_item *item)
{
    return item->kind == SLC_ITEM_UPDATE && !slc_exchanges(strategies[item->unit]);
}

static double place_of(const slc_program *p, uint32_t item)
{
    return item + (p->items[item].late ? p->item_count : 0.0);
}

/* ---- The target of an update ---- */

/* The place after the last slot. */
static double place_after_slots(const slc_program *p)
{
    uint32_t i = p->item_count;
    while (i && p->items[i - 1].kind != SLC_ITEM_SLOT) i--;
    return i;
}

static bool uses_layer(const slc_unit *unit, uint32_t layer)
{
    for (uint32_t i = 0; i < unit->use_count; i++)
        if (unit->uses[i].layer == layer) return true;
    return false;
}

/* The place of the first item of the next pass that needs the unit updated: a slot, or the gather of a window; gathers
 * that follow the update do not count. `ahead`: the slot before that one. */
static double place_of_use(const slc_job *job, const slc_program *p, const slc_unit *unit, uint32_t u, bool ahead)
{
    double before = p->item_count;
    const slc_unit *first = slc_first_reader(job, unit);
    for (uint32_t i = 0; i < p->item_count; i++) {
        const slc_item *item = &p->items[i];
        if (item->kind == SLC_ITEM_GATHER_WINDOW && (item->unit == u || &job->units[item->unit] == first))
            return i + (double)p->item_count;
        if (item->kind != SLC_ITEM_SLOT) continue;
        if (uses_layer(unit, slc_slot_layer(job, item->slot))) return ahead ? before : i + (double)p->item_count;
        before = i + (double)p->item_count;
    }
    return 2.0 * p->item_count;
}

/* The place of the compute lane's first item that starts when the update may; n: there is none in its pass. */
static double place_soon(const lanes *l, uint32_t update)
{
    const slc_program *p = program(l);
    double ready_s = l->times[update].open_s - 1e-9 * l->forecast->step_s;
    for (uint32_t i = 0; i < p->item_count; i++)
        if (slc_on_compute_lane(&p->items[i]) && l->times[i].start_s >= ready_s)
            return i + (p->items[update].late ? p->item_count : 0.0);
    return p->item_count;
}

static double target(const lanes *l, uint32_t update, target_kind where)
{
    const slc_program *p = program(l);
    const slc_job *job = l->in->job;
    const slc_item *item = &p->items[update];
    const slc_unit *unit = &job->units[item->unit];
    bool gathered = slc_operations_of(job, unit, l->in->strategies[item->unit]).gather_value != SLC_ITEM_KINDS;
    double place = place_of(p, update), to = place, end = place_after_slots(p);
    if (where == SOON) to = place_soon(l, update);
    if (where == AFTER_SLOTS) to = end;
    if (where == BEFORE_USE) to = place_of_use(job, p, unit, item->unit, gathered);
    /* A place after the last slot and before the next pass is the same as right after the last slot. */
    if (to > end && to <= p->item_count) to = end;
    double most = slc_may_be_late(job, item) ? place_of_use(job, p, unit, item->unit, false) : p->item_count;
    if (to > most) to = most;
    return to > place ? to - 0.5 : place;
}

/* ---- Orders ---- */

static int by_place(const void *a, const void *b)
{
    const moved_item *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static bool make_room(lanes *l)
{
    uint32_t count = program(l)->item_count;
    if (count <= l->room) return true;
    slc_item_times *times = realloc(l->times, count * sizeof *times);
    if (times) l->times = times;
    moved_item *grown = realloc(l->placed, count * sizeof *grown);
    if (grown) l->placed = grown;
    if (!times || !grown) return false;
    l->room = count;
    return true;
}

/* Moves the gathers of a unit's values after its updates. */
static void drag_gathers(lanes *l)
{
    const slc_program *p = program(l);
    for (uint32_t g = 0; g < p->item_count; g++) {
        if (p->items[g].kind != SLC_ITEM_GATHER_VALUE) continue;
        for (uint32_t u = 0; u < p->item_count; u++) {
            const slc_item *update = &p->items[u];
            bool same = update->kind == SLC_ITEM_UPDATE && update->unit == p->items[g].unit;
            if (same && slc_share_blocks(update, &p->items[g]))
                l->placed[g].place = fmax(l->placed[g].place, l->placed[u].place);
        }
    }
}

/* Writes the order in which the updates of the chosen units are on the compute lane, at their new places; everything
 * else stays as it is. */
static void write_order(lanes *l, const bool *chosen, target_kind where, slc_order *order)
{
    const slc_program *p = program(l);
    double n = p->item_count;
    for (uint32_t i = 0; i < p->item_count; i++) {
        const slc_item *item = &p->items[i];
        bool moves = may_move(l->in->strategies, item) && chosen[item->unit] && (l->all || !item->on_compute);
        l->placed[i] =
            (moved_item){moves ? target(l, i, where) : place_of(p, i), i + (item->late ? p->item_count : 0), *item};
        l->placed[i].item.on_compute |= moves;
    }
    drag_gathers(l);
    for (uint32_t i = 0; i < p->item_count; i++) {
        moved_item *at = &l->placed[i];
        at->item.late = at->place >= n - 0.25;
        if (at->item.late) at->place -= n;
    }
    qsort(l->placed, p->item_count, sizeof *l->placed, by_place);
    for (uint32_t i = 0; i < p->item_count; i++) slc_order_append(order, l->placed[i].item);
}

/* ---- Trying ---- */

static bool time_left(const lanes *l)
{
    return !slc_cancelled(l->in->cancel) && (l->until_s <= 0 || !slc_work_is_over(l->in->work, l->until_s));
}

/* Makes the plan of an order if it is legal, within the limit and takes less than at_most_s (0: however long it takes);
 * else *out is NULL. */
static sluice_status try_order(const lanes *l, const slc_order *order, double at_most_s, slc_plan **out,
                               slc_forecast *forecast)
{
    uint64_t arena;
    *out = NULL;
    if (order->failed) return slc_error(SLUICE_ERR_MEMORY, "order");
    slc_trying trying = {.tries = PACKING_TRIES, .at_most_s = at_most_s, .like = *l->plan};
    sluice_status status = slc_plan_try(l->in, order, l->scheduler, &trying, out, &arena, forecast);
    if (status || !*out) return status;
    bool better = !(at_most_s > 0) || forecast->step_s < at_most_s;
    slc_work_add(l->in->work, SLC_WORK_CHECKED, better ? slc_plan_length(*out) : 0);
    status = better ? slc_plan_validate(l->in->job, *out) : SLUICE_OK;
    if (better && !status) return SLUICE_OK;
    slc_plan_destroy(*out);
    *out = NULL;
    return status == SLUICE_ERR_FORMAT ? SLUICE_OK : status; /* an invalid plan is none to take */
}

/* Tries the chosen units' updates at one kind of place. If the step is shorter than at_most_s, *best becomes that plan
 * and at_most_s falls to its step. */
static sluice_status try_target(lanes *l, const bool *chosen, target_kind where, double *at_most_s, slc_plan **best,
                                slc_forecast *forecast)
{
    slc_order order = {0};
    slc_plan *plan;
    slc_forecast found;
    write_order(l, chosen, where, &order);
    sluice_status status = try_order(l, &order, *at_most_s, &plan, &found);
    slc_order_fini(&order);
    if (status || !plan) return status;
    slc_plan_destroy(*best);
    *best = plan;
    *forecast = found;
    *at_most_s = found.step_s * (1 - 1e-6);
    return SLUICE_OK;
}

/* Makes `better`, if not NULL, the plan that everything refers to from now on. */
static sluice_status take_over(lanes *l, slc_plan *better)
{
    if (better) {
        slc_plan_destroy(*l->plan);
        *l->plan = better;
    }
    if (!make_room(l)) return slc_error(SLUICE_ERR_MEMORY, "lanes of %u items", program(l)->item_count);
    const slc_simulation how = slc_simulation_of_search(l->in->work);
    return slc_simulate_items(l->in->job, l->in->times, *l->plan, &how, l->forecast, l->times);
}

/* Tries the last `count` units together, at each kind of place. */
static sluice_status try_last(lanes *l, bool *chosen, uint32_t count, double *at_most_s, slc_plan **best,
                              slc_forecast *forecast)
{
    sluice_status status = SLUICE_OK;
    memset(chosen, 0, l->in->job->unit_count * sizeof *chosen);
    for (uint32_t i = l->unit_count - count; i < l->unit_count; i++) chosen[l->units[i]] = true;
    for (int where = 0; !status && where < TARGET_KINDS && time_left(l); where++)
        status = try_target(l, chosen, (target_kind)where, at_most_s, best, forecast);
    return status;
}

static sluice_status try_one_by_one(lanes *l, bool *chosen)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = l->unit_count; !status && i-- > 0;) {
        slc_plan *best = NULL;
        slc_forecast forecast;
        double at_most_s = l->forecast->step_s * (1 - 1e-6);
        memset(chosen, 0, l->in->job->unit_count * sizeof *chosen);
        chosen[l->units[i]] = true;
        for (int where = 0; !status && where < TARGET_KINDS && time_left(l); where++)
            status = try_target(l, chosen, (target_kind)where, &at_most_s, &best, &forecast);
        if (!status && best)
            status = take_over(l, best);
        else
            slc_plan_destroy(best);
    }
    return status;
}

/* ---- Public ---- */

/* Lists units by the place of their last update. */
static void list_units(lanes *l)
{
    const slc_program *p = program(l);
    l->unit_count = 0;
    for (uint32_t place = 0; place < 2 * p->item_count; place++) {
        const slc_item *item = &p->items[place % p->item_count];
        if (!may_move(l->in->strategies, item) || item->late != (place >= p->item_count)) continue;
        uint32_t i = 0;
        while (i < l->unit_count && l->units[i] != item->unit) i++;
        l->unit_count += i == l->unit_count;
        for (; i + 1 < l->unit_count; i++) l->units[i] = l->units[i + 1];
        l->units[l->unit_count - 1] = item->unit;
    }
}

static sluice_status move_updates(lanes *l, bool *chosen)
{
    slc_plan *best = NULL;
    slc_forecast forecast;
    sluice_status status = take_over(l, NULL);
    if (status) return status;
    list_units(l);
    double at_most_s = l->forecast->step_s * (1 - 1e-6);
    for (uint32_t count = l->unit_count; !status && count && time_left(l); count = l->all ? 0 : count / 2)
        status = try_last(l, chosen, count, &at_most_s, &best, &forecast);
    if (!status && best) {
        status = take_over(l, best);
        return status || l->all ? status : try_one_by_one(l, chosen);
    }
    slc_plan_destroy(best);
    return status;
}

static sluice_status choose_lanes(const slc_scheduling *in, const slc_scheduler *scheduler, bool all, double until_s,
                                  slc_plan **plan, slc_forecast *forecast)
{
    uint32_t units = in->job->unit_count;
    lanes l = {.in = in, .scheduler = scheduler, .plan = plan, .forecast = forecast, .all = all, .until_s = until_s};
    bool *chosen = calloc((size_t)units + 1, sizeof *chosen);
    l.units = calloc((size_t)units + 1, sizeof *l.units);
    sluice_status status = chosen && l.units ? move_updates(&l, chosen) : slc_error(SLUICE_ERR_MEMORY, "lanes");
    free(chosen);
    free(l.units);
    free(l.times);
    free(l.placed);
    return status;
}

/* Gives each unit in turn to the lane that has fewer elements so far, first to the communication thread. */
static void share_out(const slc_job *job, slc_updates updates, bool *chosen)
{
    uint64_t computed = 0, rest = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        if (!job->units[u].trainable || slc_looks_up(&job->units[u])) continue;
        chosen[u] = updates == SLC_UPDATES_COMPUTE || computed < rest;
        *(chosen[u] ? &computed : &rest) += job->units[u].elements;
    }
}

/* Changes only the lanes, and so the waits; lifetimes and addresses stay. */
static sluice_status assign_lanes(const slc_scheduling *in, const slc_scheduler *scheduler, slc_updates updates,
                                  slc_plan *plan)
{
    bool *chosen = calloc((size_t)in->job->unit_count + 1, sizeof *chosen);
    if (!chosen) return slc_error(SLUICE_ERR_MEMORY, "lanes");
    share_out(in->job, updates, chosen);
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        slc_item *item = &plan->train.items[i];
        item->on_compute = may_move(in->strategies, item) && chosen[item->unit];
    }
    free(chosen);
    slc_program_forget_waits(&plan->train);
    sluice_status status = slc_plan_add_waits(in->job, plan, scheduler->slots_wait_for_all, false);
    return status ? status : slc_plan_validate(in->job, plan);
}

sluice_status slc_updates_place(const slc_scheduling *in, const slc_scheduler *scheduler, slc_updates updates,
                                double until_s, slc_plan **plan, slc_forecast *forecast)
{
    bool known = in->times->update_compute_s_per_element > 0, puts = updates >= SLC_UPDATES_COMPUTE;
    sluice_status status = puts ? assign_lanes(in, scheduler, updates, *plan) : SLUICE_OK;
    const slc_simulation how = slc_simulation_of_search(NULL);
    if (!status && puts) status = slc_simulate(in->job, in->times, *plan, &how, forecast);
    if (status || !(updates == SLC_UPDATES_COMPUTE || (updates == SLC_UPDATES_AUTO && known))) return status;
    return choose_lanes(in, scheduler, updates == SLC_UPDATES_COMPUTE, until_s, plan, forecast);
}
