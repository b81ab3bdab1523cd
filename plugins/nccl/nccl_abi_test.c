/* Our declarations of NCCL's interface are those of NVIDIA's header, number by number. (That the prototypes are the
 * same is proven by nccl_abi_theirs.c, which is compiled with both.) */
#include "plugins/nccl/nccl_abi.h"
#include "plugins/nccl/abi_numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void numbers_are_equal(void **state)
{
    static const abi_number ours[] = {ABI_NUMBERS};
    (void)state;
    assert_int_equal(sizeof ours / sizeof *ours, abi_theirs_count);
    for (size_t i = 0; i < abi_theirs_count; i++) {
        assert_string_equal(ours[i].name, abi_theirs[i].name);
        if (ours[i].value == abi_theirs[i].value) continue;
        print_message("%s: ours %lld, theirs %lld\n", ours[i].name, ours[i].value, abi_theirs[i].value);
        fail();
    }
}

static void initial_values_are_equal(void **state)
{
    (void)state;
    abi_initial theirs;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    abi_theirs_initial(&theirs);
    assert_memory_equal(&config, theirs.config, sizeof config);
    assert_memory_equal(&info, theirs.info, offsetof(ncclSimInfo_t, estimatedTime) + sizeof info.estimatedTime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_equal), cmocka_unit_test(initial_values_are_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
