/* Calls at a wrong moment whose effect a table of statuses (every_call_test.c) does not show: a world that is destroyed
 * before its runtime, numbers of updates that cannot be or that differ between ranks. */
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LIMIT_S = 60, ELEMENTS = 1000 };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_param *w;
} program;

static int create(program *p)
{
    sluice_config config;
    sluice_config_init(&config);
    config.schedule = "one_ahead";
    RANK_CHECK(!sluice_world_create(NULL, &p->world));
    RANK_CHECK(!sluice_runtime_create(p->world, &config, &p->rt));
    RANK_CHECK(!sluice_layer_add(p->rt, "only", &p->layer));
    RANK_CHECK(!sluice_param_add(p->layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = ELEMENTS), &p->w));
    return 0;
}

static int one_step(program *p)
{
    RANK_CHECK(!sluice_step_begin(p->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
    RANK_CHECK(!sluice_forward_begin(p->layer) && !sluice_forward_end(p->layer));
    RANK_CHECK(!sluice_backward_begin(p->layer));
    float *gradient = sluice_param_gradient(p->w);
    for (int i = 0; i < ELEMENTS; i++) gradient[i] += 1;
    RANK_CHECK(!sluice_backward_end(p->layer) && !sluice_step_end(p->rt, NULL));
    return 0;
}

/* If a world is destroyed before its runtime, the runtime goes on, and its own end ends the world. */
static int world_first(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p;
    if (create(&p)) return 1;
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    if (one_step(&p)) return 1;
    FILE *heard = tmpfile();
    char text[2000];
    dup2(fileno(heard), STDERR_FILENO);
    sluice_world_destroy(p.world);
    if (one_step(&p)) return 1;
    sluice_world_destroy(p.world); /* said once */
    sluice_runtime_destroy(p.rt);
    rewind(heard);
    text[fread(text, 1, sizeof text - 1, heard)] = 0;
    const char *line = strstr(text, "sluice_world_destroy was called before sluice_runtime_destroy of 1 runtime;");
    RANK_CHECK(line && !strstr(line + 1, "sluice_world_destroy was called"));
    fclose(heard);
    return 0;
}

static void a_world_outlives_its_runtimes(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, world_first, NULL, LIMIT_S), 0);
}

/* A number of updates is one for which bias correction can be computed, and the same on every rank. */
static int odd_numbers_of_steps(int rank, int size, void *context)
{
    (void)size, (void)context;
    program p;
    if (create(&p)) return 1;
    RANK_CHECK(sluice_runtime_step_set(p.rt, 5) == SLUICE_ERR_ORDER); /* before commit */
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    RANK_CHECK(sluice_runtime_step_set(p.rt, UINT64_MAX) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(sluice_runtime_step_set(p.rt, UINT64_C(1) << 53) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(!sluice_runtime_step_set(p.rt, 1000) && sluice_runtime_step(p.rt) == 1000);
    if (one_step(&p)) return 1;
    RANK_CHECK(sluice_runtime_step(p.rt) == 1001);
    RANK_CHECK(sluice_runtime_step_set(p.rt, 7 + (uint64_t)rank) == SLUICE_ERR_MISMATCH);
    RANK_CHECK(strstr(sluice_last_error(), "is 7 on rank 0 and 8 on rank 1"));
    sluice_runtime_destroy(p.rt);
    sluice_world_destroy(p.world);
    return 0;
}

static void a_number_of_updates_is_checked(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, odd_numbers_of_steps, NULL, LIMIT_S), 0);
}

/* A world serves one runtime at a time: the second is refused if it would take the first one's memory away, the
 * first goes on, and once it is gone the second commits. */
static int second_commit(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p, other;
    sluice_config config;
    if (create(&p)) return 1;
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    sluice_config_init(&config);
    config.schedule = "one_ahead";
    other = p;
    RANK_CHECK(!sluice_runtime_create(p.world, &config, &other.rt));
    RANK_CHECK(!sluice_layer_add(other.rt, "only", &other.layer));
    RANK_CHECK(
        !sluice_param_add(other.layer, &SLUICE_INIT(sluice_param_desc, .name = "w", .count = ELEMENTS), &other.w));
    RANK_CHECK(sluice_runtime_commit(other.rt) == SLUICE_ERR_ORDER);
    RANK_CHECK(strstr(sluice_last_error(), "another runtime of this world"));
    if (one_step(&p)) return 1;
    sluice_runtime_destroy(p.rt);
    RANK_CHECK(!sluice_runtime_commit(other.rt));
    if (one_step(&other)) return 1;
    sluice_runtime_destroy(other.rt);
    sluice_world_destroy(p.world);
    return 0;
}

static void one_runtime_at_a_time(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, second_commit, NULL, LIMIT_S), 0);
    assert_int_equal(run_ranks(1, second_commit, NULL, LIMIT_S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_world_outlives_its_runtimes),
                                       cmocka_unit_test(one_runtime_at_a_time),
                                       cmocka_unit_test(a_number_of_updates_is_checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
