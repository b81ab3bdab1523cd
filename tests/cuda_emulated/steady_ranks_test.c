/* Several ranks, a GPU each: in its steady state a step allocates nothing, neither of the GPU nor pinned, and the host
 * waits for the GPU once, whatever moves between the ranks meanwhile. The emulated runtime counts. No kernel is
 * launched for the first time while a collective is under way: the runtime would stop the program. */
#include "tests/support/ranks.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <emulated.h>
#include <sluice/model.h>
#include <sluice/sluice.h>

enum { BATCH = 2, LENGTH = 16, ROWS = BATCH * LENGTH, FIRST_STEPS = 5, STEPS = 4, HANG_S = 100 };

typedef struct {
    const char *strategy;
    sluice_sums sums;
    float clip;
} job;

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
} rank_state;

static sluice_status step(const rank_state *r, int rank)
{
    int32_t tokens[ROWS], targets[ROWS];
    double loss = 0;
    for (int i = 0; i < ROWS; i++) tokens[i] = targets[i] = (rank * 31 + i * 7) % 256;
    sluice_status status = sluice_step_begin(r->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3));
    if (!status)
        status = sluice_model_forward(r->model, &SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = targets));
    if (!status) status = sluice_model_backward(r->model, NULL);
    if (!status) status = sluice_step_end(r->rt, NULL);
    if (!status) status = sluice_model_loss(r->model, &loss);
    return status;
}

static sluice_status open_rank(const job *j, rank_state *r)
{
    sluice_config config;
    sluice_model_config gpt2 = SLUICE_INIT(sluice_model_config);
    sluice_config_init(&config);
    config.device = "cuda";
    config.schedule = "serial";
    config.strategy = j->strategy;
    config.sums = j->sums;
    config.clip = (double)j->clip;
    sluice_status status = sluice_model_config_named("gpt2", "nano", &gpt2);
    if (!status) status = sluice_world_create(NULL, &r->world);
    if (!status) status = sluice_runtime_create(r->world, &config, &r->rt);
    if (!status)
        status = sluice_model_create(r->rt, &gpt2, &SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = LENGTH),
                                     &r->model);
    if (!status) status = sluice_runtime_commit(r->rt);
    return status ? status : sluice_model_init(r->model, 1);
}

static int count_steps(int rank, int size, void *context)
{
    rank_state r = {0};
    (void)size;
    setenv("SLUICE_COMM_TRANSPORT", "nccl", 1);
    setenv("SLUICE_COMM_NCCL", SLUICE_TEST_NCCL, 1);
    setenv("SLUICE_EMULATED_LOADED", "2", 1);
    RANK_CHECK(!open_rank(context, &r));
    for (int i = 0; i < FIRST_STEPS; i++) RANK_CHECK(!step(&r, rank));
    for (int i = 0; i < STEPS; i++) {
        const emulated_counts before = emulated_count();
        RANK_CHECK(!step(&r, rank));
        const emulated_counts now = emulated_count();
        RANK_CHECK(now.allocations == before.allocations);
        RANK_CHECK(now.waits == before.waits + 1);
    }
    RANK_CHECK(!sluice_runtime_sync(r.rt));
    sluice_model_destroy(r.model);
    sluice_runtime_destroy(r.rt);
    sluice_world_destroy(r.world);
    return 0;
}

static void a_step_allocates_nothing_and_waits_once(void **state)
{
    (void)state;
    job jobs[] = {{"dp", SLUICE_SUMS_ORDERED, 0}, {"fsdp", SLUICE_SUMS_ORDERED, 1}, {"sdp", SLUICE_SUMS_NCCL, 0}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        assert_int_equal(run_ranks(2, count_steps, &jobs[i], HANG_S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_allocates_nothing_and_waits_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
