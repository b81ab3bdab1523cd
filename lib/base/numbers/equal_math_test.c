/* Exponentials, powers, roots and cosines must agree with those of long double; that they have the same bits on every
 * processor is asked where they are used. */
#include "lib/base/numbers/equal_math.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdint.h>

static void powers(void **state)
{
    (void)state;
    const double bases[] = {0, 0.5, 0.9, 0.95, 0.999, 0.99999, 1};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
        for (uint64_t n = 1; n < 1000000; n += 1 + n / 7) {
            const long double wanted = powl(bases[i], (long double)n);
            const long double bar = wanted * (0x1.1p-53L + (long double)n * 0x1p-63L) + 0x1p-1074L;
            assert_true(fabsl(slc_power(bases[i], n) - wanted) <= bar);
        }
    assert_true(slc_power(0, 0) == 1 && slc_power(0.3, 0) == 1 && slc_power(0.3, 1) == 0.3);
    assert_true(slc_power(0.5, 1000) == 0x1p-1000 && slc_power(0.5, UINT64_MAX) == 0);
}

static void exponentials(void **state)
{
    (void)state;
    for (int i = 0; i <= 200000; i++) {
        const double x = i < 100000 ? -i / 1e5 : -(i - 100000) / 134.0;
        const long double wanted = expl(x);
        const long double bar = wanted * (0x1.1p-53L + fabsl(x) * 0x1p-63L) + 0x1p-1074L;
        assert_true(fabsl(slc_exponential(x) - wanted) <= bar);
    }
    assert_true(slc_exponential(0) == 1 && slc_exponential(-801) == 0 && slc_exponential(-INFINITY) == 0);
}

static void cosines(void **state)
{
    (void)state;
    const double pi = 3.141592653589793;
    for (int i = 0; i <= 100000; i++) {
        const double x = pi * (i / 1e5);
        const long double wanted = cosl(x);
        assert_true(fabsl(slc_cosine(x) - wanted) <= fabsl(wanted) * 0x1.1p-53L + 0x1p-63L);
    }
    assert_true(slc_cosine(0) == 1 && slc_cosine(pi) == -1);
}

static void roots(void **state)
{
    (void)state;
    for (uint32_t degree = 1; degree <= 16; degree++) {
        double last = 0;
        for (int i = 0; i <= 20000; i++) {
            const double x = i / 2e4, got = slc_root(x, degree);
            const long double wanted = powl(x, 1.0L / degree);
            assert_true(fabsl(got - wanted) <= wanted * 0x1.1p-53L && got >= last);
            last = got;
        }
        assert_true(slc_root(0, degree) == 0 && slc_root(1, degree) == 1);
        assert_true(fabs(slc_root(1e-12, degree) - pow(1e-12, 1.0 / degree)) <= 1e-15);
    }
    assert_true(slc_root(0.25, 2) == 0.5 && slc_root(0.3, 1) == 0.3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(powers), cmocka_unit_test(exponentials),
                                       cmocka_unit_test(roots), cmocka_unit_test(cosines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
