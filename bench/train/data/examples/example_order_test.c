/* Every example comes once a pass, whatever the sizes; a step's examples are of like length, and steps come in no order
 * of length. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/train/data/examples/example_order.h"
#include "lib/base/numbers/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t length_of(uint64_t example)
{
    float normal;
    slc_random_normal(5, 1, example, 1, &normal);
    const double length = 1 + 100 * exp((double)normal); /* log-normal, deviation 1, and cut */
    return length < 512 ? (uint32_t)length : 512;
}

/* The examples of sequences [0, count), in their order. */
static slc_group_member *take(const slc_example_order *o, uint64_t count)
{
    slc_group_member *all = malloc(count * sizeof *all);
    assert_non_null(all);
    for (uint64_t done = 0; done < count;) {
        const slc_example_group group = slc_example_order_group(o, done);
        slc_group_member *members = malloc(group.count * sizeof *members), *room = malloc(group.count * sizeof *room);
        assert_true(members && room);
        assert_int_equal(group.first, done);
        for (uint64_t i = 0; i < group.count; i++) {
            const uint64_t example = slc_example_order_drawn(o, &group, i);
            assert_true(example < o->examples);
            members[i] = (slc_group_member){.example = example, .length = length_of(example), .drawn = (uint32_t)i};
            const slc_example_group again = slc_example_order_group(o, group.first + i);
            assert_int_equal(again.number, group.number);
        }
        slc_example_order_sort(o, &group, members, room);
        for (uint64_t i = 0; i < group.count && done < count; i++) all[done++] = members[i];
        free(members);
        free(room);
    }
    return all;
}

static void a_pass_has_every_example_once(void **state)
{
    (void)state;
    static const struct {
        uint64_t examples, step, row, group;
    } sizes[] = {{1, 1, 1, 50},    {7, 3, 3, 50},    {100, 8, 8, 50}, {1000, 8, 8, 50},
                 {1000, 8, 8, 1},  {64, 64, 64, 50}, {5, 12, 12, 50}, {300, 8, 2, 50},
                 {1000, 8, 1, 50}, {1000, 6, 3, 7},  {90, 8, 4, 1},   {90, 8, 2, 21}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const slc_example_order o = {3, sizes[s].examples, sizes[s].step, sizes[s].row, sizes[s].group};
        const uint64_t steps = slc_example_order_steps(&o);
        const uint64_t pass = o.examples < o.step ? o.examples : steps * o.step;
        slc_group_member *all = take(&o, 3 * steps * o.step);
        for (uint64_t p = 0; p < 3 * steps * o.step / pass; p++) {
            uint8_t *seen = calloc(o.examples, 1);
            assert_non_null(seen);
            if (o.examples >= o.step)
                for (uint64_t i = 0; i < pass; i++) assert_int_equal(seen[all[p * pass + i].example]++, 0);
            free(seen);
        }
        assert_true(fabs(slc_example_order_passes(&o, 2 * pass) - 2) < 1e-12);
        free(all);
    }
}

static double padding(const slc_example_order *o, uint64_t steps, double *corner)
{
    uint64_t places = 0, tokens = 0, rising = 0, before = 0;
    slc_group_member *all = take(o, steps * o->step);
    for (uint64_t s = 0; s < steps; s++) {
        uint64_t longest = 0;
        for (uint64_t i = 0; i < o->step; i++) {
            const uint32_t length = all[s * o->step + i].length;
            if (length > longest) longest = length;
            tokens += length;
        }
        rising += longest > before;
        before = longest;
        places += longest * o->step;
    }
    *corner = (double)rising / (double)steps;
    free(all);
    return 1 - (double)tokens / (double)places;
}

static void like_lengths_come_together(void **state)
{
    (void)state;
    double rising, drawn_rising;
    const slc_example_order sorted = {3, 40000, 8, 8, 50}, drawn = {3, 40000, 8, 8, 1};
    const double little = padding(&sorted, 1000, &rising), much = padding(&drawn, 1000, &drawn_rising);
    print_message("padding: %.1f %%, drawn %.1f %%\n", 100 * little, 100 * much);
    assert_true(little < 0.08);
    assert_true(much > 0.5);
    assert_true(rising > 0.4 && rising < 0.6);
}

/* Rounds of ten steps have steps of all lengths, so that their tokens are nearly as many. */
static void rounds_have_all_lengths(void **state)
{
    (void)state;
    enum { STEPS = 500, ROUND = 10, STEP = 8 };
    const slc_example_order o = {3, 40000, STEP, STEP, 50};
    slc_group_member *all = take(&o, STEPS * STEP);
    double least = HUGE_VAL, most = 0;
    for (int round = 0; round < STEPS / ROUND; round++) {
        double tokens = 0;
        for (int i = 0; i < ROUND * STEP; i++) tokens += all[round * ROUND * STEP + i].length;
        least = fmin(least, tokens);
        most = fmax(most, tokens);
    }
    free(all);
    print_message("rounds have %.0f to %.0f tokens\n", least, most);
    assert_true(most < 1.5 * least); /* 3 times where steps are drawn */
}

/* With several micro-batches a step, these are of like length and the step is of all lengths. */
static void steps_of_rows_have_all_lengths(void **state)
{
    (void)state;
    enum { STEPS = 500, ROW = 2, STEP = 8 };
    const slc_example_order o = {3, 40000, STEP, ROW, 50};
    slc_group_member *all = take(&o, STEPS * STEP);
    double sum = 0, squares = 0, places = 0;
    for (int step = 0; step < STEPS; step++) {
        double tokens = 0;
        for (int i = 0; i < STEP; i++) {
            const slc_group_member *row = all + step * STEP + i / ROW * ROW;
            places += row[0].length > row[1].length ? row[0].length : row[1].length;
            tokens += all[step * STEP + i].length;
        }
        sum += tokens;
        squares += tokens * tokens;
    }
    free(all);
    const double mean = sum / STEPS, spread = sqrt(squares / STEPS - mean * mean) / mean;
    print_message("rows: padding %.1f %%, steps differ by %.0f %%\n", 100 * (1 - sum / places), 100 * spread);
    assert_true(sum > 0.96 * places);
    assert_true(spread < 0.3); /* of drawn steps 35 %, of steps of one row 90 % */
}

static void seeds_differ(void **state)
{
    (void)state;
    const slc_example_order one = {3, 500, 8, 8, 50}, other = {4, 500, 8, 8, 50};
    slc_group_member *a = take(&one, 400), *b = take(&other, 400), *again = take(&one, 400);
    int same = 0;
    assert_memory_equal(a, again, 400 * sizeof *a);
    for (int i = 0; i < 400; i++) same += a[i].example == b[i].example;
    assert_true(same < 40);
    free(a);
    free(b);
    free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_has_every_example_once),
        cmocka_unit_test(like_lengths_come_together),
        cmocka_unit_test(rounds_have_all_lengths),
        cmocka_unit_test(steps_of_rows_have_all_lengths),
        cmocka_unit_test(seeds_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
