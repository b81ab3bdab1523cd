/* Runs pass after pass until a pass leaves the lanes as it found them; then a step takes as long as that pass. Where
 * steps draw their layers, each draw has a pass, and a step takes their mean. */
#include "sched/simulate/simulate.h"

#include "lib/base/status.h"
#include "sched/simulate/draws.h"
#include "sched/simulate/lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_PASSES = 2, MOST_PASSES = 40, DRAWN_PASSES = 20, CYCLE = 2 };

/* The state at the end of a pass's compute, as far as the following passes depend on it. */
typedef struct {
    int64_t opened, over; /* operations, beyond those of the passes so far */
    double left_s[SLC_OPEN_OPERATIONS], unmet_s[SLC_OPEN_OPERATIONS];
} leftover;

typedef struct {
    slc_simulated_lanes lanes;
    uint32_t passes;                     /* passes that have run */
    uint32_t counted;                    /* the last of them, over which means are taken, */
    slc_lane_sums from, to;              /* from the sums before them to those after them */
    slc_lane_sums sums[MOST_PASSES + 1]; /* before each pass, and after the last; only the latest ones are kept */
    leftover leftovers[CYCLE + 1];       /* after the latest passes, newest first */
} simulation;

static leftover leftover_after(const slc_simulated_lanes *lanes, uint32_t passes)
{
    int64_t before = (int64_t)passes * lanes->operation_count;
    leftover left = {.opened = lanes->operations_opened - before, .over = lanes->operations_over - before};
    for (int64_t i = lanes->operations_over; i < lanes->operations_opened; i++) {
        const slc_open_operation *open = &lanes->open[i % SLC_OPEN_OPERATIONS];
        left.left_s[i - lanes->operations_over] = open->ended ? 0 : open->left_s;
        left.unmet_s[i - lanes->operations_over] = open->ended ? 0 : fmax(open->met_s - lanes->now_s, 0);
    }
    return left;
}

static bool same_leftover(const leftover *a, const leftover *b, double tolerance_s)
{
    if (a->opened != b->opened || a->over != b->over) return false;
    for (int i = 0; i < SLC_OPEN_OPERATIONS; i++)
        if (fabs(a->left_s[i] - b->left_s[i]) > tolerance_s || fabs(a->unmet_s[i] - b->unmet_s[i]) > tolerance_s)
            return false;
    return true;
}

/* True if the state after a pass had gone past all late items. The first pass lacks its late items, so only such a
 * state tells of later passes. */
static bool is_past_late(const simulation *s, const leftover *left)
{
    int64_t end = 0;
    for (uint32_t o = 0; o < s->lanes.operation_count; o++)
        if (s->lanes.operations[o].late) end = (int64_t)o + 1;
    return left->opened + (int64_t)s->lanes.operation_count >= end;
}

/* Returns after how many passes the lanes' state repeats; 0: not yet. */
static uint32_t cycle_of(const simulation *s)
{
    double tolerance_s = 1e3 * s->lanes.tiny_s;
    for (uint32_t length = 1; length <= CYCLE && length + 1 <= s->passes; length++)
        if ((length + 1 < s->passes || is_past_late(s, &s->leftovers[length])) &&
            same_leftover(&s->leftovers[0], &s->leftovers[length], tolerance_s))
            return length;
    return 0;
}

/* Stores sums and state after a pass, dropping the oldest sums when there is no room. */
static void keep_state(simulation *s)
{
    if (s->passes > MOST_PASSES) memmove(s->sums, s->sums + 1, MOST_PASSES * sizeof *s->sums);
    s->sums[s->passes > MOST_PASSES ? MOST_PASSES : s->passes] = s->lanes.sums;
    memmove(s->leftovers + 1, s->leftovers, CYCLE * sizeof *s->leftovers);
    s->leftovers[0] = leftover_after(&s->lanes, s->passes);
}

static sluice_status run_pass(simulation *s)
{
    sluice_status status = slc_simulated_lanes_run(&s->lanes, ((int64_t)s->passes + 1) * s->lanes.computed_count, 0);
    s->passes += !status;
    return status;
}

/* Runs a first pass, which only leaves the lanes as a step leaves them, and then one pass for each draw; only these
 * count. */
static sluice_status run_draws(simulation *s, uint32_t draws)
{
    sluice_status status = run_pass(s);
    s->from = s->lanes.sums;
    while (!status && s->passes <= draws) status = run_pass(s);
    s->to = s->lanes.sums;
    s->counted = draws;
    return status;
}

static sluice_status run_until_steady(simulation *s, const slc_simulation *options, bool *steady)
{
    bool drawn = options->spread > 0;
    uint32_t most = options->passes ? options->passes : drawn ? DRAWN_PASSES : MOST_PASSES;
    if (most < FEWEST_PASSES) most = FEWEST_PASSES;
    while (s->passes < most) {
        sluice_status status = run_pass(s);
        if (status) return status;
        keep_state(s);
        s->counted = drawn ? 0 : cycle_of(s);
        if (s->passes >= FEWEST_PASSES && s->counted) {
            *steady = true;
            return SLUICE_OK;
        }
    }
    s->counted = s->passes / 2 < MOST_PASSES ? s->passes / 2 : MOST_PASSES;
    return SLUICE_OK;
}

static sluice_status run_passes(simulation *s, const slc_simulation *options, bool *steady)
{
    *steady = false;
    if (options->draws > 1) return run_draws(s, options->draws);
    sluice_status status = run_until_steady(s, options, steady);
    const uint32_t last = s->passes < MOST_PASSES ? s->passes : MOST_PASSES;
    s->to = s->sums[last];
    s->from = s->sums[last - s->counted];
    return status;
}

