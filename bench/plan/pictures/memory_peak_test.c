/* Memory by layer at the peak adds up: to the plan's bytes, to the byte; by category to the series; and no moment of
 * the step has more. Every buffer is charged to its layer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/plan/pictures/memory_peak.h"
#include "lib/plan/profile.h"
#include "tests/support/sched/drawn_plan.h"
#include "sched/planner.h"
#include "sched/study/made_profile.h"

#include <stdlib.h>
#include <string.h>

enum { JOBS = 150 };

static uint64_t sum_of(const slc_memory_column *column)
{
    uint64_t sum = column->unused;
    for (int c = 0; c < SLC_MEMORY_CATEGORIES; c++) sum += column->bytes[c];
    return sum;
}

static uint64_t live_of(const slc_memory_point *point)
{
    uint64_t sum = 0;
    for (int c = 0; c < SLC_MEMORY_CATEGORIES; c++) sum += point->live[c];
    return sum;
}

static void check_peak(const slc_job *job, const slc_times *times, const slc_plan *plan)
{
    slc_forecast f;
    slc_memory_series series;
    slc_memory_peak peak;
    slc_item_times *items = calloc((size_t)plan->train.item_count + 1, sizeof *items);
    assert_non_null(items);
    assert_int_equal(slc_simulate_items(job, times, plan, NULL, &f, items), SLUICE_OK);
    assert_int_equal(slc_simulate_memory(plan, items, f.step_s, &series), SLUICE_OK);
    assert_int_equal(slc_memory_peak_find(job, plan, items, &series, f.step_s, &peak), SLUICE_OK);
    uint64_t all = 0, by_category[SLC_MEMORY_CATEGORIES] = {0};
    for (uint32_t i = 0; i < peak.count; i++) {
        assert_non_null(peak.columns[i].name);
        all += sum_of(&peak.columns[i]);
        for (int c = 0; c < SLC_MEMORY_CATEGORIES; c++) by_category[c] += peak.columns[i].bytes[c];
        assert_true(i + 1 == peak.count || !peak.columns[i].unused);
    }
    assert_int_equal(all, plan->arena_bytes + job->reserved_bytes);
    assert_int_equal(all, peak.planned_bytes);
    assert_int_equal(all - peak.columns[peak.count - 1].unused, peak.live_bytes);
    bool found = false;
    for (size_t p = 0; p < series.count; p++) {
        assert_true(live_of(&series.points[p]) + job->reserved_bytes <= peak.live_bytes);
        if (series.points[p].at_s != peak.at_s) continue;
        found = true;
        for (int c = 0; c < SLC_MEMORY_CATEGORIES; c++)
            assert_int_equal(by_category[c], c == SLC_MEMORY_RESERVED ? job->reserved_bytes : series.points[p].live[c]);
    }
    assert_true(found);
    slc_memory_peak_fini(&peak);
    slc_memory_series_fini(&series);
    free(items);
}

static void check_drawn(drawn_plan *d)
{
    check_peak(&d->t.job, &d->times, d->plan);
}

static void drawn_plans_add_up(void **state)
{
    (void)state;
    drawn_plans_look(JOBS, check_drawn);
}

static const slc_memory_column *column_named(const slc_memory_peak *peak, const char *name)
{
    for (uint32_t i = 0; i < peak->count; i++)
        if (!strcmp(peak->columns[i].name, name)) return &peak->columns[i];
    return NULL;
}

/* GPT-2 under dp: each block has its values and Adam's two states, the tied table has a column of its own, and the
 * logits are the head's. */
static void layers_have_their_own(void **state)
{
    (void)state;
    slc_made_options options = {.model = "gpt2-small", .batch = 2, .context = 128};
    slc_profile *profile;
    slc_plan_answer answer;
    slc_forecast f;
    slc_memory_series series;
    slc_memory_peak peak;
    char where[96];
    assert_int_equal(slc_made_cluster("2xcpu-1gbit", &options), SLUICE_OK);
    assert_int_equal(slc_made_profile(&options, &profile), SLUICE_OK);
    profile->job.reserved_bytes = 12345;
    const slc_plan_request request = {.strategy = "dp", .schedule = "serial", .times = &profile->times};
    assert_int_equal(slc_plan_for_budget(&profile->job, &request, &answer), SLUICE_OK);
    check_peak(&profile->job, &profile->times, answer.plan);
    slc_item_times *items = calloc((size_t)answer.plan->train.item_count + 1, sizeof *items);
    assert_int_equal(slc_simulate_items(&profile->job, &profile->times, answer.plan, NULL, &f, items), SLUICE_OK);
    assert_int_equal(slc_simulate_memory(answer.plan, items, f.step_s, &series), SLUICE_OK);
    assert_int_equal(slc_memory_peak_find(&profile->job, answer.plan, items, &series, f.step_s, &peak), SLUICE_OK);

    assert_int_equal(peak.count, 12 + 2 + 1 + 2); /* blocks, embed and head, the table, the last two */
    assert_string_equal(peak.columns[1].name, "embed.wte.weight");
    assert_string_equal(peak.columns[peak.count - 1].name, "not in use");
    for (uint32_t u = 0; u < profile->job.unit_count; u++) {
        const slc_memory_column *column = column_named(&peak, profile->job.units[u].name);
        assert_non_null(column);
        assert_int_equal(column->bytes[SLC_MEMORY_VALUES], 4 * profile->job.units[u].elements);
        assert_int_equal(column->bytes[SLC_MEMORY_OPTIMIZER], 8 * profile->job.units[u].elements);
    }
    assert_int_equal(peak.columns[peak.count - 2].bytes[SLC_MEMORY_RESERVED], 12345);
    slc_memory_peak_name(&profile->job, &peak, where, sizeof where);
    assert_true(!strncmp(where, "in the ", 7) || !strcmp(where, "while compute waits"));
    slc_memory_peak_fini(&peak);
    slc_memory_series_fini(&series);
    free(items);
    slc_plan_destroy(answer.plan);
    slc_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_plans_add_up),
        cmocka_unit_test(layers_have_their_own),
    };
    return cmocka_run_group_tests_name("memory_peak", tests, NULL, NULL);
}
