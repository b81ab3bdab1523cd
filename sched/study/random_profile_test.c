/* Drawn profiles must keep to their ranges, have the ratio that was asked for, and be good profiles that can be
 * planned. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/plan/profile_equal.h"
#include "sched/study/random_profile.h"
#include "sched/layout/make_plan.h"
#include "tests/support/seed.h"

#include <math.h>
#include <stdlib.h>

enum { SEEDS = 100 };

static slc_profile *draw(const slc_random_options *options, uint64_t seed)
{
    slc_profile *profile;
    if (slc_random_profile(options, test_seed(seed), &profile)) fail_msg("%s", sluice_last_error());
    return profile;
}

/* Compute over one reduce-scatter and one all-gather of everything, by the link's own formula. */
static double ratio_of(const slc_profile *profile)
{
    const slc_job *job = &profile->job;
    const slc_link_line *line = &profile->times.link.all_gather;
    double compute = 0, communication = 0, peers = job->world - 1;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) compute += job->micro_batches * profile->times.slot_s[s];
    for (uint32_t u = 0; u < job->unit_count; u++)
        communication += 2 * (line->latency_s * peers +
                              4.0 * (double)job->units[u].elements * peers / (job->world * line->bytes_per_s));
    return compute / communication;
}

static double activations_of(const slc_job *job, uint32_t layer)
{
    double bytes = 0;
    for (uint32_t a = 0; a < job->activation_count; a++)
        if (job->activations[a].first_slot == layer) bytes += (double)job->activations[a].bytes;
    return bytes / (4.0 * (double)job->units[layer].elements);
}

/* Returns true if the count is within five standard deviations of what is to be expected; one draw in two million is
 * not. */
static bool is_share(uint32_t count, double share)
{
    return fabs(count - share * SEEDS) < 5 * sqrt(SEEDS * share * (1 - share));
}

static void ranges_are_kept(void **state)
{
    (void)state;
    slc_random_options options = slc_random_defaults();
    options.can_recompute = true;
    uint32_t tied = 0, several = 0, least = UINT32_MAX, most = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        slc_profile *profile = draw(&options, seed);
        const slc_job *job = &profile->job;
        double r = ratio_of(profile);
        assert_true(r > 0.4 - 1e-9 && r < 2.5 + 1e-9);
        for (uint32_t l = 0; l < job->layer_count; l++) {
            double bytes = 4.0 * (double)profile->parameters[l], kept = activations_of(job, l);
            assert_true(bytes >= 10e6 - 4 && bytes <= 100e6 && kept > 0.199 && kept < 2.001);
            assert_true(job->can_recompute[l]);
        }
        tied += job->unit_count > job->layer_count;
        several += job->micro_batches > 1;
        if (job->layer_count < least) least = job->layer_count;
        if (job->layer_count > most) most = job->layer_count;
        slc_profile_destroy(profile);
    }
    assert_true(least >= 4 && least <= 5 && most > 17 && most <= 24); /* each end is missed by one draw in 10^8 */
    assert_true(is_share(tied, options.tied_share) && is_share(several, 1.0 / 3));
}

static void a_fixed_ratio_is_met(void **state)
{
    (void)state;
    slc_random_options options = slc_random_defaults();
    options.compute_ratio = (slc_random_range){0.75, 0.75};
    options.layers = (slc_random_range){48, 48};
    options.world = 8;
    options.micro_batches = 1;
    for (uint64_t seed = 0; seed < 10; seed++) {
        slc_profile *profile = draw(&options, seed);
        assert_int_equal(profile->job.layer_count, 48);
        assert_int_equal(profile->job.world, 8);
        assert_int_equal(profile->job.micro_batches, 1);
        assert_true(fabs(ratio_of(profile) - 0.75) < 1e-9);
        slc_profile_destroy(profile);
    }
}

static void a_seed_is_a_profile(void **state)
{
    (void)state;
    slc_random_options options = slc_random_defaults();
    for (uint64_t seed = 0; seed < 20; seed++) {
        slc_profile *a = draw(&options, seed), *b = draw(&options, seed), *other = draw(&options, seed + 1), *back;
        char *text;
        assert_true(test_profiles_equal(a, b));
        assert_false(test_profiles_equal(a, other));
        assert_int_equal(slc_profile_to_json(a, &text), 0);
        assert_int_equal(slc_profile_from_json(text, strlen(text), &back), 0);
        assert_true(test_profiles_equal(a, back));
        slc_profile_destroy(back);
        slc_profile_destroy(other);
        slc_profile_destroy(b);
        slc_profile_destroy(a);
        free(text);
    }
}

