/* A run's end: which of two counts, and how much of the time before it is kept for a step and a save. */
#include "bench/train/deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t SECOND = 1000000000, BEGUN = 5000000000;
static const time_t WALL = 1800000000;

static uint64_t after(double seconds)
{
    return BEGUN + (uint64_t)(seconds * 1e9);
}

static slc_training_deadline find(const char *stop_after, const char *save, const char *job_end)
{
    const slc_training_options options = {.stop_after = stop_after, .save = save};
    slc_training_deadline d;
    if (job_end)
        setenv("SLURM_JOB_END_TIME", job_end, 1);
    else
        unsetenv("SLURM_JOB_END_TIME");
    assert_int_equal(slc_deadline_find(&options, BEGUN, WALL, &d), SLUICE_OK);
    return d;
}

static void test_which_end(void **state)
{
    (void)state;
    assert_int_equal(find(NULL, NULL, NULL).end_ns, UINT64_MAX);
    assert_int_equal(find("90s", NULL, NULL).end_ns, after(90));
    assert_int_equal(find("90min", NULL, NULL).end_ns, after(5400));
    assert_int_equal(find("2h", NULL, NULL).end_ns, after(7200));
    assert_int_equal(find(NULL, "run", "1800000600").end_ns, after(600));
    assert_int_equal(find("90s", "run", "1800000600").end_ns, after(90));
    assert_int_equal(find("1h", "run", "1800000600").end_ns, after(600));
    assert_string_equal(find("1h", "run", "1800000600").why, "the job's end, SLURM_JOB_END_TIME=1800000600");
    assert_string_equal(find("90s", "run", "1800000600").why, "--stop-after 90s");
}

static void test_what_is_no_end(void **state)
{
    const slc_training_options options = {.stop_after = "soon"};
    slc_training_deadline d;
    (void)state;
    assert_int_equal(slc_deadline_find(&options, BEGUN, WALL, &d), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "--stop-after: \"soon\" is not a time"));
    assert_int_equal(find(NULL, NULL, "1800000600").end_ns, UINT64_MAX); /* nothing could be saved */
    assert_int_equal(find(NULL, "run", "Unknown").end_ns, UINT64_MAX);
    assert_string_equal(find(NULL, "run", "Unknown").unreadable, "Unknown");
    assert_null(find(NULL, "run", "1800000600").unreadable);
    assert_int_equal(find(NULL, "run", "").end_ns, UINT64_MAX);
    assert_int_equal(find(NULL, "run", "1700000000").end_ns, BEGUN); /* over already */
}

/* Steps of 4 s need 6, a save of 10 s needs 20, leaving needs 2. */
static void test_what_is_kept_for_saving(void **state)
{
    slc_training_deadline d = find("100s", "run", NULL);
    (void)state;
    slc_deadline_begin(&d, after(1), 0);
    assert_false(slc_deadline_after_step(&d, after(5)));
    slc_deadline_after_save(&d, after(5), after(15));
    double now = 15;
    while (!slc_deadline_after_step(&d, after(now + 4))) now += 4;
    assert_true(now + 4 == 75); /* the first end of a step with 28 s or less left */
}

static void test_before_the_first_save(void **state)
{
    slc_training_deadline d = find("100s", "run", NULL);
    (void)state;
    slc_deadline_begin(&d, after(0), 2000000000); /* 40 s, taken twice */
    assert_false(slc_deadline_after_step(&d, after(1)));
    assert_true(slc_deadline_after_step(&d, after(17)));
    d = find("100s", "run", NULL);
    slc_deadline_begin(&d, after(0), 2000000000);
    slc_deadline_after_save(&d, after(1), after(2)); /* it took one second: the guess is gone */
    assert_false(slc_deadline_after_step(&d, after(17)));
}

/* A slow step counts for a while, and not for ever. */
static void test_a_slow_step(void **state)
{
    slc_training_deadline d = find("1000s", NULL, NULL);
    (void)state;
    slc_deadline_begin(&d, after(0), 0);
    assert_false(slc_deadline_after_step(&d, after(100)));
    d.end_ns = after(200);
    assert_true(slc_deadline_after_step(&d, after(101)));
    for (int i = 0; i < SLC_DEADLINE_STEPS - 1; i++) slc_deadline_after_step(&d, after(102 + i));
    assert_false(slc_deadline_after_step(&d, after(110)));
    assert_true(slc_deadline_after_step(&d, after(197)));
    assert_true(slc_deadline_after_step(&d, after(300)));
}

static void test_no_end(void **state)
{
    slc_training_deadline d = find(NULL, "run", NULL);
    (void)state;
    slc_deadline_begin(&d, BEGUN, 0);
    assert_false(slc_deadline_after_step(&d, BEGUN + 1000000 * SECOND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_end),
        cmocka_unit_test(test_what_is_no_end),
        cmocka_unit_test(test_what_is_kept_for_saving),
        cmocka_unit_test(test_before_the_first_save),
        cmocka_unit_test(test_a_slow_step),
        cmocka_unit_test(test_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
