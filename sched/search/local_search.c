/* A random walk over total orders that cools down. Some moves are aimed: they bring forward an operation whose end one
 * of the longest waits of the compute lane needed. slc_plan_try discards a plan in which an item waits for a later
 * one. Packing costs most, and where memory is tight it seldom succeeds, so buffers stay where they are as long as they
 * can, those that then overlap go to gaps, and a move may be that of one buffer. sched/joint/joint_test.c covers this
 * file. */
#include "sched/search/local_search.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"
#include "sched/layout/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PACKING_SHARE = 0.08; /* tries that may pack anew take so much work, those that may not take 1 */
enum {
    SEARCH_STREAM = 0x5e,
    PACKING_TRIES = 8,
    SHORT = 100,
    BUFFER_MOVES = 8, /* one of so many moves is that of a buffer, */
    NEIGHBOURS = 16,  /* next to one of so many others */
    FEW_UNITS = 6     /* jobs of at most so many units are packed quickly: any order may be packed anew */
};

typedef struct {
    const slc_scheduling *in;
    const slc_scheduler *scheduler;
    const slc_search_options *options;
    slc_order current, work; /* without waits */
    slc_item_times *times;   /* of the current plan's items */
    uint32_t times_room;
    uint32_t *waited; /* items of the current plan that the compute lane waited for, longest wait first */
    uint32_t waited_count;
    const slc_plan *now;         /* the current plan: the best one, or `walked` */
    slc_plan *walked;            /* NULL: the current plan is the best one */
    uint64_t *places;            /* [buffers] offsets in the current plan */
    double packing_s, keeping_s; /* nominal seconds of tries that might pack anew, and of those that might not */
    uint32_t swept;              /* moves of the sweep that have been made */
    uint64_t draws;
} search;

static uint64_t draw(search *s, uint64_t below)
{
    return slc_random_below(s->options->seed, SEARCH_STREAM, s->draws++, below);
}

static bool copy_order(slc_order *to, const slc_item *items, uint32_t count)
{
    if (to->capacity < count + 2) {
        slc_item *grown = realloc(to->items, ((size_t)count + 64) * sizeof *grown);
        if (!grown) return false;
        to->items = grown;
        to->capacity = count + 64;
    }
    memcpy(to->items, items, count * sizeof *items);
    for (uint32_t i = 0; i < count; i++) {
        to->items[i].after = NULL;
        to->items[i].after_count = 0;
    }
    to->count = count;
    return true;
}

/* ---- The operations that compute waits for ---- */

typedef struct {
    double wait_s;
    uint32_t item;
} wait_of;

