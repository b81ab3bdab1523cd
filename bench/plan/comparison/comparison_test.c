/* The figures of each plan in a comparison add up: bytes at the peak to those of the memory picture, kept bytes to what
 * the strategies keep, waits to the exposed time. Two plans that are exchanged give the same figures exchanged, and a
 * plan differs in nothing from itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/plan/comparison/comparison.h"
#include "bench/plan/pictures/memory_peak.h"
#include "lib/plan/strategy_table.h"
#include "sched/planner.h"
#include "sched/simulate/exposed.h"
#include "sched/study/random_profile.h"
#include "tests/support/scale.h"

#include <math.h>
#include <sluice/status.h>
#include <stdlib.h>
#include <string.h>

static uint32_t profile_count(void)
{
    return test_brief() ? 6 : 40;
}

static uint32_t causes; /* how many waits were for the operation that is told */

/* Every second profile has updates that may run on the compute lane, and all of them may recompute. */
static slc_profile *draw(uint64_t seed)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){3, 7};
    options.world = 4;
    options.can_recompute = true;
    options.tied_share = 0.5;
    options.split_share = 0.5;
    options.unit_blocks = 4;
    assert_int_equal(slc_random_profile(&options, seed, &profile), SLUICE_OK);
    profile->times.update_compute_s_per_element = profile->times.update_s_per_element / 4;
    profile->job.reserved_bytes = 4096;
    return profile;
}

static slc_plan *plan_of(const slc_profile *profile, uint64_t seed, int which)
{
    static const char *const strategies[] = {"random:1", "fsdp", "sdp", "dp"}, *const schedules[] = {"serial",
                                                                                                     "one_ahead"};
    static const slc_updates updates[] = {SLC_UPDATES_COMMUNICATION, SLC_UPDATES_COMPUTE, SLC_UPDATES_BOTH};
    uint8_t recompute[8] = {0};
    slc_plan_answer answer;
    for (uint32_t l = 0; l < profile->job.layer_count; l++) recompute[l] = (seed + which + l) % 3 == 0;
    const slc_plan_request request = {.strategy = strategies[(seed + which) % 4],
                                      .schedule = schedules[(seed / 2 + which) % 2],
                                      .times = &profile->times,
                                      .recompute = recompute,
                                      .updates = updates[(seed + 2 * which) % 3]};
    if (slc_plan_for_budget(&profile->job, &request, &answer)) fail_msg("%s", sluice_last_error());
    return answer.plan;
}

static uint64_t live_bytes(const slc_profile *profile, const slc_plan *plan, const slc_forecast *f)
{
    slc_forecast forecast;
    slc_memory_series series;
    slc_memory_peak peak;
    slc_item_times *items = calloc((size_t)plan->train.item_count + 1, sizeof *items);
    assert_int_equal(slc_simulate_items(&profile->job, &profile->times, plan, NULL, &forecast, items), SLUICE_OK);
    assert_true(forecast.step_s == f->step_s && forecast.exposed_s == f->exposed_s);
    assert_int_equal(slc_simulate_memory(plan, items, f->step_s, &series), SLUICE_OK);
    assert_int_equal(slc_memory_peak_find(&profile->job, plan, items, &series, f->step_s, &peak), SLUICE_OK);
    const uint64_t bytes = peak.live_bytes;
    slc_memory_peak_fini(&peak);
    slc_memory_series_fini(&series);
    free(items);
    return bytes;
}

static const slc_compared_layer *layer_named(const slc_comparison *c, const char *name)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (!strcmp(c->layers[i].name, name)) return &c->layers[i];
    fail_msg("no layer %s", name);
    return NULL;
}

/* The longest wait of a layer's slots is for the operation that is told. */
static void check_causes(const slc_comparison *c, int of)
{
    const slc_job *job = &c->profile->job;
    const slc_plan *plan = c->plans[of];
    slc_forecast f;
    slc_item_times *items = calloc((size_t)plan->train.item_count + 1, sizeof *items);
    slc_exposure *waits = calloc((size_t)plan->train.item_count + 1, sizeof *waits);
    assert_int_equal(slc_simulate_items(job, &c->profile->times, plan, NULL, &f, items), SLUICE_OK);
    const uint32_t count = slc_exposures(plan, items, &f, waits);
    for (uint32_t w = 0; w < count; w++) {
        const slc_item *item = &plan->train.items[waits[w].slot];
        if (item->kind != SLC_ITEM_SLOT || waits[w].cause == SLC_NONE) continue;
        const slc_compared_part *part = &layer_named(c, job->layers[slc_slot_layer(job, item->slot)])->of[of];
        const slc_item *cause = &plan->train.items[waits[w].cause];
        if (part->longest_s != waits[w].to_s - waits[w].from_s) continue;
        assert_non_null(strstr(part->waits_for, slc_item_kind_name(cause->kind)));
        assert_true(cause->unit == SLC_NONE || strstr(part->waits_for, job->units[cause->unit].name));
        causes++;
    }
    free(waits);
    free(items);
}

static void check_sums(const slc_comparison *c, int of)
{
    const slc_job *job = &c->profile->job;
    const slc_plan *plan = c->plans[of];
    uint64_t kept = 0, at_peak = 0, wanted = 0;
    uint32_t recomputed = 0;
    double waits_s = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const slc_compared_part *part = &c->layers[i].of[of];
        kept += part->kept;
        at_peak += part->at_peak;
        waits_s += part->waits_s;
        recomputed += *part->recomputed == 'y';
        assert_true(part->waits_s >= part->longest_s && (part->longest_s > 0 || !*part->waits_for));
    }
    for (uint32_t u = 0; u < job->unit_count; u++)
        wanted += slc_resident_bytes(job, &job->units[u], plan->strategies[u]);
    for (uint32_t l = 0; plan->recompute && l < job->layer_count; l++) recomputed -= plan->recompute[l];
    assert_int_equal(kept, wanted);
    assert_int_equal(recomputed, 0);
    assert_int_equal(at_peak, live_bytes(c->profile, plan, &c->forecasts[of]));
    assert_int_equal(c->peaks[of], plan->arena_bytes + job->reserved_bytes);
    assert_true(fabs(waits_s - c->forecasts[of].exposed_s) < 1e-6 * c->forecasts[of].step_s);
}