static uint64_t highest_end(const slc_plan *plan)
{
    uint64_t highest = 0;
    for (uint32_t i = 0; i < plan->static_count + plan->train.claim_count; i++) {
        const slc_claim *claim =
            i < plan->static_count ? &plan->statics[i] : &plan->train.claims[i - plan->static_count];
        uint64_t end = plan->buffers[claim->buffer].offset + claim->end_byte;
        if (end > highest) highest = end;
    }
    return highest;
}

static slc_forecast summarise(const simulation *s, const slc_plan *plan, bool steady)
{
    const slc_lane_sums *to = &s->to, *from = &s->from;
    double n = s->counted;
    slc_forecast f = {.exposed_s = (to->waited_s - from->waited_s) / n,
                      .compute_s = (to->compute_s - from->compute_s) / n,
                      .outside_s = (to->outside_s - from->outside_s) / n,
                      .communication_s = (to->communication_s - from->communication_s) / n,
                      .update_s = (to->update_s - from->update_s) / n,
                      .peak_bytes = highest_end(plan),
                      .passes = s->passes,
                      .steady = steady};
    f.step_s = f.compute_s + f.exposed_s + f.outside_s;
    f.exposed_s = fmax(f.exposed_s, 0); /* the difference of two sums may be a rounding error below 0 */
    return f;
}

static double first_start(const slc_program *program, const slc_item_times *times)
{
    for (uint32_t i = 0; i < program->item_count; i++)
        if (slc_on_compute_lane(&program->items[i])) return times[i].start_s;
    return 0;
}

/* Runs the operations of the last pass to their end, since they run while the next pass computes, and writes the times
 * of that pass. */
static sluice_status finish_items(simulation *s, const slc_program *program, slc_item_times *items)
{
    slc_simulated_lanes *lanes = &s->lanes;
    lanes->last_recorded = s->passes - 1;
    sluice_status status = slc_simulated_lanes_run(lanes, 0, (int64_t)s->passes * lanes->operation_count);
    if (status) return status;
    const slc_item_times *times = lanes->record[(s->passes - 1) % 2];
    double start_s = first_start(program, times);
    for (uint32_t i = 0; i < program->item_count; i++)
        items[i] = (slc_item_times){times[i].open_s - start_s, times[i].start_s - start_s, times[i].end_s - start_s,
                                    times[i].over_s - start_s};
    return SLUICE_OK;
}

static sluice_status simulate_passes(simulation *s, const slc_plan *plan, const slc_simulation *options,
                                     slc_forecast *out, slc_item_times *items)
{
    bool steady;
    slc_item_times *room = NULL;
    if (items) {
        size_t count = plan->train.item_count;
        room = calloc(2 * count + 1, sizeof *room);
        if (!room) return slc_error(SLUICE_ERR_MEMORY, "times of %zu items", count);
        s->lanes.record[0] = room;
        s->lanes.record[1] = room + count;
    }
    sluice_status status = run_passes(s, options, &steady);
    slc_work_add(options->work, SLC_WORK_SIMULATED, (s->passes + 1.0) * plan->train.item_count);
    if (!status) *out = summarise(s, plan, steady);
    if (!status && items) status = finish_items(s, &plan->train, items);
    free(room);
    return status;
}

static sluice_status simulate(const slc_job *job, const slc_times *times, const slc_plan *plan,
                              const slc_simulation *options, slc_forecast *out, slc_item_times *items)
{
    simulation s = {0};
    sluice_status status = slc_simulated_lanes_init(&s.lanes, job, times, plan, options);
    if (status) return status;
    status = simulate_passes(&s, plan, options, out, items);
    slc_simulated_lanes_fini(&s.lanes);
    return status;
}

/* Stretches the times of a pass in which each item takes its mean to the mean step. */
static void stretch(slc_item_times *items, uint32_t count, double by)
{
    for (uint32_t i = 0; i < count; i++)
        items[i] =
            (slc_item_times){by * items[i].open_s, by * items[i].start_s, by * items[i].end_s, by * items[i].over_s};
}

static sluice_status simulate_draws(const slc_job *job, const slc_times *times, const slc_plan *plan,
                                    const slc_simulation *options, slc_forecast *out, slc_item_times *items)
{
    slc_forecast mean;
    slc_simulation drawn = *options;
    drawn.draws = options->few_draws ? SLC_DRAWS_FEW : SLC_DRAWS;
    bool *left_out = malloc(drawn.draws * ((size_t)job->layer_count + 1));
    if (!left_out) return slc_error(SLUICE_ERR_MEMORY, "%u draws of layers", drawn.draws);
    slc_draws_make(job, times->keeps, drawn.draws, options->few_draws ? SLC_DRAWS_FEW_SEED : SLC_DRAWS_SEED, left_out);
    drawn.left_out = left_out;
    sluice_status status = simulate(job, times, plan, &drawn, out, NULL);
    if (!status && items) status = simulate(job, times, plan, options, &mean, items);
    if (!status && items) stretch(items, plan->train.item_count, mean.step_s > 0 ? out->step_s / mean.step_s : 1);
    free(left_out);
    return status;
}

sluice_status slc_simulate_items(const slc_job *job, const slc_times *times, const slc_plan *plan,
                                 const slc_simulation *options, slc_forecast *out, slc_item_times *items)
{
    static const slc_simulation exact = {0};
    if (!options) options = &exact;
    return times->keeps && !options->left_out ? simulate_draws(job, times, plan, options, out, items)
                                              : simulate(job, times, plan, options, out, items);
}

sluice_status slc_simulate(const slc_job *job, const slc_times *times, const slc_plan *plan,
                           const slc_simulation *options, slc_forecast *out)
{
    return slc_simulate_items(job, times, plan, options, out, NULL);
}
