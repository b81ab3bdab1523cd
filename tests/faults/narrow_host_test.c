/* Hosts that deny something: memfd_create, without which ranks share no memory, or more threads. A run goes on without
 * a thing that it can do without; else an error says what is denied and what to do. */
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { LIMIT_S = 60, ELEMENTS = 3 << 20 };

static bool denied; /* memfd_create is, as by a container's seccomp profile */

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);

int __wrap_memfd_create(const char *name, unsigned flags)
{
    if (!denied) return __real_memfd_create(name, flags);
    errno = EPERM;
    return -1;
}

static int train(void)
{
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_param *param;
    sluice_config config;
    sluice_config_init(&config);
    RANK_CHECK(!sluice_world_create(NULL, &world) && !sluice_runtime_create(world, &config, &rt));
    RANK_CHECK(!sluice_layer_add(rt, "only", &layer));
    RANK_CHECK(!sluice_param_add(layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = ELEMENTS), &param));
    RANK_CHECK(!sluice_runtime_commit(rt));
    for (int step = 0; step < 4; step++) {
        if (step == 2) RANK_CHECK(!sluice_runtime_replan(rt, "fsdp", NULL, 0)); /* memory is given back */
        RANK_CHECK(!sluice_step_begin(rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
        RANK_CHECK(!sluice_forward_begin(layer) && !sluice_forward_end(layer) && !sluice_backward_begin(layer));
        float *gradient = sluice_param_gradient(param);
        for (int i = 0; i < ELEMENTS; i += 1000) gradient[i] += 1;
        RANK_CHECK(!sluice_backward_end(layer) && !sluice_step_end(rt, NULL));
    }
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return 0;
}

static int train_without_shared_memory(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    denied = true;
    setenv("SLUICE_COMM_DIRECT", "off", 1);
    return train();
}

static int train_alone(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    denied = true;
    return train();
}

static int share_memory(int rank, int size, void *context)
{
    sluice_world *world;
    (void)rank, (void)size, (void)context;
    denied = true;
    RANK_CHECK(sluice_world_create(NULL, &world) == SLUICE_ERR_SYSTEM);
    RANK_CHECK(strstr(sluice_last_error(), "memfd_create: Operation not permitted"));
    RANK_CHECK(strstr(sluice_last_error(), "SLUICE_COMM_DIRECT=off"));
    return 0;
}

static void one_rank_shares_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, train_alone, NULL, LIMIT_S), 0);
}

static void ranks_that_send_messages_share_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, train_without_shared_memory, NULL, LIMIT_S), 0);
}

static void sharing_without_memfd_is_refused(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, share_memory, NULL, LIMIT_S), 0);
}

static void *end_at_once(void *context)
{
    return context;
}

/* OpenMP would end the process with words of its own. */
static int compute_with_threads(int rank, int size, void *context)
{
    sluice_world *world;
    sluice_runtime *rt;
    sluice_config config;
    pthread_t thread;
    (void)rank, (void)size, (void)context;
    if (!getuid() && setuid(65534)) return 77;
    sluice_config_init(&config);
    config.threads = 4;
    RANK_CHECK(!sluice_world_create(NULL, &world));
    struct rlimit before, none;
    RANK_CHECK(!getrlimit(RLIMIT_NPROC, &before) && !prctl(PR_SET_DUMPABLE, 1)); /* for the leak checker at the end */
    none = (struct rlimit){.rlim_max = before.rlim_max};
    if (setrlimit(RLIMIT_NPROC, &none) || !pthread_create(&thread, NULL, end_at_once, NULL)) return 77;
    RANK_CHECK(sluice_runtime_create(world, &config, &rt) == SLUICE_ERR_SYSTEM);
    RANK_CHECK(strstr(sluice_last_error(), "4 compute threads, of which 1 start"));
    RANK_CHECK(strstr(sluice_last_error(), "the limit is 0 for this user's (ulimit -u)"));
    config.threads = 1;
    RANK_CHECK(!sluice_runtime_create(world, &config, &rt));
    RANK_CHECK(!setrlimit(RLIMIT_NPROC, &before));
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return 0;
}

static void too_few_threads_are_named(void **state)
{
    int code;
    (void)state;
    (void)run_ranks_codes(1, compute_with_threads, NULL, LIMIT_S, &code);
    if (code == 77) {
        print_message("SKIP: this user's threads cannot be limited here\n");
        skip();
    }
    assert_int_equal(code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_shares_nothing),
        cmocka_unit_test(ranks_that_send_messages_share_nothing),
        cmocka_unit_test(sharing_without_memfd_is_refused),
        cmocka_unit_test(too_few_threads_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
