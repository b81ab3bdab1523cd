/* Lanes of updates as a program meets them: which may be asked for, an optimizer that takes one thread at a time, the
 * two times of a profile, and a plan that puts an update where it may not be. engine_test checks that the bits are the
 * same. */
#include "lib/engine/engine.h"
#include "lib/engine/runtime.h"
#include "lib/plan/profile.h"
#include "sched/planner.h"
#include "tests/support/engine/plain_layers.h"
#include "tests/support/planner_of.h"
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LAYERS = 4, COUNT = 5000 };

typedef struct {
    sluice_updates updates;
    const char *schedule, *setting;
    bool concurrent;
} trial;

typedef struct {
    sluice_world *world;
    plain_layers layers;
} model;

static sluice_status descend(const sluice_update *u, void *context)
{
    (void)context;
    for (size_t i = 0; i < u->count; i++) u->value[i] -= (float)u->learning_rate * ((const float *)u->gradient)[i];
    return SLUICE_OK;
}

static sluice_config config_of(const trial *t, sluice_optimizer *optimizer)
{
    sluice_config config;
    *optimizer = SLUICE_INIT(sluice_optimizer, .name = "descent", .update = descend, .concurrent = t->concurrent);
    sluice_config_init(&config);
    config.optimizer = optimizer;
    config.strategy = "fsdp";
    config.schedule = t->schedule;
    config.updates = t->updates;
    config.fuse = "off";
    config.threads = 2;
    return config;
}

static int create(const trial *t, slc_plan_function plan, model *m)
{
    sluice_optimizer optimizer;
    sluice_runtime *rt;
    sluice_config config = config_of(t, &optimizer);
    setenv("SLUICE_PLAN_UPDATES", t->setting ? t->setting : "auto", 1);
    RANK_CHECK(!sluice_world_create(NULL, &m->world));
    RANK_CHECK(!slc_engine_create(m->world, &config, planner_of(plan), &rt));
    RANK_CHECK(!plain_layers_add(&m->layers, rt, LAYERS, COUNT));
    return 0;
}

static int step(model *m)
{
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.5);
    RANK_CHECK(!plain_layers_step(&m->layers, &options, NULL, NULL, &report));
    RANK_CHECK(report.exposed_s >= 0 && report.exposed_s <= report.step_s);
    return 0;
}

static uint32_t computed(const model *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->layers.rt->current.plan->train.item_count; i++)
        count += m->layers.rt->current.plan->train.items[i].on_compute;
    return count;
}

static int destroy(model *m)
{
    sluice_runtime_destroy(m->layers.rt);
    sluice_world_destroy(m->world);
    return 0;
}

/* `computed` is how many of the LAYERS updates must be on the compute lane; values must be the same as on the other
 * lane. */
typedef struct {
    trial t;
    uint32_t computed;
} asked;

static int runs(int rank, int size, void *context)
{
    const asked *a = context;
    model m;
    float *values = malloc(COUNT * sizeof *values);
    (void)rank, (void)size;
    if (create(&a->t, slc_library_planner().plan, &m)) return 1;
    RANK_CHECK(!sluice_runtime_commit(m.layers.rt));
    for (int l = 0; l < LAYERS; l++) {
        for (int i = 0; i < COUNT; i++) values[i] = (float)i;
        RANK_CHECK(!sluice_param_write(m.layers.param[l], 0, COUNT, values));
    }
    RANK_CHECK(computed(&m) == a->computed);
    for (int s = 0; s < 2; s++)
        if (step(&m)) return 1;
    for (int l = 0; l < LAYERS; l++) {
        RANK_CHECK(!sluice_param_read(m.layers.param[l], 0, COUNT, values));
        for (int i = 0; i < COUNT; i++) RANK_CHECK(values[i] == (float)i - 0.5f - 0.5f);
    }
    free(values);
    return destroy(&m);
}

