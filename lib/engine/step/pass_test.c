/* Between steps a pass waits for the last of its late operations, which still use the settings of the step before, and
 * for no later one. A length of sequences is new in its first step alone, however many lengths there are. */
#include "lib/engine/runtime.h"
#include "lib/engine/step/pass.h"

#include <sluice/world.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

enum { BEFORE, LATE, LAST, OPERATIONS, LIMIT_S = 60 };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    slc_gate held; /* the last operation waits for it */
    int done;
} rig;

static sluice_status take_a_while(void *context)
{
    rig *all = context;
    usleep(50000);
    all->done++;
    return SLUICE_OK;
}

static void rig_open(rig *all)
{
    sluice_world_config config;
    assert_int_equal(sluice_world_config_init(&config), SLUICE_OK);
    *all = (rig){.rt = calloc(1, sizeof *all->rt)};
    assert_non_null(all->rt);
    assert_int_equal(sluice_world_create(&config, &all->world), SLUICE_OK);
    all->rt->world = all->world;
    all->rt->comm = all->rt->lane = slc_world_comm(all->world);
    slc_gate_init(&all->held);
    slc_op ops[OPERATIONS];
    for (int i = 0; i < OPERATIONS; i++)
        ops[i] = (slc_op){.kind = SLC_CALL, .call = take_a_while, .context = all, .what = "a while"};
    ops[LAST].wait[0] = &all->held, ops[LAST].wait_value[0] = 1;
    assert_int_equal(slc_comm_submit(all->rt->comm, ops, OPERATIONS, NULL), SLUICE_OK);
}

static void rig_close(rig *all)
{
    slc_gate_post(&all->held, 1);
    slc_comm_notify(all->rt->comm);
    assert_int_equal(slc_comm_wait(all->rt->comm, OPERATIONS), SLUICE_OK);
    assert_int_equal(all->done, OPERATIONS);
    sluice_world_destroy(all->world);
    free(all->rt);
}

static void settling_waits_for_late_operations_alone(void **state)
{
    (void)state;
    rig all;
    rig_open(&all);
    slc_pass pass = {.has_previous = true, .kind = {SLC_PASS_WHOLE}, .operation_base = {LATE}};
    pass.order[SLC_PASS_WHOLE].late_end = 1;
    alarm(LIMIT_S);
    assert_int_equal(slc_pass_settle(all.rt, &pass), SLUICE_OK);
    alarm(0);
    assert_int_equal(all.done, LATE + 1);
    rig_close(&all);
}

static void settling_tells_a_failure(void **state)
{
    (void)state;
    rig all;
    rig_open(&all);
    slc_pass pass = {.has_previous = true, .kind = {SLC_PASS_FIRST}, .operation_base = {LATE}};
    slc_comm_fail(all.rt->comm, SLUICE_ERR_MEMORY, "no memory");
    assert_int_equal(slc_pass_settle(all.rt, &pass), SLUICE_ERR_MEMORY);
    pass.has_previous = false; /* nothing is to be waited for */
    assert_int_equal(slc_pass_settle(all.rt, &pass), SLUICE_OK);
    sluice_world_destroy(all.world);
    free(all.rt);
}

static void a_length_is_new_once(void **state)
{
    (void)state;
    enum { LENGTHS = 3000, TURNS = 3 };
    sluice_runtime *rt = calloc(1, sizeof *rt);
    slc_pass *pass = calloc(1, sizeof *pass);
    const slc_step_state step = {.leaves_out = false};
    assert_true(rt && pass);
    pass->number = 2;
    for (uint32_t turn = 0; turn < TURNS; turn++)
        for (uint32_t length = 1; length <= LENGTHS; length++) {
            slc_pass_note_launches(rt, pass, &step, (double)length / LENGTHS);
            pass->number += 3; /* past the two passes that launch for the first time */
            assert_int_equal(pass->number - 1 <= pass->launches_last, !turn);
        }
    free(pass);
    free(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(settling_waits_for_late_operations_alone),
                                       cmocka_unit_test(settling_tells_a_failure),
                                       cmocka_unit_test(a_length_is_new_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
