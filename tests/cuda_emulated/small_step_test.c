/* A step of GPT-2 124M, with two ranks and the blocks that a GPU has by default, has so few launches and calls that
 * neither the host nor NCCL spends the step with them. The emulated runtime counts. The context is short,
 * because it changes none of these numbers. */
#include "lib/engine/runtime.h"
#include "tests/cuda_emulated/nano.h"
#include "tests/support/ranks.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <emulated.h>

enum { RANKS = 2, FIRST_STEPS = 2, LENGTH = 4, HANG_S = 550, MOST_COLLECTIVES = 60, MOST_LAUNCHES = 3 };

typedef struct {
    const char *strategy, *optimizer;
    sluice_sums sums;
    double clip;
} job;

typedef struct {
    emulated_counts all;
    uint64_t inspections, measurements, updates;
} counts;

static counts count_now(void)
{
    return (counts){emulated_count(), emulated_count_kernel("inspect_ranges"), emulated_count_kernel("measure_ranges"),
                    emulated_count_kernel("update_ranges") + emulated_count_kernel("apply_ranges")};
}

static int count_step(int rank, int size, void *context)
{
    const job *j = context;
    nano n;
    sluice_config config;
    (void)size;
    setenv("SLUICE_COMM_TRANSPORT", "nccl", 1);
    setenv("SLUICE_COMM_NCCL", SLUICE_TEST_NCCL, 1);
    setenv("SLUICE_EMULATED_MEMORY", "6442450944", 1);
    sluice_config_init(&config);
    config.schedule = "one_ahead";
    config.strategy = j->strategy;
    config.optimizer_name = j->optimizer;
    config.sums = j->sums;
    config.clip = j->clip;
    config.precision = SLUICE_BF16;
    RANK_CHECK(!nano_create_size(config, "small", 1, LENGTH, &n));
    for (int i = 0; i < FIRST_STEPS; i++) RANK_CHECK(!nano_step(&n, 1, (uint32_t)rank));
    RANK_CHECK(!sluice_runtime_sync(n.rt));
    const uint32_t units = n.rt->job.unit_count;
    const counts before = count_now();
    RANK_CHECK(!nano_step(&n, 1, (uint32_t)rank));
    RANK_CHECK(!sluice_runtime_sync(n.rt));
    const counts now = count_now();
    const uint64_t collectives = now.all.collectives - before.all.collectives;
    const uint64_t inspected = now.inspections - before.inspections, measured = now.measurements - before.measurements;
    const uint64_t updated = now.updates - before.updates;
    if (!rank)
        printf(
            "%s, %s, %u units: %llu collectives of %llu calls, %llu inspections, %llu measurements, %llu updates; %llu "
            "launches in all\n",
            j->strategy, j->optimizer, units, (unsigned long long)collectives,
            (unsigned long long)(now.all.calls - before.all.calls), (unsigned long long)inspected,
            (unsigned long long)measured, (unsigned long long)updated,
            (unsigned long long)(now.all.launches - before.all.launches));
    RANK_CHECK(collectives > 0 && collectives <= MOST_COLLECTIVES);
    RANK_CHECK(inspected > 0 && updated > 0);
    RANK_CHECK(inspected + measured + updated <= (uint64_t)MOST_LAUNCHES * units);
    nano_destroy(&n);
    return 0;
}

static void a_step_of_124M_has_few_launches_and_calls(void **state)
{
    (void)state;
    job jobs[] = {{"fsdp", "adamw", SLUICE_SUMS_ORDERED, 1}, {"dp", "lamb", SLUICE_SUMS_NCCL, 0}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        assert_int_equal(run_ranks(RANKS, count_step, &jobs[i], HANG_S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_of_124M_has_few_launches_and_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
