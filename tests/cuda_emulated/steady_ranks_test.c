/* Several ranks, a GPU each: in its steady state a step allocates nothing, neither of the GPU nor pinned, and the host
 * waits for the GPU once, whatever moves between the ranks meanwhile; a compressed exchange takes as many launches
 * whatever the number of a unit's parameters. The emulated runtime counts. No kernel is launched for the first time
 * while a collective is under way: the runtime would stop the program. */
#include "lib/engine/runtime.h"
#include "tests/cuda_emulated/nano.h"
#include "tests/support/ranks.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <emulated.h>

enum { FIRST_STEPS = 5, STEPS = 4, LENGTH_STAYS = 8, HANG_S = 100 };

typedef struct {
    const char *strategy;
    sluice_sums sums;
    float clip;
    const char *optimizer; /* NULL: adamw */
    bool recipes;          /* steps leave blocks out, and every eighth ones are short for eight steps */
} job;

static sluice_status step(const job *j, const nano *n, uint32_t number, int rank)
{
    double loss;
    sluice_status status = j->recipes ? nano_recipe_step(n, number, number / LENGTH_STAYS % 2, (uint32_t)rank)
                                      : nano_step(n, 1, (uint32_t)rank);
    return status ? status : sluice_model_loss(n->model, &loss);
}

static sluice_status open_rank(const job *j, nano *n)
{
    sluice_config config;
    sluice_config_init(&config);
    config.schedule = "serial";
    config.strategy = j->strategy;
    config.sums = j->sums;
    config.clip = (double)j->clip;
    if (j->optimizer) config.optimizer_name = j->optimizer;
    config.onebit.freeze_step = 2;
    return j->recipes ? nano_create_for_recipes(config, n) : nano_create(config, n);
}

/* Launches of each pass over a unit's tensors: compressing, serving, looking at packets and at results, updating. */
typedef struct {
    uint64_t sums, scales, looks, updates;
} passes;

static passes count_passes(void)
{
    return (passes){emulated_count_kernel("sum_grains_of"), emulated_count_kernel("give_scales"),
                    emulated_count_kernel("look_at"), emulated_count_kernel("gpu_each_of")};
}

static int check_passes(const passes *before, uint64_t units)
{
    const passes now = count_passes();
    RANK_CHECK(now.sums - before->sums == 2 * units);
    RANK_CHECK(now.scales - before->scales == 2 * units);
    RANK_CHECK(now.looks - before->looks == 2 * units);
    RANK_CHECK(now.updates - before->updates == units);
    return 0;
}

static int count_steps(int rank, int size, void *context)
{
    const job *j = context;
    nano n;
    (void)size;
    setenv("SLUICE_COMM_TRANSPORT", "nccl", 1);
    setenv("SLUICE_COMM_NCCL", SLUICE_TEST_NCCL, 1);
    setenv("SLUICE_EMULATED_LOADED", "2", 1);
    RANK_CHECK(!open_rank(j, &n));
    for (uint32_t i = 0; i < FIRST_STEPS + (j->recipes ? 4 * LENGTH_STAYS : STEPS); i++) {
        const emulated_counts before = emulated_count();
        const passes passes_before = count_passes();
        RANK_CHECK(!step(j, &n, i, rank));
        const emulated_counts now = emulated_count();
        if (i < FIRST_STEPS || (j->recipes && i % LENGTH_STAYS < FIRST_STEPS)) continue;
        RANK_CHECK(now.allocations == before.allocations);
        RANK_CHECK(now.waits == before.waits + 1);
        if (!j->optimizer) continue;
        RANK_CHECK(!sluice_runtime_sync(n.rt));
        if (check_passes(&passes_before, n.rt->job.unit_count)) return 1;
    }
    RANK_CHECK(!sluice_runtime_sync(n.rt));
    nano_destroy(&n);
    return 0;
}

static void a_step_allocates_nothing_and_waits_once(void **state)
{
    (void)state;
    job jobs[] = {
        {"dp", SLUICE_SUMS_ORDERED, 0, NULL, false},  {"fsdp", SLUICE_SUMS_ORDERED, 1, NULL, false},
        {"sdp", SLUICE_SUMS_NCCL, 0, NULL, false},    {"onebit", SLUICE_SUMS_ORDERED, 0, "onebit_lamb", false},
        {"fsdp", SLUICE_SUMS_ORDERED, 0, NULL, true}, {"oss", SLUICE_SUMS_ORDERED, 1, NULL, true}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        assert_int_equal(run_ranks(2, count_steps, &jobs[i], HANG_S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_allocates_nothing_and_waits_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
