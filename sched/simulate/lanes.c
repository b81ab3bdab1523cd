/* Goes from one event to the next: starts every item that can start, finds the one that ends first, and advances all of
 * them until then. simulate_test.c covers this file. */
#include "sched/simulate/lanes.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "lib/plan/left_out.h"

#include <math.h>
#include <stdlib.h>

static const int32_t nothing = INT32_MIN / 2;

/* ---- Preparing a program ---- */

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* Returns true if the item is one of a micro-batch that no step runs. */
static bool is_left_out(const slc_job *job, const slc_simulation *options, const slc_item *item)
{
    return options->micro_batches && slc_is_left_out(item, options->micro_batches, job->micro_batches);
}

/* The probability with which steps keep the item. */
static double keeps(const slc_job *job, const slc_times *times, const slc_item *item)
{
    if (item->kind == SLC_ITEM_SLOT) return times->keeps ? times->keeps[slc_slot_layer(job, item->slot)] : 1;
    return item->unit == SLC_NONE ? 1 : slc_unit_keeps(&job->units[item->unit], times->keeps);
}

static double duration(const slc_job *job, const slc_times *times, const slc_plan *plan, const slc_simulation *options,
                       const slc_item *item)
{
    if (is_left_out(job, options, item)) return 0;
    const double mean = options->left_out ? 1 : keeps(job, times, item);
    if (item->kind == SLC_ITEM_SLOT) return mean * slc_slot_s(job, times, plan->recompute, item->slot);
    double s = slc_item_s(job, times, plan->strategies, item);
    if (!options->latency_once || !item->first_block) return mean * s;
    return mean * fmax(s - slc_transfer_s(job, times, item->kind, 0), 0); /* one that counts nothing has no latency */
}

/* Turns an item's waits into counts. `place` is each item's position in its lane; `step_end` is the count of operations
 * at which the previous step has ended. */
static void set_waits(const slc_simulated_lanes *l, const slc_program *program, const uint32_t *place, int32_t step_end,
                      slc_lane_item *out)
{
    const slc_item *item = &program->items[out->item];
    int32_t late = nothing, late_computed = nothing;
    out->computed = 0;
    out->operations = step_end;
    for (uint32_t a = 0; a < item->after_count; a++) {
        const slc_after *after = &item->after[a];
        const slc_item *before = &program->items[after->item];
        bool computed = slc_on_compute_lane(before), at_first = !before->late || after->previous;
        int32_t count = (int32_t)place[after->item] + 1;
        if (after->previous) count -= (int32_t)(computed ? l->computed_count : l->operation_count);
        int32_t *wait = computed ? at_first ? &out->computed : &late_computed : at_first ? &out->operations : &late;
        *wait = larger(*wait, count);
    }
    out->operations_at_first = out->operations;
    out->operations = larger(out->operations, late);
    out->computed_at_first = out->computed;
    out->computed = larger(out->computed, late_computed);
}

static void fill_lanes(slc_simulated_lanes *l, const slc_job *job, const slc_times *times, const slc_plan *plan,
                       uint32_t *place)
{
    const slc_program *program = &plan->train;
    int32_t step_end = nothing;
    double sum_s = 0;
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        bool computed = slc_on_compute_lane(item);
        place[i] = computed ? l->computed_count++ : l->operation_count++;
        slc_lane_item *made = computed ? &l->computed[place[i]] : &l->operations[place[i]];
        *made = (slc_lane_item){.s = duration(job, times, plan, l->options, item),
                                .item = i,
                                .on_thread = slc_is_on_thread(item->kind),
                                .alone = slc_is_on_thread(item->kind) || is_left_out(job, l->options, item),
                                .late = item->late};
        sum_s += made->s;
        if (!computed && (item->kind == SLC_ITEM_AGREE || item->late))
            step_end = larger(step_end, (int32_t)place[i] + 1);
    }
    const uint32_t items = l->computed_count;
    if (times->outside_s > 0)
        l->computed[l->computed_count++] = (slc_lane_item){
            .s = times->outside_s, .item = SLC_NONE, .operations = step_end, .operations_at_first = step_end};
    if (step_end != nothing) step_end -= (int32_t)l->operation_count;
    l->tiny_s = 1e-12 * (sum_s + times->outside_s);
    for (uint32_t c = 0; c < items; c++) set_waits(l, program, place, step_end, &l->computed[c]);
    for (uint32_t o = 0; o < l->operation_count; o++) set_waits(l, program, place, step_end, &l->operations[o]);
}

