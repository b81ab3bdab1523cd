/* From one event to the next: start what can start, find who ends first, let everybody advance until then. */
#include "sched/simulated_lanes.h"

#include "lib/base/random.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>

static const int32_t nothing = INT32_MIN / 2;

/* ---- Making a program ready ---- */

static int32_t later(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static double duration(const slc_job *job, const slc_times *times, const slc_plan *plan, const slc_item *item)
{
    if (item->kind == SLC_ITEM_SLOT) return slc_slot_s(job, times, plan->recompute, item->slot);
    return slc_item_s(job, times, plan->strategies, item);
}

/* `place`: of each item in its lane. `step_end`: the count of operations at which the step before has ended. */
static void set_waits(const slc_simulated_lanes *l, const slc_program *program, const uint32_t *place, int32_t step_end,
                      slc_lane_item *out)
{
    const slc_item *item = &program->items[out->item];
    int32_t late = nothing;
    out->slots = 0;
    out->operations = step_end;
    for (uint32_t a = 0; a < item->after_count; a++) {
        const slc_after *after = &item->after[a];
        const slc_item *before = &program->items[after->item];
        bool slot = before->kind == SLC_ITEM_SLOT;
        int32_t count = (int32_t)place[after->item] + 1;
        if (after->previous) count -= (int32_t)(slot ? l->slot_count : l->operation_count);
        int32_t *wait = slot ? &out->slots : before->late && !after->previous ? &late : &out->operations;
        *wait = later(*wait, count);
    }
    out->operations_at_first = out->operations;
    out->operations = later(out->operations, late);
}

static void fill(slc_simulated_lanes *l, const slc_job *job, const slc_times *times, const slc_plan *plan,
                 uint32_t *place)
{
    const slc_program *program = &plan->train;
    int32_t step_end = nothing;
    double sum_s = 0;
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        bool slot = item->kind == SLC_ITEM_SLOT;
        place[i] = slot ? l->slot_count++ : l->operation_count++;
        slc_lane_item *made = slot ? &l->slots[place[i]] : &l->operations[place[i]];
        *made = (slc_lane_item){.s = duration(job, times, plan, item),
                                .item = i,
                                .on_thread = slc_is_on_thread(item->kind),
                                .late = item->late};
        sum_s += made->s;
        if (item->kind == SLC_ITEM_AGREE || item->late) step_end = later(step_end, (int32_t)place[i] + 1);
    }
    if (step_end != nothing) step_end -= (int32_t)l->operation_count;
    l->tiny_s = 1e-12 * sum_s;
    for (uint32_t s = 0; s < l->slot_count; s++) set_waits(l, program, place, step_end, &l->slots[s]);
    for (uint32_t o = 0; o < l->operation_count; o++) set_waits(l, program, place, step_end, &l->operations[o]);
}

sluice_status slc_simulated_lanes_init(slc_simulated_lanes *lanes, const slc_job *job, const slc_times *times,
                                       const slc_plan *plan, const slc_simulation *options)
{
    const slc_link *link = &times->link;
    uint32_t slots = 0, items = plan->train.item_count;
    for (uint32_t i = 0; i < items; i++) slots += plan->train.items[i].kind == SLC_ITEM_SLOT;
    *lanes = (slc_simulated_lanes){.options = options,
                                   .beside_slot = 1 / link->sigma,
                                   .beside_communication = 1 - link->kappa / link->sigma,
                                   .one_resource = link->thread_moves,
                                   .last_recorded = UINT64_MAX};
    if (!slots) return slc_error(SLUICE_ERR_FORMAT, "simulating: the plan has no slots");
    uint32_t *place = malloc((items + 1) * sizeof *place);
    lanes->slots = malloc(slots * sizeof *lanes->slots);
    lanes->operations = malloc((items - slots + 1) * sizeof *lanes->operations);
    if (!place || !lanes->slots || !lanes->operations) {
        free(place);
        slc_simulated_lanes_fini(lanes);
        return slc_error(SLUICE_ERR_MEMORY, "simulating %u items", items);
    }
    fill(lanes, job, times, plan, place);
    free(place);
    return SLUICE_OK;
}

void slc_simulated_lanes_fini(slc_simulated_lanes *lanes)
{
    free(lanes->slots);
    free(lanes->operations);
    lanes->slots = lanes->operations = NULL;
}

/* ---- Recording ---- */

static slc_item_times *times_of(slc_simulated_lanes *l, uint64_t pass, uint32_t item)
{
    return l->record[0] && pass <= l->last_recorded ? &l->record[pass % 2][item] : NULL;
}

/* ---- Starting and ending ---- */

