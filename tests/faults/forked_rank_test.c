/* A rank may fork a child in the middle of training, as a data loader does: the child's calls on the runtime are errors
 * and end soon, and training goes on as if the child were not there. */
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { COUNT = 5000, STEPS = 4, PARENT = 1 };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_param *param;
    float values[COUNT];
} job;

static int refused(sluice_status status)
{
    return status == SLUICE_ERR_ORDER && strstr(sluice_last_error(), "forked from rank 1");
}

static int child(job *j)
{
    alarm(30);
    memset(j->values, 0, sizeof j->values);
    RANK_CHECK(refused(sluice_param_write(j->param, 0, COUNT, j->values)));
    RANK_CHECK(refused(sluice_param_read(j->param, 0, COUNT, j->values)));
    RANK_CHECK(refused(sluice_forward_begin(j->layer)));
    RANK_CHECK(refused(sluice_step_begin(j->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1))));
    RANK_CHECK(refused(sluice_runtime_sync(j->rt)));
    RANK_CHECK(refused(sluice_world_barrier(j->world)));
    sluice_runtime_destroy(j->rt);
    sluice_world_destroy(j->world);
    return 0;
}

/* A child leaves its copy of what the parent's transport allocated, which the leak checker would count. */
static void leave_child(int code)
{
#ifdef __SANITIZE_ADDRESS__
    _exit(code);
#else
    exit(code);
#endif
}

static int step(job *j, bool forks)
{
    pid_t pid = -1;
    RANK_CHECK(!sluice_step_begin(j->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
    RANK_CHECK(!sluice_forward_begin(j->layer));
    if (forks && !(pid = fork())) leave_child(child(j));
    RANK_CHECK(!sluice_forward_end(j->layer));
    RANK_CHECK(!sluice_backward_begin(j->layer));
    float *gradient = sluice_param_gradient(j->param);
    const float *value = sluice_param_value(j->param);
    RANK_CHECK(gradient && value);
    for (int i = 0; i < COUNT; i++) gradient[i] += value[i] - (float)i / COUNT;
    RANK_CHECK(!sluice_backward_end(j->layer));
    RANK_CHECK(!sluice_step_end(j->rt, NULL));
    int status = 0;
    if (pid > 0) RANK_CHECK(waitpid(pid, &status, 0) == pid && !status);
    return 0;
}

static int train(const sluice_config *config, bool forks, float *out)
{
    static job j;
    RANK_CHECK(!sluice_world_create(NULL, &j.world));
    RANK_CHECK(!sluice_runtime_create(j.world, config, &j.rt));
    RANK_CHECK(!sluice_layer_add(j.rt, "only", &j.layer));
    RANK_CHECK(!sluice_param_add(j.layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = COUNT), &j.param));
    RANK_CHECK(!sluice_runtime_commit(j.rt));
    for (int i = 0; i < COUNT; i++) j.values[i] = 1;
    RANK_CHECK(!sluice_param_write(j.param, 0, COUNT, j.values));
    for (int i = 0; i < STEPS; i++)
        if (step(&j, forks)) return 1;
    RANK_CHECK(!sluice_param_read(j.param, 0, COUNT, out));
    sluice_runtime_destroy(j.rt);
    sluice_world_destroy(j.world);
    return 0;
}

static int with_and_without(int rank, int size, void *context)
{
    static float plain[COUNT], forked[COUNT];
    (void)size;
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = context;
    if (train(&config, false, plain) || train(&config, rank == PARENT, forked)) return 1;
    RANK_CHECK(!memcmp(plain, forked, sizeof plain));
    return 0;
}

static void training_goes_on_beside_a_forked_child(void **state)
{
    (void)state;
    const char *const strategies[] = {"dp", "fsdp"};
    for (size_t s = 0; s < 2; s++)
        assert_int_equal(run_ranks(2, with_and_without, (void *)(uintptr_t)strategies[s], 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(training_goes_on_beside_a_forked_child)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
