/* Memory over time must equal a count of all claims at every moment. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/sched/drawn_plan.h"
#include "sched/simulate/memory_series.h"

#include <math.h>
#include <stdlib.h>

enum { JOBS = 150, PASSES_AROUND = 3 };

static void spans_add_up(void **state)
{
    (void)state;
    slc_buffer buffers[] = {{.kind = SLC_BUFFER_VALUE, .bytes = 100},
                            {.kind = SLC_BUFFER_GRADIENT, .bytes = 50, .offset = 100},
                            {.kind = SLC_BUFFER_ACTIVATION, .bytes = 60, .offset = 120}};
    slc_claim resident = {.buffer = 0, .end_byte = 100};
    slc_claim first_half = {.buffer = 1, .end_byte = 20}, whole = {.buffer = 2, .end_byte = 60};
    slc_plan plan = {.buffers = buffers, .buffer_count = 3, .statics = &resident, .static_count = 1};
    const slc_claim_span spans[] = {{&whole, 3, 5}, {&first_half, 1, 3 - 1e-12}, {&first_half, 4, 6}, {&whole, 7, 7}};
    slc_memory_series series;
    assert_int_equal(slc_memory_series_of(&plan, spans, 4, 2, 1e-9, &series), SLUICE_OK);
    static const struct {
        double at_s;
        uint64_t gradients, activations, highest;
    } wanted[] = {{2, 20, 0, 120}, {3, 0, 60, 180}, {4, 20, 60, 180}, {5, 20, 0, 120}, {6, 0, 0, 100}};
    assert_int_equal(series.count, 5);
    for (size_t p = 0; p < series.count; p++) {
        const slc_memory_point *point = &series.points[p];
        assert_true(fabs(point->at_s - wanted[p].at_s) < 1e-6);
        assert_int_equal(point->live[SLC_MEMORY_VALUES], 100);
        assert_int_equal(point->live[SLC_MEMORY_GRADIENTS], wanted[p].gradients);
        assert_int_equal(point->live[SLC_MEMORY_ACTIVATIONS], wanted[p].activations);
        assert_int_equal(point->highest, wanted[p].highest);
    }
    slc_memory_series_fini(&series);
}

typedef struct {
    uint64_t bytes, highest;
} held;

/* Counts the claims at a moment of the steady state, of all passes that can reach it. */
static held held_at(const slc_plan *plan, const slc_item_times *items, double step_s, double at_s)
{
    held now = {0};
    for (uint32_t s = 0; s < plan->static_count; s++) {
        uint64_t end = plan->buffers[plan->statics[s].buffer].offset + plan->statics[s].end_byte;
        now.bytes += plan->statics[s].end_byte - plan->statics[s].first_byte;
        if (end > now.highest) now.highest = end;
    }
    for (uint32_t c = 0; c < plan->train.claim_count; c++) {
        const slc_claim *claim = &plan->train.claims[c];
        double from_s = items[claim->from].open_s, to_s = items[claim->to].over_s;
        if (slc_claim_wraps(&plan->train, claim)) to_s += step_s;
        for (int pass = -PASSES_AROUND; pass <= PASSES_AROUND; pass++) {
            if (at_s < from_s + pass * step_s || at_s >= to_s + pass * step_s) continue;
            uint64_t end = plan->buffers[claim->buffer].offset + claim->end_byte;
            now.bytes += claim->end_byte - claim->first_byte;
            if (end > now.highest) now.highest = end;
        }
    }
    return now;
}

/* Returns the bytes in use at a time, added up from what slc_simulate_held says. */
static uint64_t bytes_held(const slc_plan *plan, const slc_item_times *items, double step_s, double at_s)
{
    uint32_t *copies = calloc((size_t)plan->train.claim_count + 1, sizeof *copies);
    uint64_t bytes = 0;
    assert_non_null(copies);
    slc_simulate_held(plan, items, step_s, at_s, copies);
    for (uint32_t s = 0; s < plan->static_count; s++) bytes += plan->statics[s].end_byte - plan->statics[s].first_byte;
    for (uint32_t c = 0; c < plan->train.claim_count; c++)
        bytes += copies[c] * (plan->train.claims[c].end_byte - plan->train.claims[c].first_byte);
    free(copies);
    return bytes;
}

static void look_at_memory(drawn_plan *d)
{
    slc_forecast f;
    slc_memory_series series;
    slc_item_times *items = calloc(d->plan->train.item_count + 1, sizeof *items);
    assert_non_null(items);
    assert_int_equal(slc_simulate_items(&d->t.job, &d->times, d->plan, NULL, &f, items), SLUICE_OK);
    assert_int_equal(slc_simulate_memory(d->plan, items, f.step_s, &series), SLUICE_OK);
    assert_true(series.points[0].at_s == 0);
    uint64_t highest = 0;
    for (size_t p = 0; p < series.count; p++) {
        double end_s = p + 1 < series.count ? series.points[p + 1].at_s : f.step_s;
        assert_true(series.points[p].at_s < end_s);
        held wanted = held_at(d->plan, items, f.step_s, (series.points[p].at_s + end_s) / 2);
        uint64_t live = 0;
        for (int c = 0; c < SLC_MEMORY_CATEGORIES; c++) live += series.points[p].live[c];
        assert_int_equal(live, wanted.bytes);
        assert_int_equal(bytes_held(d->plan, items, f.step_s, (series.points[p].at_s + end_s) / 2), wanted.bytes);
        assert_int_equal(series.points[p].highest, wanted.highest);
        assert_true(live <= series.points[p].highest); /* no claims overlap */
        if (wanted.highest > highest) highest = wanted.highest;
    }
    assert_int_equal(highest, f.peak_bytes);
    slc_memory_series_fini(&series);
    free(items);
}

static void a_steady_step_repeats(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, look_at_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_add_up),
        cmocka_unit_test(a_steady_step_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
