/* Steps with made-up times: the usual step is robust and its parts add up; the miss adds up to what was missed, and
 * waiting is put down to transfers only as far as they explain it. */
#include "lib/plan/measured/step_parts.h"
#include "tests/support/seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static sluice_step_parts step_of(double compute_s, double waiting_s, double outside_s, double transfer_s)
{
    return (sluice_step_parts){.step_s = compute_s + waiting_s + outside_s,
                               .compute_s = compute_s,
                               .waiting_s = waiting_s,
                               .outside_s = outside_s,
                               .transfer_s = transfer_s};
}

static void add(slc_kept_steps *kept, double compute_s, double waiting_s, double outside_s, double transfer_s)
{
    const sluice_step_parts step = step_of(compute_s, waiting_s, outside_s, transfer_s);
    slc_kept_steps_add(kept, &step);
}

static void assert_near(double found, double wanted)
{
    assert_true(fabs(found - wanted) <= 1e-12);
}

static void a_few_steps_have_a_usual_one(void **state)
{
    (void)state;
    slc_kept_steps kept = {0};
    assert_near(slc_kept_steps_usual(&kept).step_s, 0);
    add(&kept, 3, 1, 0.5, 2);
    assert_near(slc_kept_steps_usual(&kept).step_s, 4.5);
    add(&kept, 5, 2, 0.5, 4);
    assert_near(slc_kept_steps_usual(&kept).compute_s, 4); /* of two the mean */
    assert_near(slc_kept_steps_usual(&kept).transfer_s, 3);
    add(&kept, 90, 2, 0.5, 4);
    const sluice_step_parts usual = slc_kept_steps_usual(&kept); /* of three the one in the middle */
    assert_near(usual.step_s, 7.5);
    assert_near(usual.compute_s, 5);
    assert_near(usual.waiting_s, 2);
    assert_near(usual.outside_s, 0.5);
}

static void long_and_short_steps_do_not_count(void **state)
{
    (void)state;
    slc_kept_steps kept = {0};
    for (int i = 0; i < SLC_STEPS_KEPT; i++) add(&kept, i % 4 ? 10 : 1e6, 1, i % 8 == 1 ? 0 : 2, 5);
    const sluice_step_parts usual = slc_kept_steps_usual(&kept);
    assert_near(usual.step_s, 13);
    assert_near(usual.step_s, usual.compute_s + usual.waiting_s + usual.outside_s);
}

static void only_the_last_steps_are_kept(void **state)
{
    (void)state;
    slc_kept_steps kept = {0};
    for (int i = 0; i < SLC_STEPS_KEPT; i++) add(&kept, 100, 0, 0, 0);
    assert_near(slc_kept_steps_median_s(&kept, 20), 100);
    for (int i = 0; i < 20; i++) add(&kept, 1 + i % 2, 0, 0, 0);
    assert_near(slc_kept_steps_median_s(&kept, 20), 1.5);
    assert_near(slc_kept_steps_median_s(&kept, SLC_STEPS_KEPT), 2);
    for (int i = 20; i < SLC_STEPS_KEPT; i++) add(&kept, 1, 0, 0, 0);
    assert_near(slc_kept_steps_usual(&kept).step_s, 1);
}

static void too_few_steps_have_no_median(void **state)
{
    (void)state;
    slc_kept_steps kept = {0};
    for (int i = 0; i < 19; i++) add(&kept, 7, 0, 0, 0);
    assert_near(slc_kept_steps_median_s(&kept, 20), 0);
    assert_near(slc_kept_steps_median_s(&kept, 19), 7);
    assert_near(slc_kept_steps_median_s(&kept, 0), 0);
    assert_near(slc_kept_steps_median_s(&kept, SLC_STEPS_KEPT + 1), 0);
}

typedef struct {
    const char *what;
    double compute_s, waiting_s, outside_s, transfer_s;             /* measured */
    double by_compute_s, by_transfer_s, by_waiting_s, by_outside_s; /* against 10 + 4 + 1, transfers of 8 */
} miss_case;

static void a_miss_is_put_down_to_its_parts(void **state)
{
    (void)state;
    static const miss_case cases[] = {
        {"as predicted", 10, 4, 1, 8, 0, 0, 0, 0},
        {"compute alone", 12.5, 4, 1, 8, 2.5, 0, 0, 0},
        {"outside alone", 10, 4, 0.25, 8, 0, 0, 0, -0.75},
        {"a slow link explains all of the waiting", 10, 6, 1, 11, 0, 2, 0, 0},
        {"it explains a part of it", 10, 6, 1, 8.5, 0, 0.5, 1.5, 0},
        {"ranks that come late", 10, 6, 1, 8, 0, 0, 2, 0},
        {"a fast link, but more waiting", 10, 6, 1, 5, 0, 0, 2, 0},
        {"a fast link", 10, 1, 1, 6, 0, -2, -1, 0},
        {"a slow link that compute hides", 10, 4, 1, 12, 0, 0, 0, 0},
        {"a slow link, but less waiting", 10, 3, 1, 12, 0, 0, -1, 0},
    };
    const sluice_step_parts predicted = step_of(10, 4, 1, 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const miss_case *c = &cases[i];
        const sluice_step_parts measured = step_of(c->compute_s, c->waiting_s, c->outside_s, c->transfer_s);
        const sluice_step_miss miss = slc_step_miss_of(&predicted, &measured);
        if (fabs(miss.transfer_s - c->by_transfer_s) > 1e-12) print_error("%s\n", c->what);
        assert_near(miss.compute_s, c->by_compute_s);
        assert_near(miss.transfer_s, c->by_transfer_s);
        assert_near(miss.waiting_s, c->by_waiting_s);
        assert_near(miss.outside_s, c->by_outside_s);
    }
}

static double drawn_s(uint64_t *chance)
{
    *chance = *chance * 6364136223846793005u + 1442695040888963407u;
    return (double)(*chance >> 40) / 0x1p20;
}

static void every_miss_adds_up(void **state)
{
    (void)state;
    uint64_t chance = test_seed(1);
    for (int t = 0; t < 1000; t++) {
        double s[8];
        for (int i = 0; i < 8; i++) s[i] = drawn_s(&chance);
        const sluice_step_parts predicted = step_of(s[0], s[1], s[2], s[3]), measured = step_of(s[4], s[5], s[6], s[7]);
        const sluice_step_miss miss = slc_step_miss_of(&predicted, &measured);
        const double sum_s = miss.compute_s + miss.transfer_s + miss.waiting_s + miss.outside_s;
        assert_true(fabs(sum_s - (measured.step_s - predicted.step_s)) < 1e-9);
        assert_true(miss.transfer_s * miss.waiting_s >= 0); /* both parts of the waiting go in its direction */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_steps_have_a_usual_one),    cmocka_unit_test(long_and_short_steps_do_not_count),
        cmocka_unit_test(only_the_last_steps_are_kept),    cmocka_unit_test(too_few_steps_have_no_median),
        cmocka_unit_test(a_miss_is_put_down_to_its_parts), cmocka_unit_test(every_miss_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
