/* A host, a control group and a limit of addresses each take what fits, to the byte, and refuse one byte more. */
#include "bench/cli/memory_fit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const uint64_t gib = UINT64_C(1) << 30;

static sluice_status fit(slc_host_memory memory, uint64_t bytes, uint64_t mapped, uint32_t ranks)
{
    const slc_memory_need need = {.bytes = bytes, .mapped_bytes = mapped, .ranks = ranks};
    return slc_memory_fit(&memory, &need, "-e");
}

static void test_what_is_left_counts_for_all_ranks(void **state)
{
    (void)state;
    const slc_host_memory host = {.available_bytes = 8 * gib, .ram_bytes = 16 * gib, .address_bytes = UINT64_MAX};
    assert_int_equal(fit(host, 8 * gib, 0, 1), SLUICE_OK);
    assert_int_equal(fit(host, 8 * gib + 1, 0, 1), SLUICE_ERR_ARGUMENT);
    assert_int_equal(fit(host, 4 * gib, 0, 2), SLUICE_OK);
    assert_int_equal(fit(host, 4 * gib + 1, 0, 2), SLUICE_ERR_ARGUMENT);
    assert_string_equal(sluice_last_error(), "-e: needs 2 ranks x 4.0 GiB = 8.0 GiB on this host, but 8.0 GiB of the "
                                             "host's 16.0 GiB are available; give a smaller size, or start fewer ranks "
                                             "here");
    assert_int_equal(fit(host, 2048 * gib, 0, 4095), SLUICE_ERR_ARGUMENT);
}

static void test_a_control_group_is_named(void **state)
{
    (void)state;
    const slc_host_memory group = {
        .available_bytes = gib, .ram_bytes = 16 * gib, .cgroup_bytes = 2 * gib, .address_bytes = UINT64_MAX};
    assert_int_equal(fit(group, gib, 0, 1), SLUICE_OK);
    assert_int_equal(fit(group, 2 * gib, 0, 1), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "a control group's limit is 2.0 GiB"));
}

static void test_addresses_count_peers_too(void **state)
{
    (void)state;
    const slc_host_memory limited = {.available_bytes = 64 * gib, .ram_bytes = 64 * gib, .address_bytes = 3 * gib};
    assert_int_equal(fit(limited, gib, 2 * gib, 3), SLUICE_OK);
    assert_int_equal(fit(limited, gib, 2 * gib + 1, 3), SLUICE_ERR_ARGUMENT);
    assert_int_equal(fit(limited, gib, UINT64_MAX, 3), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "ulimit -v"));
}

static void test_a_system_that_says_nothing_refuses_nothing(void **state)
{
    (void)state;
    const slc_host_memory silent = {.available_bytes = UINT64_MAX, .address_bytes = UINT64_MAX};
    assert_int_equal(fit(silent, 1024 * gib, 1024 * gib, 64), SLUICE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_left_counts_for_all_ranks),
        cmocka_unit_test(test_a_control_group_is_named),
        cmocka_unit_test(test_addresses_count_peers_too),
        cmocka_unit_test(test_a_system_that_says_nothing_refuses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