static double drawn(const slc_simulated_lanes *l, const slc_lane_item *item, uint64_t pass)
{
    if (!(l->options->spread > 0)) return item->s;
    uint32_t words[4];
    slc_random_block(l->options->seed, pass, item->item, words);
    return item->s * (1 + l->options->spread * (2 * (words[0] / 4294967295.0) - 1));
}

static bool waits_are_over(const slc_simulated_lanes *l, const slc_lane_item *item, uint64_t pass)
{
    int32_t operations = pass ? item->operations : item->operations_at_first;
    return l->slots_over >= (int64_t)pass * l->slot_count + item->slots &&
           l->operations_over >= (int64_t)pass * l->operation_count + operations;
}

static bool start_slot(slc_simulated_lanes *l)
{
    const slc_lane_item *slot = &l->slots[l->next_slot];
    if (l->slot_runs || !waits_are_over(l, slot, l->slot_pass)) return false;
    slc_item_times *times = times_of(l, l->slot_pass, slot->item);
    if (times) times->open_s = times->start_s = l->now_s;
    l->sums.waited_s += l->now_s - l->last_slot_end_s;
    l->slot_left_s = drawn(l, slot, l->slot_pass);
    l->slot_runs = true;
    return true;
}

static void end_slot(slc_simulated_lanes *l)
{
    slc_item_times *times = times_of(l, l->slot_pass, l->slots[l->next_slot].item);
    if (times) times->end_s = times->over_s = l->now_s;
    l->slot_runs = false;
    l->sums.end_s = l->last_slot_end_s = l->now_s;
    l->slots_over++;
    if (++l->next_slot < l->slot_count) return;
    l->next_slot = 0;
    l->slot_pass++;
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
        (slc_open_operation){operation, left_out ? 0 : drawn(l, operation, pass), left_out, left_out, pass};
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

/* The operations that the link and the thread work on; with one resource both are one and `thread` is NULL. */
typedef struct {
    slc_open_operation *link, *thread;
} running;

static running find_running(slc_simulated_lanes *l)
{
    running r = {0};
    for (int64_t i = l->operations_over; i < l->operations_opened; i++) {
        slc_open_operation *open = &l->open[i % SLC_OPEN_OPERATIONS];
        slc_open_operation **place = open->item->on_thread && !l->one_resource ? &r.thread : &r.link;
        if (!open->ended && !*place) *place = open;
    }
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

/* How long until the first of them ends; infinity: nobody runs. */
static double until_next(const slc_simulated_lanes *l, const running *r, double slot_speed, double speed)
{
    double s = INFINITY;
    if (l->slot_runs && l->slot_left_s <= l->tiny_s) return 0;
    if (l->slot_runs && slot_speed > 0) s = l->slot_left_s / slot_speed;
    if (r->link) s = fmin(s, r->link->left_s / speed);
    if (r->thread) s = fmin(s, r->thread->left_s / speed);
    return s;
}

/* To the next end. False: nothing runs. */
static bool advance(slc_simulated_lanes *l)
{
    running r = find_running(l);
    bool communication = r.link || r.thread;
    double slot_speed = communication ? l->beside_communication : 1, speed = l->slot_runs ? l->beside_slot : 1;
    double s = until_next(l, &r, slot_speed, speed);
    if (s == (double)INFINITY) return false;
    note_start(l, r.link);
    note_start(l, r.thread);
    l->now_s += s;
    if (r.link) {
        *(r.link->item->on_thread ? &l->sums.update_s : &l->sums.communication_s) += s;
        advance_operation(l, r.link, s * speed);
    }
    if (r.thread) {
        l->sums.update_s += s;
        advance_operation(l, r.thread, s * speed);
    }
    if (!l->slot_runs) return true;
    l->sums.compute_s += s;
    l->slot_left_s -= s * slot_speed;
    if (l->slot_left_s <= l->tiny_s) end_slot(l);
    return true;
}

sluice_status slc_simulated_lanes_run(slc_simulated_lanes *l, int64_t slots, int64_t operations)
{
    while (l->slots_over < slots || l->operations_over < operations) {
        while (close_operation(l) || open_operation(l) || start_slot(l)) continue;
        if (l->slots_over >= slots && l->operations_over >= operations) break;
        if (!advance(l))
            return slc_error(SLUICE_ERR_FORMAT,
                             "simulating: nothing can go on at item %u, nor at item %u; the plan's waits contradict "
                             "its order",
                             l->slots[l->next_slot].item,
                             l->operation_count ? l->operations[l->next_operation].item : SLC_NONE);
    }
    return SLUICE_OK;
}
