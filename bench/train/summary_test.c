/* A step's median is of steps under the plan that the run kept, without its warm-up; if they are too few there is
 * none, and it is known how many it takes. A run of any length takes the same memory. */
#include "bench/train/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 40 };

/* `measuring` steps under a plan that serves to measure, then those of the next plan; the k-th step of a plan takes
 * `slow` for k < 2, else `steady` seconds. `renumber`: the next plan has another number. */
static slc_training_result make_run(uint64_t measuring, uint64_t count, bool renumber)
{
    static const double slow = 7, steady = 0.5;
    slc_training_result run;
    slc_training_result_init(&run);
    run.tokens_per_step = 64;
    for (uint64_t i = 0; i < count; i++) {
        const bool first_plan = i < measuring;
        const uint64_t of_plan = first_plan ? i : i - measuring;
        const slc_training_step step = {.step = i + 1,
                                        .share = 1,
                                        .loss = (double)i,
                                        .step_s = of_plan < 2 || first_plan ? slow : steady,
                                        .exposed_s = 0.25,
                                        .bytes_sent = 100,
                                        .plan = measuring && !first_plan && renumber ? 2 : 1,
                                        .provisional = first_plan};
        assert_int_equal(slc_training_note(&run, &step), SLUICE_OK);
    }
    assert_int_equal(slc_training_summarise(&run), SLUICE_OK);
    return run;
}

static void medians_and_too_few(void **state)
{
    (void)state;
    for (uint64_t measuring = 0; measuring <= 3; measuring += 3)
        for (uint64_t count = 0; count <= MOST; count++) {
            slc_training_result run = make_run(measuring, count, true);
            const bool enough = count >= measuring + 5;
            assert_true(enough ? run.step_s == 0.5 && run.step_min_s == 0.5 && run.step_mean_s == 0.5
                               : isnan(run.step_s) && isnan(run.step_min_s) && isnan(run.step_mean_s));
            assert_true(enough ? run.exposed_s == 0.25 && run.tokens_per_s == 128
                               : isnan(run.exposed_s) && isnan(run.tokens_per_s));
            if (count) assert_int_equal(run.steps_wanted, measuring + 5);
            if (count) assert_true(fabs(run.warm_up.bytes_sent - 100) < 1e-9 && isnan(run.warm_up.step_s) == !enough);
            slc_training_result_free(&run);
        }
}

/* Steps that only served to measure are no figure of the run, however many there are. */
static void only_measuring(void **state)
{
    (void)state;
    slc_training_result run = make_run(MOST, MOST, true);
    assert_true(isnan(run.step_s));
    assert_int_equal(run.steps_wanted, MOST + 5);
    slc_training_result_free(&run);
}

/* A re-plan that failed leaves the plan's number as it was, but no gates of measuring. */
static void kept_first_plan(void **state)
{
    (void)state;
    slc_training_result run = make_run(3, 10, false);
    assert_true(run.step_s == 0.5);
    slc_training_result_free(&run);
    run = make_run(3, 7, false);
    assert_true(isnan(run.step_s));
    assert_int_equal(run.steps_wanted, 8);
    slc_training_result_free(&run);
}

/* The compressed phase has medians of its own, and the steps before it keep theirs. */
static void phases(void **state)
{
    (void)state;
    slc_training_result run;
    slc_training_result_init(&run);
    for (uint64_t i = 0; i < 20; i++) {
        const bool compressed = i >= 12;
        const slc_training_step step = {.step = i + 1,
                                        .loss = 1,
                                        .step_s = compressed ? 1 : 3,
                                        .exposed_s = compressed ? 0.5 : 2,
                                        .bytes_sent = compressed ? 10 : 100,
                                        .plan = compressed ? 2 : 1,
                                        .compressed = compressed};
        assert_int_equal(slc_training_note(&run, &step), SLUICE_OK);
    }
    assert_int_equal(slc_training_summarise(&run), SLUICE_OK);
    assert_true(run.warm_up.first == 1 && run.warm_up.steps == 12 && run.warm_up.step_s == 3);
    assert_true(run.compressed.first == 13 && run.compressed.steps == 8 && run.compressed.step_s == 1);
    assert_true(fabs(run.warm_up.bytes_sent - 100) < 1e-9 && fabs(run.compressed.bytes_sent - 10) < 1e-9);
    assert_true(run.step_s == 1 && run.exposed_s == 0.5 && run.train_s == 12 * 3 + 8);
    slc_training_result_free(&run);
}