static int longest_first(const void *a, const void *b)
{
    const wait_of *x = a, *y = b;
    if (x->wait_s != y->wait_s) return x->wait_s > y->wait_s ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static uint32_t last_awaited(const slc_program *program, uint32_t slot, const slc_item_times *times)
{
    uint32_t found = SLC_NONE;
    double latest = -INFINITY;
    for (uint32_t a = 0; a < program->items[slot].after_count; a++) {
        uint32_t item = program->items[slot].after[a].item;
        if (program->items[slot].after[a].previous || times[item].end_s <= latest) continue;
        latest = times[item].end_s;
        found = item;
    }
    return found;
}

static void list_waits(search *s, const slc_plan *plan)
{
    const slc_program *program = &plan->train;
    wait_of *waits = malloc(((size_t)program->item_count + 1) * sizeof *waits);
    uint32_t count = 0;
    double before = 0;
    for (uint32_t i = 0; waits && i < program->item_count; i++) {
        if (!slc_on_compute_lane(&program->items[i])) continue;
        uint32_t item = last_awaited(program, i, s->times);
        double wait_s = s->times[i].start_s - before;
        if (item != SLC_NONE && wait_s > 0) waits[count++] = (wait_of){wait_s, item};
        before = s->times[i].end_s;
    }
    s->waited_count = 0;
    if (count) qsort(waits, count, sizeof *waits, longest_first);
    for (uint32_t i = 0; i < count; i++) s->waited[s->waited_count++] = waits[i].item;
    free(waits);
}

/* ---- Moves ---- */

/* An operation that moves across the step's border becomes late, or stops being late. Gathers of windows do not cross
 * it. */
static bool move_by(const slc_job *job, slc_order *order, uint32_t item, int64_t distance)
{
    int64_t to = (int64_t)item + distance, count = order->count;
    slc_item *moved = &order->items[item];
    if (moved->kind == SLC_ITEM_SLOT || moved->kind == SLC_ITEM_AGREE) return false;
    if (to < 0 || to >= count) {
        if (moved->late != (to < 0) || !slc_may_be_late(job, moved)) return false;
        moved->late = !moved->late;
        to = to < 0 ? to + count : to - count;
        if (to < 0 || to >= count) return false;
    }
    slc_order_shift(order, item, (uint32_t)to);
    return true;
}

static void erase(slc_order *order, uint32_t item)
{
    memmove(order->items + item, order->items + item + 1, (order->count - item - 1) * sizeof *order->items);
    order->count--;
}

static bool same_run(const slc_item *a, const slc_item *b)
{
    return a->kind == b->kind && a->unit == b->unit && a->micro_batch == b->micro_batch && a->index == b->index &&
           a->late == b->late && a->on_compute == b->on_compute && a->kind != SLC_ITEM_SLOT &&
           a->kind != SLC_ITEM_AGREE;
}

static bool join_runs(slc_order *order, uint32_t item, bool backward)
{
    slc_item *mine = &order->items[item];
    for (uint32_t i = item + 1; i < order->count && i < item + 12; i++) {
        slc_item *next = &order->items[i];
        if (!same_run(mine, next)) continue;
        if (mine->first_block + mine->block_count != next->first_block &&
            next->first_block + next->block_count != mine->first_block)
            continue;
        uint64_t first = mine->first_block < next->first_block ? mine->first_block : next->first_block;
        slc_item *kept = backward ? mine : next;
        kept->block_count = mine->block_count + next->block_count;
        kept->first_block = first;
        erase(order, backward ? i : item);
        return true;
    }
    return false;
}

static bool split_run(const slc_strategy *strategies, slc_order *order, uint32_t item)
{
    if (order->items[item].block_count < 2 || order->count + 1 > order->capacity) return false;
    if (slc_exchanges(strategies[order->items[item].unit])) return false; /* a onebit unit moves whole */
    memmove(order->items + item + 1, order->items + item, (order->count - item) * sizeof *order->items);
    order->count++;
    slc_item *a = &order->items[item], *b = a + 1;
    uint64_t half = a->block_count / 2;
    a->block_count = half;
    b->first_block += half;
    b->block_count -= half;
    return true;
}

/* Swaps two operations of one kind: each takes the other's place and its lateness. */
static bool swap_operations(search *s, slc_order *order)
{
    slc_item *a = &order->items[draw(s, order->count)], *b = &order->items[draw(s, order->count)];
    if (a->kind != b->kind || a->kind == SLC_ITEM_SLOT || a->kind == SLC_ITEM_AGREE || a->unit == b->unit) return false;
    slc_item before = *a;
    bool late = a->late;
    *a = *b;
    a->late = late;
    late = b->late;
    *b = before;
    b->late = late;
    return true;
}

/* Moves one of the operations that compute waits for longest to an earlier place. */
static bool bring_forward(search *s, slc_order *order)
{
    if (!s->waited_count) return false;
    uint64_t pick = draw(s, s->waited_count < 4 ? s->waited_count : 4);
    uint32_t item = s->waited[pick];
    int64_t distance = -(int64_t)(1 + draw(s, (uint64_t)1 << draw(s, 6)));
    return item < order->count && move_by(s->in->job, order, item, distance);
}

static bool change_lane(const slc_strategy *strategies, slc_item *item)
{
    if (item->kind != SLC_ITEM_UPDATE || slc_exchanges(strategies[item->unit])) return false;
    item->on_compute = !item->on_compute;
    return true;
}

static bool make_change(search *s, slc_order *order)
{
    uint64_t kind = draw(s, 16);
    if (kind < 5 && bring_forward(s, order)) return true;
    uint32_t item = (uint32_t)draw(s, order->count);
    if (kind == 5) return split_run(s->in->strategies, order, item);
    if (kind < 8) return join_runs(order, item, draw(s, 2));
    if (kind == 8) return swap_operations(s, order);
    if (kind == 9 && s->options->lanes && change_lane(s->in->strategies, &order->items[item])) return true;
    int64_t distance = 1 + (int64_t)draw(s, (uint64_t)1 << draw(s, 7));
    return move_by(s->in->job, order, item, draw(s, 2) ? distance : -distance);
}

/* Makes the next move of the sweep: before any move is drawn, each operation of a short order is moved a little in
 * either direction. */
static bool sweep_next(search *s, slc_order *order, bool *moved)
{
    static const int64_t distances[] = {-1, 1, -2, 2, -3, 3};
    enum { DISTANCES = sizeof distances / sizeof *distances };
    if (order->count > SHORT || s->swept / DISTANCES >= order->count) return false;
    uint32_t item = s->swept / DISTANCES;
    *moved = move_by(s->in->job, order, item, distances[s->swept++ % DISTANCES]);
    return true;
}

/* ---- The climb ---- */

/* Goes on from this plan, which is the best one or belongs to the search from now on. */
static sluice_status go_on_from(search *s, slc_plan *plan, bool is_best)
{
    if (s->walked != plan) slc_plan_destroy(s->walked);
    s->walked = is_best ? NULL : plan;
    s->now = plan;
    for (uint32_t b = 0; b < plan->buffer_count; b++) s->places[b] = plan->buffers[b].offset;
    if (s->times_room < plan->train.item_count) {
        uint32_t room = plan->train.item_count + 64;
        slc_item_times *times = realloc(s->times, room * sizeof *times);
        if (times) s->times = times;
        uint32_t *waited = realloc(s->waited, room * sizeof *waited);
        if (waited) s->waited = waited;
        if (!times || !waited) return slc_error(SLUICE_ERR_MEMORY, "search");
        s->times_room = room;
    }
    if (!copy_order(&s->current, plan->train.items, plan->train.item_count))
        return slc_error(SLUICE_ERR_MEMORY, "search");
    slc_forecast again;
    const slc_simulation how = slc_simulation_of_search(s->in->work);
    sluice_status status = slc_simulate_items(s->in->job, s->in->times, plan, &how, &again, s->times);
    if (!status) list_waits(s, plan);
    return status;
}

/* ---- The walk ---- */

/* Returns by how much the walk may be above the best plan, as a share of the step: a little at first, so that it leaves
 * the best plan's valley, and less as it cools. */
static double tolerance(const search *s, uint32_t without_gain)
{
    double cooled = (double)without_gain / s->options->patience;
    return 0.02 * (1 - cooled) * (1 - cooled);
}

/* Draws a buffer and moves it next to others; the order and all other buffers stay. */
static sluice_status move_buffer(search *s, double at_most_s, slc_plan **next, slc_forecast *forecast)
{
    const uint32_t count = s->now->buffer_count, buffer = (uint32_t)draw(s, count);
    const uint64_t before = s->places[buffer];
    const slc_packing_effort effort = {.limit = s->in->limit, .work = s->in->work};
    uint32_t neighbours[NEIGHBOURS], found;
    uint64_t places[2 * NEIGHBOURS], arena;
    for (int i = 0; i < NEIGHBOURS; i++) neighbours[i] = (uint32_t)draw(s, count);
    sluice_status status = slc_plan_places_beside(s->now, buffer, neighbours, NEIGHBOURS, &effort, places, &found);
    if (status || !found) return status;
    const slc_trying trying = {.at_most_s = at_most_s, .like = s->now, .places = s->places, .only_places = true};
    s->places[buffer] = places[draw(s, found)];
    status = slc_plan_try(s->in, &s->current, s->scheduler, &trying, next, &arena, forecast);
    s->places[buffer] = before;
    return status;
}

/* Makes a plan of the changed order. Buffers stay where they are if they can, or a few of them move; otherwise it is
 * packed, as long as tries with packing have not had more than their share of the work. */
static sluice_status try_order(search *s, double at_most_s, slc_plan **next, slc_forecast *forecast)
{
    slc_work none = {0};
    const slc_work *work = s->in->work ? s->in->work : &none;
    const bool few = s->in->job->unit_count <= FEW_UNITS, packs = few || s->packing_s <= PACKING_SHARE * s->keeping_s;
    const double begun_s = work->spent_s;
    const slc_trying trying = {.tries = PACKING_TRIES,
                               .at_most_s = at_most_s,
                               .in_time = true,
                               .like = s->now,
                               .places = s->places,
                               .only_places = !packs};
    uint64_t arena;
    sluice_status status = slc_plan_try(s->in, &s->work, s->scheduler, &trying, next, &arena, forecast);
    *(packs ? &s->packing_s : &s->keeping_s) += work->spent_s - begun_s;
    return status;
}

/* Makes one change of the current plan. *next is the changed one if the walk goes there, or NULL. */
static sluice_status try_once(search *s, double at_most_s, slc_plan **next, slc_forecast *forecast)
{
    *next = NULL;
    if (s->in->job->unit_count > FEW_UNITS && s->in->limit != UINT64_MAX && !draw(s, BUFFER_MOVES))
        return move_buffer(s, at_most_s, next, forecast);
    if (!copy_order(&s->work, s->current.items, s->current.count)) return slc_error(SLUICE_ERR_MEMORY, "search");
    bool any = false;
    if (!sweep_next(s, &s->work, &any))
        for (uint64_t changes = 1 + draw(s, 3); changes; changes--) any |= make_change(s, &s->work);
    if (!any) return SLUICE_OK;
    slc_order_settle_agreement(&s->work, s->in->job);
    return try_order(s, at_most_s, next, forecast);
}

/* Takes over a plan that is faster than the best one, and valid. *is_best tells whether it was; if not, or after an
 * error, `next` stays the caller's. */
static sluice_status keep_best(search *s, slc_plan *next, const slc_forecast *found, slc_plan **plan,
                               slc_forecast *forecast, bool *is_best)
{
    *is_best = false;
    if (found->step_s >= forecast->step_s * (1 - 1e-6)) return SLUICE_OK;
    slc_work_add(s->in->work, SLC_WORK_CHECKED, slc_plan_length(next));
    sluice_status status = slc_plan_validate(s->in->job, next);
    if (status) return status == SLUICE_ERR_FORMAT ? SLUICE_OK : status; /* an invalid plan is none to take */
    status = slc_plan_find_bound(next, s->in->work);
    if (status) return status;
    slc_plan_destroy(*plan);
    *plan = next;
    *forecast = *found;
    *is_best = true;
    return SLUICE_OK;
}

sluice_status slc_search_order(const slc_scheduling *in, const slc_scheduler *scheduler,
                               const slc_search_options *options, slc_plan **plan, slc_forecast *forecast,
                               uint32_t *tries)
{
    search s = {.in = in,
                .scheduler = scheduler,
                .options = options,
                .places = malloc(((size_t)(*plan)->buffer_count + 1) * sizeof *s.places)};
    sluice_status status = s.places ? go_on_from(&s, *plan, true) : slc_error(SLUICE_ERR_MEMORY, "search");
    double current_s = forecast->step_s;
    uint32_t tried = 0, without_gain = 0, rounds_without_gain = 0;
    for (; !status && tried < options->most_tries && rounds_without_gain < options->rounds; tried++) {
        if (options->until_s > 0 && slc_work_is_over(in->work, options->until_s)) break;
        if (without_gain++ == options->patience) { /* back to the best plan, and warm again */
            without_gain = 0;
            rounds_without_gain++;
            current_s = forecast->step_s;
            status = go_on_from(&s, *plan, true);
            continue;
        }
        slc_plan *next;
        slc_forecast found;
        const double at_most_s = fmax(current_s, forecast->step_s * (1 + tolerance(&s, without_gain)));
        status = try_once(&s, at_most_s, &next, &found);
        if (status || !next) continue;
        current_s = found.step_s;
        bool is_best;
        status = keep_best(&s, next, &found, plan, forecast, &is_best);
        if (status) {
            slc_plan_destroy(next);
            break;
        }
        if (is_best) without_gain = rounds_without_gain = 0;
        status = go_on_from(&s, next, is_best);
    }
    if (tries) *tries = tried;
    slc_order_fini(&s.current);
    slc_order_fini(&s.work);
    slc_plan_destroy(s.walked);
    free(s.places);
    free(s.times);
    free(s.waited);
    return status;
}
