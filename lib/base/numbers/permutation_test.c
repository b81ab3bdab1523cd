/* Every number comes once, whatever their count; seeds and streams give other orders, and no place is preferred. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/numbers/permutation.h"

#include <stdbool.h>
#include <string.h>

enum { MOST = 300 };

static void every_number_comes_once(void **state)
{
    (void)state;
    for (uint64_t count = 1; count <= MOST; count++) {
        bool seen[MOST] = {false};
        for (uint64_t place = 0; place < count; place++) {
            const uint64_t to = slc_permutation_place(3, count, count, place);
            assert_true(to < count);
            assert_false(seen[to]);
            seen[to] = true;
        }
    }
    const uint64_t large = (UINT64_C(1) << 33) + 5;
    for (uint64_t place = large - 10; place < large; place++)
        assert_true(slc_permutation_place(3, 1, large, place) < large);
}

static void orders_are_drawn(void **state)
{
    (void)state;
    enum { COUNT = 64, DRAWS = 4096 };
    uint32_t at[COUNT] = {0};
    for (uint64_t stream = 0; stream < DRAWS; stream++) at[slc_permutation_place(1, stream, COUNT, 7)]++;
    /* 64 each; five deviations of a binomial are 40 */
    for (int i = 0; i < COUNT; i++) assert_true(at[i] > 24 && at[i] < 104);
    int same = 0;
    for (uint64_t place = 0; place < COUNT; place++)
        same += slc_permutation_place(1, 0, COUNT, place) == slc_permutation_place(2, 0, COUNT, place);
    assert_true(same < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_comes_once),
        cmocka_unit_test(orders_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
