/* If a rank dies while rank 0 plans, rank 0 hears of it and stops planning: it plans again and again until then. The
 * time that this took is printed. */
#include "tests/support/engine/plain_layers.h"
#include "tests/support/ranks.h"

#include "lib/base/clock.h"
#include "lib/engine/runtime.h"
#include "lib/plan/request.h"
#include "sched/planner.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <cmocka.h>
#include <pthread.h>

enum { LAYERS = 60, COUNT = 3000, VICTIM = 1, SIZE = 3 };

/* All processes share this memory. */
static struct {
    pid_t victim;
    uint64_t died_ns;
    double known_s[SIZE];
    sluice_status planning; /* how rank 0's planning ended */
} * seen;

static void *kill_later(void *argument)
{
    (void)argument;
    wait_ms(200);
    seen->died_ns = slc_clock_ns();
    kill(seen->victim, SIGKILL);
    return NULL;
}

/* Rank 0's planner: the victim dies while it works. */
static sluice_status plan_while_it_dies(void *context, const slc_job *job, const slc_plan_request *request,
                                        slc_plan_answer *answer)
{
    (void)context;
    pthread_t killer;
    if (!request->times) return slc_plan_for_budget(job, request, answer);
    if (pthread_create(&killer, NULL, kill_later, NULL)) return SLUICE_ERR_SYSTEM;
    sluice_status status = slc_plan_for_budget(job, request, answer);
    while (!status) {
        slc_plan_destroy(answer->plan);
        status = slc_plan_for_budget(job, request, answer);
    }
    pthread_join(killer, NULL);
    seen->planning = status;
    return status;
}

static int train_until_it_dies(int rank, int size, void *context)
{
    sluice_world *world;
    sluice_runtime *rt;
    plain_layers layers;
    sluice_config config;
    (void)size, (void)context;
    setenv("SLUICE_COMM_DIRECT", "off", 1);
    sluice_config_init(&config);
    config.strategy = "auto";
    config.schedule = "ilp";
    config.budget_of_dp = 0.8;
    if (rank == VICTIM) seen->victim = getpid();
    RANK_CHECK(!sluice_world_create(NULL, &world));
    RANK_CHECK(!sluice_runtime_create(world, &config, &rt));
    rt->planning.planner.plan = plan_while_it_dies;
    RANK_CHECK(!plain_layers_add(&layers, rt, LAYERS, COUNT) && !sluice_runtime_commit(rt));
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.1);
    sluice_status status = SLUICE_OK;
    while (!status) status = plain_layers_step(&layers, &options, NULL, NULL, NULL);
    seen->known_s[rank] = slc_seconds(slc_clock_ns() - seen->died_ns);
    RANK_CHECK(status == SLUICE_ERR_PEER && strstr(sluice_last_error(), "rank 1 died"));
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return 0;
}

static void rank_0_hears_while_it_plans(void **state)
{
    (void)state;
    int codes[SIZE];
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(seen != MAP_FAILED);
    run_ranks_codes(SIZE, train_until_it_dies, NULL, 110, codes);
    printf("planning ended %.3f s after the death, the other survivor knew after %.3f s\n", seen->known_s[0],
           seen->known_s[2]);
    assert_int_equal(codes[0], 0);
    assert_int_equal(codes[2], 0);
    assert_int_equal(codes[VICTIM], 128 + SIGKILL);
    assert_int_equal(seen->planning, SLUICE_ERR_INTERRUPTED);
    munmap(seen, sizeof *seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rank_0_hears_while_it_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