static void updates_run_where_they_are_asked_to(void **state)
{
    (void)state;
    const asked all[] = {
        {{SLUICE_UPDATES_COMPUTE, "one_ahead", "communication", true}, LAYERS}, /* before the setting */
        {{SLUICE_UPDATES_BY_SETTING, "serial", "compute", true}, LAYERS},
        {{SLUICE_UPDATES_BOTH, "one_ahead", NULL, true}, LAYERS / 2},
        {{SLUICE_UPDATES_COMMUNICATION, slc_schedule_default, "compute", true}, 0},
        {{SLUICE_UPDATES_BY_SETTING, "one_ahead", NULL, true}, 0}, /* no plan with measured times follows */
        {{SLUICE_UPDATES_BY_SETTING, slc_schedule_default, NULL, true}, LAYERS / 2}, /* such a plan follows */
        {{SLUICE_UPDATES_COMPUTE, "one_ahead", NULL, false}, 0}, /* the optimizer takes one thread at a time */
        {{SLUICE_UPDATES_BOTH, slc_schedule_default, NULL, false}, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(run_ranks(1 + (int)i % 3, runs, (void *)(uintptr_t)&all[i], 60), 0);
}

static int refuses(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_optimizer optimizer;
    sluice_config config = config_of(&(trial){(sluice_updates)9, "serial", NULL, true}, &optimizer);
    RANK_CHECK(!sluice_world_create(NULL, &world));
    RANK_CHECK(sluice_runtime_create(world, &config, &rt) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "auto, communication, compute or both"));
    config.updates = SLUICE_UPDATES_BY_SETTING;
    setenv("SLUICE_PLAN_UPDATES", "thread", 1);
    RANK_CHECK(sluice_runtime_create(world, &config, &rt) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "\"thread\"") && strstr(sluice_last_error(), "SLUICE_PLAN_UPDATES"));
    sluice_world_destroy(world);
    return 0;
}

/* A planner that ignores the request's lane. */
static sluice_status plan_on_compute(void *context, const slc_job *job, const slc_plan_request *request,
                                     slc_plan_answer *answer)
{
    (void)context;
    slc_plan_request asked_for = *request;
    asked_for.updates = SLC_UPDATES_COMPUTE;
    return slc_plan_for_budget(job, &asked_for, answer);
}

static int refuses_a_plan(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    model m;
    if (create(&(trial){SLUICE_UPDATES_BY_SETTING, "serial", NULL, false}, plan_on_compute, &m)) return 1;
    RANK_CHECK(sluice_runtime_commit(m.layers.rt) == SLUICE_ERR_FORMAT);
    RANK_CHECK(strstr(sluice_last_error(), "optimizer descent may be called by one thread at a time only"));
    return destroy(&m);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, refuses, NULL, 60), 0);
    assert_int_equal(run_ranks(2, refuses_a_plan, NULL, 60), 0);
}

static int writes_a_profile(int rank, int size, void *context)
{
    (void)size;
    model m;
    const char *path = context;
    if (create(&(trial){SLUICE_UPDATES_BOTH, "serial", NULL, true}, slc_library_planner().plan, &m)) return 1;
    RANK_CHECK(!sluice_runtime_commit(m.layers.rt));
    for (int s = 0; s < 3; s++)
        if (step(&m)) return 1;
    RANK_CHECK(!sluice_runtime_profile_write(m.layers.rt, path, "lanes"));
    if (!rank) {
        slc_profile *profile;
        RANK_CHECK(!slc_profile_read(path, &profile));
        RANK_CHECK(profile->times.update_s_per_element > 0 && profile->times.update_compute_s_per_element > 0);
        slc_profile_destroy(profile);
    }
    /* Every rank hears that a file cannot be written, and training goes on. */
    RANK_CHECK(sluice_runtime_profile_write(m.layers.rt, "/tmp/sluice-no-such-folder/profile.json", "lanes"));
    if (step(&m)) return 1;
    return destroy(&m);
}

static void a_profile_knows_both_lanes(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/sluice-update-lanes-%d.json", (int)getpid());
    int failed = run_ranks(2, writes_a_profile, path, 60);
    unlink(path);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_run_where_they_are_asked_to),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_profile_knows_both_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
