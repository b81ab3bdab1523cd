/* A step's median is of steps under the plan that the run kept, without its warm-up; where they are too few there is
 * none, and it is known how many it takes. */
#include "bench/train/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 40 };

/* `measuring` steps under a plan that serves to measure, then those of the next plan; the k-th step of a plan takes
 * `slow` for k < 2, else `steady` seconds. */
static slc_training_result make_run(slc_training_step *steps, uint64_t measuring, uint64_t count)
{
    static const double slow = 7, steady = 0.5;
    for (uint64_t i = 0; i < count; i++) {
        const bool first_plan = i < measuring;
        const uint64_t of_plan = first_plan ? i : i - measuring;
        steps[i] = (slc_training_step){.step = i + 1,
                                       .step_s = of_plan < 2 || first_plan ? slow : steady,
                                       .exposed_s = 0.25,
                                       .bytes_sent = 100,
                                       .plan = measuring && !first_plan ? 2 : 1,
                                       .provisional = first_plan};
    }
    return (slc_training_result){.steps = steps, .step_count = count, .tokens_per_step = 64};
}

static void medians_and_too_few(void **state)
{
    (void)state;
    slc_training_step steps[MOST];
    for (uint64_t measuring = 0; measuring <= 3; measuring += 3)
        for (uint64_t count = 0; count <= MOST; count++) {
            slc_training_result run = make_run(steps, measuring, count);
            const bool enough = count >= measuring + 5;
            assert_int_equal(slc_training_summarise(&run), SLUICE_OK);
            assert_true(enough ? run.step_s == 0.5 && run.step_min_s == 0.5
                               : isnan(run.step_s) && isnan(run.step_min_s));
            assert_true(enough ? run.exposed_s == 0.25 && run.tokens_per_s == 128
                               : isnan(run.exposed_s) && isnan(run.tokens_per_s));
            if (count) assert_int_equal(run.steps_wanted, measuring + 5);
            if (count) assert_true(fabs(run.warm_up.bytes_sent - 100) < 1e-9 && isnan(run.warm_up.step_s) == !enough);
        }
}

/* Steps that only served to measure are no figure of the run, however many there are. */
static void only_measuring(void **state)
{
    (void)state;
    slc_training_step steps[MOST];
    slc_training_result run = make_run(steps, MOST, MOST);
    assert_int_equal(slc_training_summarise(&run), SLUICE_OK);
    assert_true(isnan(run.step_s));
    assert_int_equal(run.steps_wanted, MOST + 5);
}

/* A re-plan that failed leaves the plan's number as it was, but no gates of measuring. */
static void kept_first_plan(void **state)
{
    (void)state;
    slc_training_step steps[MOST];
    slc_training_result run = make_run(steps, 3, 10);
    for (int i = 0; i < 10; i++) steps[i].plan = 1;
    assert_int_equal(slc_training_summarise(&run), SLUICE_OK);
    assert_true(run.step_s == 0.5);
    run = make_run(steps, 3, 7);
    for (int i = 0; i < 7; i++) steps[i].plan = 1;
    assert_int_equal(slc_training_summarise(&run), SLUICE_OK);
    assert_true(isnan(run.step_s));
    assert_int_equal(run.steps_wanted, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_and_too_few),
        cmocka_unit_test(only_measuring),
        cmocka_unit_test(kept_first_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