/* Up to SLC_TRAINING_POINTS all steps have a point; beyond, every second, fourth, ... from the first on. */
static void long_runs_are_thinned_out(void **state)
{
    (void)state;
    enum { LONG = 5 * SLC_TRAINING_POINTS / 2 };
    slc_training_result run = make_run(0, SLC_TRAINING_POINTS, false);
    assert_int_equal(run.course.every, 1);
    assert_int_equal(run.course.count, SLC_TRAINING_POINTS);
    slc_training_result_free(&run);
    run = make_run(0, LONG, false);
    assert_int_equal(run.step_count, LONG);
    assert_int_equal(run.course.every, 4);
    assert_int_equal(run.course.count, LONG / 4);
    assert_true(run.course.room <= SLC_TRAINING_POINTS && run.all.room <= SLC_TRAINING_POINTS);
    for (uint64_t i = 0; i < run.course.count; i++) assert_true(run.course.points[i].loss == (double)(4 * i));
    assert_true(run.first_loss == 0 && run.last_loss == LONG - 1);
    /* the mean of the last tenth, to the spacing of the points */
    assert_true(fabs(run.final_loss - 0.95 * LONG) < 8);
    assert_true(run.step_s == 0.5);
    slc_training_result_free(&run);
}

/* Micro-batches that grow: the figures are of the steps of the last size. */
static void steps_that_grow(void **state)
{
    (void)state;
    slc_training_result run;
    slc_training_result_init(&run);
    run.tokens_per_step = 64;
    run.images_per_step = 16;
    for (uint64_t i = 0; i < MOST; i++) {
        const bool large = i >= MOST / 2;
        const slc_training_step step = {
            .step = i + 1, .share = large ? 0.75 : 0.25, .loss = 1, .step_s = large ? 0.5 : 0.125, .plan = 1};
        assert_int_equal(slc_training_note(&run, &step), SLUICE_OK);
    }
    assert_int_equal(slc_training_summarise(&run), SLUICE_OK);
    assert_true(run.step_s == 0.5 && run.step_min_s == 0.5);
    assert_true(run.tokens_per_s == 96 && run.images_per_s == 24);
    slc_training_result_free(&run);
}

/* The last tenth of the steps, without those that were skipped, whose losses need not be finite. */
static void the_final_loss(void **state)
{
    (void)state;
    slc_training_result run;
    slc_training_result_init(&run);
    for (uint64_t i = 0; i < MOST; i++) {
        const bool skipped = i == MOST - 2;
        const slc_training_step step = {
            .step = i + 1, .loss = skipped ? NAN : (double)i, .step_s = 1, .plan = 1, .skipped = skipped};
        assert_int_equal(slc_training_note(&run, &step), SLUICE_OK);
    }
    assert_int_equal(slc_training_summarise(&run), SLUICE_OK);
    assert_true(run.final_loss == ((MOST - 1) + (MOST - 3) + (MOST - 4) + (MOST - 5)) / 4.0);
    slc_training_result_free(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_and_too_few), cmocka_unit_test(only_measuring),
        cmocka_unit_test(kept_first_plan),     cmocka_unit_test(phases),
        cmocka_unit_test(the_final_loss),      cmocka_unit_test(long_runs_are_thinned_out),
        cmocka_unit_test(steps_that_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