/* Everything else must be as without the split; tables of all sizes must have rows. */
static void a_tied_unit_may_be_split(void **state)
{
    (void)state;
    slc_random_options joint = slc_random_defaults(), split;
    joint.tied_share = 1;
    for (uint64_t seed = 0; seed < 30; seed++) {
        if (seed >= 20) joint.unit_bytes = (slc_random_range){4, 4};
        split = joint;
        split.split_share = 1;
        slc_profile *a = draw(&joint, seed), *b = draw(&split, seed), *back;
        const slc_job *job = &b->job;
        uint32_t u = job->unit_count - 2;
        const slc_unit *table = &job->units[u], *rows = &job->units[u + 1];
        assert_int_equal(a->job.unit_count, u + 1);
        assert_true(table->role == SLC_UNIT_SPLIT && table->partner == u + 1 && table->use_count == 1);
        assert_true(rows->role == SLC_UNIT_ROWS && rows->partner == u && rows->use_count == 1);
        assert_true(!rows->uses[0].layer && table->uses[0].layer == job->layer_count - 1);
        assert_int_equal(table->elements, a->job.units[u].elements);
        assert_int_equal(b->parameters[u], a->parameters[u]);
        assert_true(rows->most_rows && rows->most_rows <= (rows->row_count + 1) / 2);
        assert_true(rows->row_count * rows->row_elements <= b->parameters[u]);
        char *text;
        assert_int_equal(slc_profile_to_json(b, &text), 0);
        if (slc_profile_from_json(text, strlen(text), &back)) fail_msg("%s", sluice_last_error());
        assert_true(test_profiles_equal(b, back));
        slc_profile_destroy(back);
        slc_profile_destroy(b);
        slc_profile_destroy(a);
        free(text);
    }
}

static void each_can_be_planned(void **state)
{
    (void)state;
    slc_random_options options = slc_random_defaults();
    options.can_recompute = true;
    options.tied_share = 1;
    options.layers.most = 8;
    for (uint64_t seed = 0; seed < 24; seed++) {
        options.split_share = seed < 12 ? 0 : 1;
        slc_profile *profile = draw(&options, seed);
        slc_strategy strategies[10];
        for (uint32_t u = 0; u < profile->job.unit_count; u++)
            strategies[u] = slc_unit_strategy(&profile->job, &profile->job.units[u],
                                              (slc_strategy)((u + seed) % SLC_EXACT_STRATEGIES));
        slc_scheduling in = {.job = &profile->job,
                             .strategies = strategies,
                             .recompute = seed % 2 ? profile->job.can_recompute : NULL,
                             .times = &profile->times,
                             .limit = UINT64_MAX};
        slc_plan *plan;
        if (slc_plan_make(&in, slc_scheduler_find("serial"), &plan)) fail_msg("%s", sluice_last_error());
        slc_plan_destroy(plan);
        slc_profile_destroy(profile);
    }
}

static void what_is_no_range_is_refused(void **state)
{
    (void)state;
    slc_random_options bad[8];
    for (int i = 0; i < 8; i++) bad[i] = slc_random_defaults();
    bad[0].layers.least = 0;
    bad[1].layers = (slc_random_range){9, 8};
    bad[2].compute_ratio.most = INFINITY;
    bad[3].activations.least = NAN;
    bad[4].sigma = 0;
    bad[5].unit_blocks = 0;
    bad[6].bytes_per_s = 0;
    bad[7].time_spread.least = 0.5;
    slc_profile *profile = NULL;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(slc_random_profile(&bad[i], 1, &profile), SLUICE_ERR_ARGUMENT);
        assert_null(profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_kept),     cmocka_unit_test(a_fixed_ratio_is_met),
        cmocka_unit_test(a_seed_is_a_profile), cmocka_unit_test(a_tied_unit_may_be_split),
        cmocka_unit_test(each_can_be_planned), cmocka_unit_test(what_is_no_range_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
