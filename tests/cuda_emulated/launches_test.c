/* A step of a model inspects and updates a unit by one launch each, whatever the number of its parameters and blocks.
 * The emulated runtime counts. */
#include "lib/engine/runtime.h"
#include "tests/cuda_emulated/nano.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <emulated.h>
#include <string.h>

enum { FIRST_STEPS = 3, STEPS = 2 };

static void must(sluice_status status)
{
    if (status) fail_msg("%s: %s", sluice_status_name(status), sluice_last_error());
}

static void step(const nano *n)
{
    must(nano_step(n, 1, 0));
    must(sluice_runtime_sync(n->rt));
}

typedef struct {
    uint64_t inspections, measurements, updates;
} counts;

static counts count_now(void)
{
    return (counts){emulated_count_kernel("inspect_ranges"), emulated_count_kernel("measure_ranges"),
                    emulated_count_kernel("update_ranges") + emulated_count_kernel("apply_ranges")};
}

static void count_steps(uint64_t block_bytes, const char *optimizer, sluice_dtype precision, double clip)
{
    nano n;
    sluice_config config;
    sluice_config_init(&config);
    config.schedule = "serial";
    config.strategy = "dp";
    config.fuse = "off";
    config.block_bytes = block_bytes;
    config.optimizer_name = optimizer;
    config.precision = precision;
    config.clip = clip;
    must(nano_create(config, &n));
    const sluice_runtime *rt = n.rt;
    uint64_t blocks = 0, params = 0;
    const uint32_t units = rt->job.unit_count;
    for (uint32_t u = 0; u < units; u++) {
        blocks += slc_unit_blocks(&rt->job.units[u]);
        params += rt->units[u].param_count;
    }
    for (int i = 0; i < FIRST_STEPS; i++) step(&n);
    for (int i = 0; i < STEPS; i++) {
        const counts before = count_now();
        step(&n);
        const counts now = count_now();
        const uint64_t inspected = now.inspections - before.inspections, updated = now.updates - before.updates;
        const uint64_t measured = now.measurements - before.measurements;
        if (i == 0)
            print_message("%s, %u units, %llu blocks, %llu parameters: %llu inspections, %llu measurements, %llu "
                          "updates\n",
                          optimizer, units, (unsigned long long)blocks, (unsigned long long)params,
                          (unsigned long long)inspected, (unsigned long long)measured, (unsigned long long)updated);
        assert_in_range(inspected, 1, units);
        assert_in_range(updated, 1, units);
        assert_in_range(measured, strcmp(optimizer, "lamb") ? 0 : 1, strcmp(optimizer, "lamb") ? 0 : units);
    }
    assert_true(params > 2 * units);
    nano_destroy(&n);
}

static void blocks_cost_no_launch(void **state)
{
    (void)state;
    count_steps(16 << 10, "adamw", SLUICE_FP32, 0);
    count_steps(16 << 10, "adamw", SLUICE_BF16, 1);
    count_steps(16 << 10, "lamb", SLUICE_FP32, 0);
}

static void the_default_block_is_larger_than_a_unit(void **state)
{
    (void)state;
    count_steps(0, "adamw", SLUICE_BF16, 0);
    count_steps(0, "lamb", SLUICE_BF16, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_cost_no_launch),
                                       cmocka_unit_test(the_default_block_is_larger_than_a_unit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
