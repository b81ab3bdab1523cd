/* Quantities that people write must be read, and all other texts must be refused with a line that quotes them. */
#include "lib/base/text/parse_quantity.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static void sizes(void **state)
{
    (void)state;
    const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {{"0", 0},      {"4096", 4096},        {"12B", 12},     {"64K", 65536},        {"64kib", 65536},
                {"2KB", 2000}, {"900MiB", 943718400}, {"8M", 8388608}, {"1.5GB", 1500000000}, {"1GiB", 1073741824},
                {"0.5k", 512}, {"2T", 2199023255552}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t bytes = 1;
        assert_int_equal(slc_parse_bytes(rows[i].text, &bytes), SLUICE_OK);
        assert_int_equal(bytes, rows[i].bytes);
    }
    const char *wrong[] = {"", "MiB", "-1", "1e400", "nan", "inf", "0x10", "3 parsecs", "5MiBs", "99999999999G"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t bytes;
        assert_int_equal(slc_parse_bytes(wrong[i], &bytes), SLUICE_ERR_ARGUMENT);
        assert_non_null(strstr(sluice_last_error(), wrong[i]));
    }
}

static void budgets(void **state)
{
    (void)state;
    uint64_t bytes;
    double fraction;
    assert_int_equal(slc_parse_budget("60%", &bytes, &fraction), SLUICE_OK);
    assert_int_equal(bytes, 0);
    assert_true(fabs(fraction - 0.6) < 1e-12);
    assert_int_equal(slc_parse_budget("900MiB", &bytes, &fraction), SLUICE_OK);
    assert_int_equal(bytes, 943718400);
    assert_true(fraction == 0);
    assert_int_equal(slc_parse_budget("60B", &bytes, &fraction), SLUICE_OK);
    assert_int_equal(slc_parse_budget("4096", &bytes, &fraction), SLUICE_OK);
    const char *wrong[] = {"0", "0%", "%", "60%%", "-5%", "lots", "60", "900", "4095", "60.", "1.5", "1e3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(slc_parse_budget(wrong[i], &bytes, &fraction), SLUICE_ERR_ARGUMENT);
}

static void bandwidths_and_times(void **state)
{
    (void)state;
    double value;
    assert_int_equal(slc_parse_bandwidth("1gbit", &value), SLUICE_OK);
    assert_true(value == 125e6);
    assert_int_equal(slc_parse_bandwidth("2.5Mbit", &value), SLUICE_OK);
    assert_true(value == 312500);
    assert_int_equal(slc_parse_bandwidth("1MB", &value), SLUICE_OK);
    assert_true(value == 1e6);
    assert_int_equal(slc_parse_bandwidth("0gbit", &value), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_parse_bandwidth("fast", &value), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_parse_bandwidth("5", &value), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_parse_bandwidth("1e9", &value), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_parse_bandwidth("", &value), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_parse_bandwidth("5e307mbit", &value), SLUICE_ERR_ARGUMENT); /* infinite with its unit */
    assert_int_equal(slc_parse_seconds("50us", &value), SLUICE_OK);
    assert_true(fabs(value - 50e-6) < 1e-15);
    assert_int_equal(slc_parse_seconds("2", &value), SLUICE_OK);
    assert_true(value == 2);
    assert_int_equal(slc_parse_seconds("50min", &value), SLUICE_OK);
    assert_true(value == 3000);
    assert_int_equal(slc_parse_seconds("1.5H", &value), SLUICE_OK);
    assert_true(value == 5400);
    assert_int_equal(slc_parse_seconds("5m", &value), SLUICE_ERR_ARGUMENT); /* minutes, or a mistyped ms */
    assert_int_equal(slc_parse_seconds("1e-3", &value), SLUICE_OK);
    assert_true(value == 1e-3);
    assert_int_equal(slc_parse_seconds("2.5E-1ms", &value), SLUICE_OK);
    assert_true(fabs(value - 2.5e-4) < 1e-15);
    assert_int_equal(slc_parse_seconds("-1", &value), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_parse_seconds("-0", &value), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_parse_seconds("1-", &value), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_parse_seconds("2 days", &value), SLUICE_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(budgets),
                                       cmocka_unit_test(bandwidths_and_times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