static void check_part(const slc_compared_part *a, const slc_compared_part *b)
{
    assert_string_equal(a->strategy, b->strategy);
    assert_string_equal(a->recomputed, b->recomputed);
    assert_string_equal(a->updates, b->updates);
    assert_string_equal(a->waits_for, b->waits_for);
    assert_true(a->kept == b->kept && a->at_peak == b->at_peak && a->waits_s == b->waits_s);
}

/* Returns the printed comparison, in static memory. */
static const char *printed(const slc_comparison *c)
{
    static char text[1 << 16];
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    slc_comparison_print(out, c);
    fclose(out);
    return text;
}

static void check_itself(const slc_profile *profile, const slc_plan *plan)
{
    const slc_plan *const same[] = {plan, plan};
    const char *const names[] = {"one", "the same"};
    slc_comparison c;
    assert_int_equal(slc_comparison_make(profile, same, names, &c), SLUICE_OK);
    const char *text = printed(&c);
    assert_non_null(strstr(text, "no layer differs"));
    assert_non_null(strstr(text, "(+0.0 % of a step)"));
    slc_comparison_fini(&c);
}

static void drawn_plans_add_up(void **state)
{
    (void)state;
    const char *const names[] = {"one", "other"}, *const turned[] = {"other", "one"};
    for (uint64_t seed = 0; seed < profile_count(); seed++) {
        slc_profile *profile = draw(seed);
        slc_plan *one = plan_of(profile, seed, 0), *other = plan_of(profile, seed, 1);
        const slc_plan *const there[] = {one, other}, *const back[] = {other, one};
        slc_comparison a, b;
        assert_int_equal(slc_comparison_make(profile, there, names, &a), SLUICE_OK);
        assert_int_equal(slc_comparison_make(profile, back, turned, &b), SLUICE_OK);
        for (int of = 0; of < SLC_COMPARED; of++) {
            check_sums(&a, of);
            check_causes(&a, of);
        }
        assert_int_equal(a.count, b.count);
        for (uint32_t i = 0; i < a.count; i++) {
            assert_string_equal(a.layers[i].name, b.layers[i].name);
            check_part(&a.layers[i].of[0], &b.layers[i].of[1]);
            check_part(&a.layers[i].of[1], &b.layers[i].of[0]);
        }
        check_itself(profile, one);
        slc_comparison_fini(&a);
        slc_comparison_fini(&b);
        slc_plan_destroy(one);
        slc_plan_destroy(other);
        slc_profile_destroy(profile);
    }
    assert_true(causes > 0);
}

/* One layer gets another strategy, recomputes, and all updates change their lane: its row says so, and JSON too. */
static void what_differs_is_told(void **state)
{
    (void)state;
    slc_profile *profile = draw(3);
    const slc_job *job = &profile->job;
    slc_strategy forced[16];
    uint8_t recompute[8] = {0};
    slc_plan_answer a, b;
    slc_comparison c;
    for (uint32_t u = 0; u < job->unit_count; u++)
        forced[u] = strcmp(job->units[u].name, "h.1") ? SLC_STRATEGIES : SLC_FSDP;
    slc_plan_request request = {.strategy = "sdp",
                                .schedule = "serial",
                                .times = &profile->times,
                                .recompute = recompute,
                                .updates = SLC_UPDATES_COMMUNICATION};
    assert_int_equal(slc_plan_for_budget(job, &request, &a), SLUICE_OK);
    request.forced = forced;
    request.updates = SLC_UPDATES_COMPUTE;
    recompute[1] = 1;
    assert_int_equal(slc_plan_for_budget(job, &request, &b), SLUICE_OK);
    const slc_plan *const plans[] = {a.plan, b.plan};
    const char *const names[] = {"before", "after"};
    assert_int_equal(slc_comparison_make(profile, plans, names, &c), SLUICE_OK);
    const slc_compared_layer *layer = layer_named(&c, "h.1");
    assert_string_equal(layer->of[0].strategy, "sdp");
    assert_string_equal(layer->of[1].strategy, "fsdp");
    assert_string_equal(layer->of[0].recomputed, "-");
    assert_string_equal(layer->of[1].recomputed, "yes");
    assert_string_equal(layer->of[0].updates, "thread");
    assert_string_equal(layer->of[1].updates, "compute");
    assert_true(layer->of[1].kept < layer->of[0].kept);
    const char *text = printed(&c);
    assert_non_null(strstr(text, "sdp -> fsdp"));
    assert_non_null(strstr(text, "- -> yes"));
    assert_non_null(strstr(text, "thread -> compute"));
    json_t *json = slc_comparison_json(&c);
    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, "layers")), c.count);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(json, "plans"), 1), "name")),
                        "after");
    json_decref(json);
    slc_comparison_fini(&c);
    slc_plan_destroy(a.plan);
    slc_plan_destroy(b.plan);
    slc_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_plans_add_up),
        cmocka_unit_test(what_differs_is_told),
    };
    return cmocka_run_group_tests_name("comparison", tests, NULL, NULL);
}
