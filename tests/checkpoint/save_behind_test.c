/* A save that lies behind steps holds what the run had when it began, to the bit, and the steps are those of a run that
 * saves nothing: models, strategies, schedules and plans are drawn, the disk is slower than the steps, and between them
 * parameters are written, evaluated and moved. A step that fails alike on all ranks loses no save, and a runtime that
 * goes while it saves leaves the checkpoint before. A rank that can have no thread writes at once, and is not taken for
 * absent meanwhile. */
#include "tests/support/base/folder.h"
#include "tests/support/engine_trial.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sluice/sluice.h>
#include <sys/syscall.h>

enum { ELEMENTS = 200000, SLOW_US = 100 };

static _Atomic useconds_t write_us = SLOW_US;
static bool no_threads;

/* Every write of a checkpoint takes a while. */
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    usleep(write_us);
    return syscall(SYS_pwrite64, fd, data, bytes, offset);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *argument)
{
    return no_threads ? EAGAIN : __real_pthread_create(thread, how, run, argument);
}

/* ---- Drawn models ---- */

static void check_saving(trial t)
{
    char dir[64];
    make_own_folder(dir);
    t.saves = dir;
    check_trial(t);
    remove_tree(dir);
}

static void saves_hold_what_the_run_had(void **state)
{
    (void)state;
    const uint32_t rounds = test_rounds(6);
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        trial drawn = random_trial(500 + seed), rows = look_up_trial(600 + seed), plan = random_trial(700 + seed);
        plan.random = true;
        check_saving(drawn);
        check_saving(rows);
        check_saving(plan);
    }
}

static void plans_may_change_meanwhile(void **state)
{
    (void)state;
    trial t = random_trial(31);
    t.random = true;
    t.ranks = 2;
    t.changing_steps = 2 * STEPS_A_PLAN + 2; /* the save begins one step before the second plan */
    check_saving(t);
}

/* ---- Ends that are none ---- */

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer;
    sluice_param *param;
} program;

static int begin(program *p)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = "fsdp";
    config.schedule = "one_ahead";
    const sluice_param_desc w = SLUICE_INIT(sluice_param_desc, .name = "w", .count = ELEMENTS);
    RANK_CHECK(!sluice_world_create(NULL, &p->world));
    RANK_CHECK(!sluice_runtime_create(p->world, &config, &p->rt));
    RANK_CHECK(!sluice_layer_add(p->rt, "layer", &p->layer));
    RANK_CHECK(!sluice_param_add(p->layer, &w, &p->param));
    RANK_CHECK(!sluice_runtime_commit(p->rt));
    return 0;
}

static int end(program *p)
{
    sluice_runtime_destroy(p->rt);
    sluice_world_destroy(p->world);
    return 0;
}

static sluice_status step(program *p, float gradient)
{
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.1);
    sluice_status status = sluice_step_begin(p->rt, &options);
    if (!status) status = sluice_forward_begin(p->layer);
    if (!status) status = sluice_forward_end(p->layer);
    if (!status) status = sluice_backward_begin(p->layer);
    float *all = status ? NULL : sluice_param_gradient(p->param);
    for (uint64_t i = 0; all && i < ELEMENTS; i++) all[i] += gradient;
    if (!status) status = sluice_backward_end(p->layer);
    return status ? status : sluice_step_end(p->rt, NULL);
}

static int fail_a_step(int rank, int size, void *dir)
{
    program p = {0};
    bool found = false;
    uint64_t latest = 0;
    sluice_save_report report = SLUICE_INIT(sluice_save_report);
    (void)rank, (void)size;
    if (begin(&p)) return 1;
    RANK_CHECK(!step(&p, 1));
    RANK_CHECK(!sluice_checkpoint_begin(p.rt, dir, NULL, 0));
    sluice_status status = step(&p, NAN);
    RANK_CHECK((status ? status : step(&p, 1)) == SLUICE_ERR_NON_FINITE); /* a step may tell it one step late */
    RANK_CHECK(!sluice_checkpoint_end(p.rt, true, &report) && report.step == 1 && !report.under_way);
    RANK_CHECK(!sluice_checkpoint_latest(dir, &found, &latest) && found && latest == 1);
    RANK_CHECK(sluice_checkpoint_end(p.rt, true, NULL) == SLUICE_ERR_NON_FINITE); /* nothing is under way any more */
    return end(&p);
}

static void a_step_that_fails_loses_no_save(void **state)
{
    (void)state;
    char dir[64];
    make_own_folder(dir);
    assert_int_equal(run_ranks(2, fail_a_step, dir, 60), 0);
    remove_tree(dir);
}

static int go_while_it_saves(int rank, int size, void *dir)
{
    program p = {0};
    (void)rank, (void)size;
    if (begin(&p)) return 1;
    RANK_CHECK(!step(&p, 1) && !sluice_checkpoint_save(p.rt, dir, NULL, 0));
    RANK_CHECK(!step(&p, 1) && !sluice_checkpoint_begin(p.rt, dir, NULL, 0));
    return end(&p);
}

static int go_on_from_the_first(int rank, int size, void *dir)
{
    program p = {0};
    bool found = false;
    uint64_t latest = 0;
    (void)rank, (void)size;
    if (begin(&p)) return 1;
    RANK_CHECK(!sluice_checkpoint_latest(dir, &found, &latest) && found && latest == 1);
    RANK_CHECK(!sluice_checkpoint_load(p.rt, dir, NULL, NULL) && sluice_runtime_step(p.rt) == 1);
    RANK_CHECK(!step(&p, 1) && !step(&p, 1) && !sluice_checkpoint_begin(p.rt, dir, NULL, 0));
    RANK_CHECK(!sluice_checkpoint_end(p.rt, true, NULL));
    RANK_CHECK(!sluice_checkpoint_latest(dir, &found, &latest) && latest == 3);
    return end(&p);
}

static void a_save_that_nobody_ends_is_none(void **state)
{
    (void)state;
    char dir[64];
    make_own_folder(dir);
    assert_int_equal(run_ranks(2, go_while_it_saves, dir, 60), 0);
    assert_int_equal(run_ranks(2, go_on_from_the_first, dir, 60), 0);
    remove_tree(dir);
}

/* Rank 1 has no thread, and its seven writes take longer than a rank may be absent. */
static int save_without_a_thread(int rank, int size, void *dir)
{
    program p = {0};
    bool found = false;
    uint64_t latest = 0;
    (void)size;
    setenv("SLUICE_COMM_TIMEOUT", "2.5", 1);
    if (begin(&p)) return 1;
    RANK_CHECK(!step(&p, 1));
    no_threads = rank == 1;
    write_us = rank == 1 ? 600000 : SLOW_US;
    RANK_CHECK(!sluice_checkpoint_begin(p.rt, dir, NULL, 0));
    no_threads = false;
    write_us = SLOW_US;
    RANK_CHECK(!step(&p, 1) && !sluice_checkpoint_end(p.rt, true, NULL));
    RANK_CHECK(!sluice_checkpoint_latest(dir, &found, &latest) && found && latest == 1);
    return end(&p);
}

static void a_rank_without_a_thread_is_not_absent(void **state)
{
    (void)state;
    char dir[64];
    make_own_folder(dir);
    assert_int_equal(run_ranks(2, save_without_a_thread, dir, 60), 0);
    remove_tree(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saves_hold_what_the_run_had),           cmocka_unit_test(plans_may_change_meanwhile),
        cmocka_unit_test(a_step_that_fails_loses_no_save),       cmocka_unit_test(a_save_that_nobody_ends_is_none),
        cmocka_unit_test(a_rank_without_a_thread_is_not_absent),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
