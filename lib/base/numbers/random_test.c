/* Philox must give the published known answers; normals must have the moments of the normal distribution, and be the
 * same when drawn in pieces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/numbers/random.h"

#include <math.h>
#include <string.h>

static void known_answers(void **state)
{
    (void)state;
    /* kat_vectors of Random123: all zero, all one, digits of pi. */
    const struct {
        uint64_t seed, stream, index;
        uint32_t out[4];
    } cases[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        slc_random_block(cases[i].seed, cases[i].stream, cases[i].index, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

static void normals_have_the_right_moments(void **state)
{
    (void)state;
    enum { COUNT = 1 << 20 };
    static float x[COUNT];
    slc_random_normal(42, 7, 0, COUNT, x);
    double mean = 0, square = 0, fourth = 0, lag = 0;
    uint32_t beyond_two = 0;
    for (size_t i = 0; i < COUNT; i++) {
        double v = x[i];
        mean += v;
        square += v * v;
        fourth += v * v * v * v;
        lag += v * x[(i + 1) % COUNT];
        beyond_two += fabs(v) > 2;
    }
    /* The tolerance is six standard deviations of each estimate. */
    double unit = 6 / sqrt(COUNT);
    assert_true(fabs(mean / COUNT) < unit);
    assert_true(fabs(square / COUNT - 1) < unit * sqrt(2));
    assert_true(fabs(fourth / COUNT - 3) < unit * sqrt(96));
    assert_true(fabs(lag / COUNT) < unit);
    assert_true(fabs(beyond_two / (double)COUNT - 0.0455003) < unit * 0.2084);
}

static void pieces_make_no_difference(void **state)
{
    (void)state;
    float whole[1500], pieces[1500];
    slc_random_normal(3, 1, 10, 1500, whole);
    for (size_t at = 0, step = 1; at < 1500; at += step, step = step * 3 + 1) {
        if (step > 1500 - at) step = 1500 - at;
        slc_random_normal(3, 1, 10 + at, step, pieces + at);
    }
    assert_memory_equal(whole, pieces, sizeof whole);
    slc_random_normal(4, 1, 10, 1500, pieces);
    assert_true(memcmp(whole, pieces, sizeof whole) != 0);
}

static void below_covers_its_range(void **state)
{
    (void)state;
    uint32_t seen[7] = {0};
    for (uint64_t i = 0; i < 7000; i++) {
        uint64_t value = slc_random_below(5, 2, i, 7);
        assert_true(value < 7);
        seen[value]++;
    }
    for (int i = 0; i < 7; i++) assert_true(seen[i] > 800 && seen[i] < 1200);
    assert_int_equal(slc_random_below(5, 2, 0, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(normals_have_the_right_moments),
        cmocka_unit_test(pieces_make_no_difference),
        cmocka_unit_test(below_covers_its_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