sluice_status slc_simulated_lanes_init(slc_simulated_lanes *lanes, const slc_job *job, const slc_times *times,
                                       const slc_plan *plan, const slc_simulation *options)
{
    const slc_link *link = &times->link;
    uint32_t computed = 0, items = plan->train.item_count;
    for (uint32_t i = 0; i < items; i++) computed += slc_on_compute_lane(&plan->train.items[i]);
    *lanes = (slc_simulated_lanes){.options = options,
                                   .job = job,
                                   .program = &plan->train,
                                   .beside_slot = 1 / link->sigma,
                                   .beside_communication = 1 - link->kappa / link->sigma,
                                   .beside_thread =
                                       1 - fmin(fmax(link->update_kappa, link->kappa), link->sigma) / link->sigma,
                                   .one_resource = link->thread_moves,
                                   .late_s = times->late_s,
                                   .last_recorded = UINT64_MAX};
    if (!computed) return slc_error(SLUICE_ERR_FORMAT, "simulating: the plan has no slots");
    uint32_t *place = malloc((items + 1) * sizeof *place);
    lanes->computed = malloc((computed + 1) * sizeof *lanes->computed);
    lanes->operations = malloc((items - computed + 1) * sizeof *lanes->operations);
    if (!place || !lanes->computed || !lanes->operations) {
        free(place);
        slc_simulated_lanes_fini(lanes);
        return slc_error(SLUICE_ERR_MEMORY, "simulating %u items", items);
    }
    fill_lanes(lanes, job, times, plan, place);
    free(place);
    return SLUICE_OK;
}

void slc_simulated_lanes_fini(slc_simulated_lanes *lanes)
{
    free(lanes->computed);
    free(lanes->operations);
    lanes->computed = lanes->operations = NULL;
}

/* ---- Recording ---- */

static slc_item_times *times_of(slc_simulated_lanes *l, uint64_t pass, uint32_t item)
{
    return l->record[0] && item != SLC_NONE && pass <= l->last_recorded ? &l->record[pass % 2][item] : NULL;
}

/* ---- Starting and ending ---- */

/* Returns true if the item's step leaves it out, by its layers. A late item is of the step before the pass. */
static bool is_skipped(const slc_simulated_lanes *l, const slc_lane_item *item, uint64_t pass)
{
    if (!l->options->left_out || item->item == SLC_NONE || pass < item->late) return false;
    const uint64_t draws = l->options->draws ? l->options->draws : 1;
    const bool *left_out = l->options->left_out + (pass - item->late + draws - 1) % draws * l->job->layer_count;
    const slc_item *of = &l->program->items[item->item];
    if (of->kind == SLC_ITEM_SLOT) return left_out[slc_slot_layer(l->job, of->slot)];
    return of->unit != SLC_NONE && slc_unit_left_out(&l->job->units[of->unit], left_out);
}

static double drawn(const slc_simulated_lanes *l, const slc_lane_item *item, uint64_t pass)
{
    if (is_skipped(l, item, pass)) return 0;
    if (!(l->options->spread > 0)) return item->s;
    uint32_t words[4];
    slc_random_block(l->options->seed, pass, item->item, words);
    return item->s * (1 + l->options->spread * (2 * (words[0] / 4294967295.0) - 1));
}

static bool waits_are_over(const slc_simulated_lanes *l, const slc_lane_item *item, uint64_t pass)
{
    int32_t operations = pass ? item->operations : item->operations_at_first;
    int32_t computed = pass ? item->computed : item->computed_at_first;
    return l->computed_over >= (int64_t)pass * l->computed_count + computed &&
           l->operations_over >= (int64_t)pass * l->operation_count + operations;
}

static void next_computed(slc_simulated_lanes *l)
{
    l->computed_over++;
    if (++l->next_computed < l->computed_count) return;
    l->next_computed = 0;
    l->computed_pass++;
}

static bool start_computed(slc_simulated_lanes *l)
{
    const slc_lane_item *item = &l->computed[l->next_computed];
    bool left_out = item->late && !l->computed_pass;
    if (l->computes || (!left_out && !waits_are_over(l, item, l->computed_pass))) return false;
    slc_item_times *times = times_of(l, l->computed_pass, item->item);
    if (times) *times = (slc_item_times){l->now_s, l->now_s, l->now_s, l->now_s};
    if (left_out) {
        next_computed(l);
        return true;
    }
    l->sums.waited_s += l->now_s - l->last_computed_end_s;
    l->computed_left_s = drawn(l, item, l->computed_pass);
    l->computes = true;
    return true;
}

static void end_computed(slc_simulated_lanes *l)
{
    slc_item_times *times = times_of(l, l->computed_pass, l->computed[l->next_computed].item);
    if (times) times->end_s = times->over_s = l->now_s;
    l->computes = false;
    l->sums.end_s = l->last_computed_end_s = l->now_s;
    next_computed(l);
}

