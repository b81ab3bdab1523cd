/* Spans of claims become steps up and down, summed from left to right. The highest address is found by painting: the
 * highest claims first, each onto the points that have no colour yet. */
#include "sched/simulate/memory_series.h"

#include "lib/base/status.h"
#include "lib/memory/category.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    double at_s;
    const slc_claim *claim;
    bool begins;
} event;

typedef struct {
    uint64_t end;
    size_t first, last; /* points [first, last) */
} painted;

static uint64_t end_address(const slc_plan *plan, const slc_claim *claim)
{
    return plan->buffers[claim->buffer].offset + claim->end_byte;
}

static int by_time(const void *a, const void *b)
{
    const event *x = a, *y = b;
    return (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

static int by_end(const void *a, const void *b)
{
    const painted *x = a, *y = b;
    return (x->end < y->end) - (x->end > y->end);
}

static void add_claim(const slc_plan *plan, slc_memory_point *point, const slc_claim *claim, bool begins)
{
    uint64_t bytes = claim->end_byte - claim->first_byte;
    uint64_t *live = &point->live[slc_memory_category_of(plan->buffers[claim->buffer].kind)];
    *live = begins ? *live + bytes : *live - bytes;
}

static void start_series(const slc_plan *plan, double begin_s, slc_memory_series *out)
{
    out->points[0] = (slc_memory_point){.at_s = begin_s};
    out->count = 1;
    for (uint32_t s = 0; s < plan->static_count; s++) {
        add_claim(plan, &out->points[0], &plan->statics[s], true);
        uint64_t end = end_address(plan, &plan->statics[s]);
        if (end > out->points[0].highest) out->points[0].highest = end;
    }
}

static void sum_events(const slc_plan *plan, const event *events, size_t count, double tiny_s, slc_memory_series *out)
{
    for (size_t e = 0; e < count; e++) {
        slc_memory_point *last = &out->points[out->count - 1];
        if (events[e].at_s > last->at_s + tiny_s) {
            out->points[out->count] = *last;
            last = &out->points[out->count++];
            last->at_s = events[e].at_s;
        }
        add_claim(plan, last, events[e].claim, events[e].begins);
    }
}

/* The index of the point that holds a moment. */
static size_t point_at(const slc_memory_series *series, double at_s, double tiny_s)
{
    size_t low = 0, high = series->count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (series->points[middle].at_s <= at_s + tiny_s)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The first point from `point` on that has no colour yet; `next` links each point to a later one. */
static size_t unpainted(size_t *next, size_t point)
{
    while (next[point] != point) point = next[point] = next[next[point]];
    return point;
}

static void paint(painted *areas, size_t count, size_t *next, slc_memory_series *out)
{
    for (size_t p = 0; p <= out->count; p++) next[p] = p;
    if (count) qsort(areas, count, sizeof *areas, by_end);
    for (size_t a = 0; a < count; a++)
        for (size_t p = unpainted(next, areas[a].first); p < areas[a].last; p = unpainted(next, p)) {
            if (areas[a].end > out->points[p].highest) out->points[p].highest = areas[a].end;
            next[p] = p + 1;
        }
}

static size_t list_events(const slc_claim_span *spans, size_t count, double begin_s, event *events)
{
    size_t listed = 0;
    for (size_t s = 0; s < count; s++) {
        if (!(spans[s].to_s > begin_s && spans[s].to_s > spans[s].from_s)) continue;
        events[listed++] = (event){fmax(spans[s].from_s, begin_s), spans[s].claim, true};
        events[listed++] = (event){spans[s].to_s, spans[s].claim, false};
    }
    if (listed) qsort(events, listed, sizeof *events, by_time);
    return listed;
}

sluice_status slc_memory_series_of(const slc_plan *plan, const slc_claim_span *spans, size_t count, double begin_s,
                                   double tiny_s, slc_memory_series *out)
{
    event *events = malloc((2 * count + 1) * sizeof *events);
    painted *areas = malloc((count + 1) * sizeof *areas);
    size_t *next = malloc((2 * count + 2) * sizeof *next), listed, areas_count = 0;
    *out = (slc_memory_series){.points = malloc((2 * count + 1) * sizeof *out->points)};
    sluice_status status = SLUICE_OK;
    if (!events || !areas || !next || !out->points) {
        status = slc_error(SLUICE_ERR_MEMORY, "memory over time of %zu claims", count);
        slc_memory_series_fini(out);
        goto free_all;
    }
    start_series(plan, begin_s, out);
    listed = list_events(spans, count, begin_s, events);
    sum_events(plan, events, listed, tiny_s, out);
    for (size_t s = 0; s < count; s++) {
        if (!(spans[s].to_s > begin_s && spans[s].to_s > spans[s].from_s)) continue;
        areas[areas_count++] = (painted){end_address(plan, spans[s].claim), point_at(out, spans[s].from_s, tiny_s),
                                         point_at(out, spans[s].to_s, tiny_s)};
    }
    paint(areas, areas_count, next, out);

free_all:
    free(next);
    free(areas);
    free(events);
    return status;
}

void slc_memory_series_fini(slc_memory_series *series)
{
    free(series->points);
    *series = (slc_memory_series){0};
}

/* Cuts [from_s, to_s) at the borders of steps, moves each piece to the step [0, step_s), and appends it to `spans`.
 * Returns the number of pieces. `spans` NULL: only counts. */
static size_t fold(const slc_claim *claim, double from_s, double to_s, double step_s, slc_claim_span *spans)
{
    size_t count = 0;
    double tiny_s = 1e-9 * step_s, start_s = floor((from_s + tiny_s) / step_s) * step_s;
    for (; to_s > start_s + tiny_s; start_s += step_s) {
        double first_s = fmax(from_s - start_s, 0), end_s = fmin(to_s - start_s, step_s);
        if (end_s <= first_s) continue;
        if (spans) spans[count] = (slc_claim_span){claim, first_s, end_s};
        count++;
    }
    return count;
}

static double released_s(const slc_program *program, const slc_item_times *items, const slc_claim *claim, double step_s)
{
    return items[claim->to].over_s + (slc_claim_wraps(program, claim) ? step_s : 0);
}

static size_t fold_all(const slc_program *program, const slc_item_times *items, double step_s, slc_claim_span *spans)
{
    size_t count = 0;
    for (uint32_t c = 0; c < program->claim_count; c++) {
        const slc_claim *claim = &program->claims[c];
        double to_s = released_s(program, items, claim, step_s);
        count += fold(claim, items[claim->from].open_s, to_s, step_s, spans ? spans + count : NULL);
    }
    return count;
}

sluice_status slc_simulate_memory(const slc_plan *plan, const slc_item_times *items, double step_s,
                                  slc_memory_series *out)
{
    size_t count = step_s > 0 ? fold_all(&plan->train, items, step_s, NULL) : 0;
    slc_claim_span *spans = malloc((count + 1) * sizeof *spans);
    *out = (slc_memory_series){0};
    if (!spans) return slc_error(SLUICE_ERR_MEMORY, "memory over time of %zu claims", count);
    if (step_s > 0) fold_all(&plan->train, items, step_s, spans);
    sluice_status status = slc_memory_series_of(plan, spans, count, 0, 1e-9 * step_s, out);
    while (out->count > 1 && out->points[out->count - 1].at_s >= step_s * (1 - 1e-9)) out->count--;
    free(spans);
    return status;
}

void slc_simulate_held(const slc_plan *plan, const slc_item_times *items, double step_s, double at_s, uint32_t *copies)
{
    const slc_program *program = &plan->train;
    for (uint32_t c = 0; c < program->claim_count; c++) {
        const slc_claim *claim = &program->claims[c];
        double from_s = items[claim->from].open_s, to_s = released_s(program, items, claim, step_s);
        copies[c] = 0;
        /* Pass k holds it in [from_s + k step_s, to_s + k step_s). */
        for (double k = ceil((at_s - to_s) / step_s); from_s + k * step_s <= at_s; k++)
            copies[c] += to_s + k * step_s > at_s;
    }
}