static bool open_operation(slc_simulated_lanes *l)
{
    if (!l->operation_count || l->operations_opened - l->operations_over == SLC_OPEN_OPERATIONS) return false;
    const slc_lane_item *operation = &l->operations[l->next_operation];
    uint64_t pass = l->operation_pass;
    bool left_out = operation->late && !pass;
    if (!left_out && !waits_are_over(l, operation, pass)) return false;
    slc_item_times *times = times_of(l, pass, operation->item);
    if (times) *times = (slc_item_times){l->now_s, l->now_s, l->now_s, l->now_s};
    l->open[l->operations_opened++ % SLC_OPEN_OPERATIONS] =
        (slc_open_operation){.item = operation,
                             .left_s = left_out ? 0 : drawn(l, operation, pass),
                             .met_s = l->now_s + (operation->alone || is_skipped(l, operation, pass) ? 0 : l->late_s),
                             .started = left_out,
                             .ended = left_out,
                             .pass = pass};
    if (++l->next_operation < l->operation_count) return true;
    l->next_operation = 0;
    l->operation_pass++;
    return true;
}

static bool close_operation(slc_simulated_lanes *l)
{
    const slc_open_operation *first = &l->open[l->operations_over % SLC_OPEN_OPERATIONS];
    if (l->operations_over == l->operations_opened || !first->ended) return false;
    slc_item_times *times = times_of(l, first->pass, first->item->item);
    if (times) times->over_s = l->now_s;
    l->operations_over++;
    return true;
}

/* ---- Time ---- */

/* The operations that the link and the thread work on; if these are one resource, `thread` is NULL. */
typedef struct {
    slc_open_operation *link, *thread;
    bool late; /* the one on the link waits for other ranks */
} running;

static running find_running(slc_simulated_lanes *l)
{
    running r = {0};
    for (int64_t i = l->operations_over; i < l->operations_opened; i++) {
        slc_open_operation *open = &l->open[i % SLC_OPEN_OPERATIONS];
        slc_open_operation **place = open->item->on_thread && !l->one_resource ? &r.thread : &r.link;
        if (!open->ended && !*place) *place = open;
    }
    r.late = r.link && r.link->met_s > l->now_s + l->tiny_s;
    return r;
}

static void note_start(slc_simulated_lanes *l, slc_open_operation *operation)
{
    if (!operation || operation->started) return;
    operation->started = true;
    slc_item_times *times = times_of(l, operation->pass, operation->item->item);
    if (times) times->start_s = l->now_s;
}

static void advance_operation(slc_simulated_lanes *l, slc_open_operation *operation, double alone_s)
{
    operation->left_s -= alone_s;
    operation->ended = operation->left_s <= l->tiny_s;
    slc_item_times *times = times_of(l, operation->pass, operation->item->item);
    if (times && operation->ended) times->end_s = l->now_s;
}

/* Seconds until the first of them ends; infinity: none is running. */
static double until_next(const slc_simulated_lanes *l, const running *r, double compute_speed, double speed)
{
    double s = INFINITY;
    if (l->computes && l->computed_left_s <= l->tiny_s) return 0;
    if (l->computes && compute_speed > 0) s = l->computed_left_s / compute_speed;
    if (r->link) s = fmin(s, r->late ? r->link->met_s - l->now_s : r->link->left_s / speed);
    if (r->thread) s = fmin(s, r->thread->left_s / speed);
    return s;
}

/* Advances to the next end. False: nothing is running. */
static bool advance(slc_simulated_lanes *l)
{
    running r = find_running(l);
    bool communication = (r.link && !r.late) || r.thread;
    double compute_speed = r.thread        ? l->beside_thread
                           : communication ? l->beside_communication
                                           : 1,
           speed = l->computes ? l->beside_slot : 1;
    double s = until_next(l, &r, compute_speed, speed);
    if (s == (double)INFINITY) return false;
    if (!r.late) note_start(l, r.link);
    note_start(l, r.thread);
    l->now_s += s;
    if (r.link && !r.late) {
        *(r.link->item->on_thread ? &l->sums.update_s : &l->sums.communication_s) += s;
        advance_operation(l, r.link, s * speed);
    }
    if (r.thread) {
        l->sums.update_s += s;
        advance_operation(l, r.thread, s * speed);
    }
    if (!l->computes) return true;
    *(l->computed[l->next_computed].item == SLC_NONE ? &l->sums.outside_s : &l->sums.compute_s) += s;
    l->computed_left_s -= s * compute_speed;
    if (l->computed_left_s <= l->tiny_s) end_computed(l);
    return true;
}

sluice_status slc_simulated_lanes_run(slc_simulated_lanes *l, int64_t computed, int64_t operations)
{
    while (l->computed_over < computed || l->operations_over < operations) {
        while (close_operation(l) || open_operation(l) || start_computed(l)) continue;
        if (l->computed_over >= computed && l->operations_over >= operations) break;
        if (!advance(l))
            return slc_error(SLUICE_ERR_FORMAT,
                             "simulating: nothing can go on at item %u, nor at item %u; the plan's waits contradict "
                             "its order",
                             l->computed[l->next_computed].item,
                             l->operation_count ? l->operations[l->next_operation].item : SLC_NONE);
    }
    return SLUICE_OK;
}
