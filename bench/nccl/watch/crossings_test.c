/* Orders that can end in a hang are told, and others are not. */
#include "tests/support/bench/scene.h"

#include <string.h>

static void crossed_communicators(void **state)
{
    (void)state;
    scene s;
    scene_begin(&s, 2);
    scene_join_all(&s, 0xaaaa000000000001);
    scene_join_all(&s, 0xbbbb000000000001);
    scene_all_call(&s, 0, sum_of_64);
    scene_all_call(&s, 1, sum_of_64);
    scene_all_quiet(&s, 1);
    scene_expect_nothing(&s);
    for (int i = 0; i < 2; i++) {
        scene_call(&s, i, i == 0 ? 0 : 1, sum_of_64);
        scene_call(&s, i, i == 0 ? 1 : 0, sum_of_64);
    }
    scene_expect(&s, SLC_NCCL_FOUND_CROSSED,
                 "communicator aaaa (2 ranks) and communicator bbbb (2 ranks) are called in opposite");
    /* Calls in one group, or in two streams, have no order. */
    for (size_t k = 2; k < 4; k++) s.processes[0].entries[k].group = 5;
    scene_expect_nothing(&s);
    for (size_t k = 2; k < 4; k++) s.processes[0].entries[k].group = 0;
    for (size_t k = 2; k < 4; k++) s.processes[1].entries[k].group = 5;
    scene_expect_nothing(&s);
    for (size_t k = 2; k < 4; k++) s.processes[1].entries[k].group = 0;
    assert_int_equal(scene_look(&s), 1);
    scene_all_quiet(&s, 0); /* they go on */
    scene_expect_nothing(&s);
    scene_all_quiet(&s, 1);
    for (int i = 0; i < 2; i++)
        for (size_t k = 2; k < 4; k++) s.processes[i].entries[k].count = 0; /* NCCL does nothing then */
    scene_expect_nothing(&s);
    for (int i = 0; i < 2; i++)
        for (size_t k = 2; k < 4; k++) s.processes[i].entries[k].count = 64;
    s.processes[1].entries[3].stream = 2;
    scene_expect_nothing(&s);
    scene_end(&s);
}

/* One handle names another stream in each thread. */
static void streams_of_threads(void **state)
{
    (void)state;
    scene s;
    call c = sum_of_64;
    c.stream = PER_THREAD;
    scene_begin(&s, 2);
    scene_join_all(&s, 0xaaaa000000000001);
    scene_join_all(&s, 0xbbbb000000000001);
    for (int i = 0; i < 2; i++)
        for (unsigned k = 0; k < 2; k++) {
            unsigned row = i ? 1 - k : k;
            scene_call(&s, i, row, c);
            s.processes[i].entries[k].thread = 7 + row;
        }
    scene_all_quiet(&s, 1);
    scene_expect_nothing(&s);
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++) s.processes[i].entries[k].thread = 7;
    scene_expect(&s, SLC_NCCL_FOUND_CROSSED, "are called in opposite orders");
    scene_end(&s);
}

/* Each rank waits on the host for the first of its two calls. */
static void blocked_in_crossed_order(void **state)
{
    (void)state;
    scene s;
    scene_begin(&s, 2);
    scene_join_all(&s, 0xaaaa000000000001);
    scene_join_all(&s, 0xbbbb000000000001);
    scene_call(&s, 0, 0, sum_of_64);
    scene_call(&s, 1, 1, sum_of_64);
    scene_expect_nothing(&s);
    scene_all_quiet(&s, 12);
    scene_expect(&s, SLC_NCCL_FOUND_CIRCLE, "ranks wait for each other");
    assert_non_null(strstr(s.found.rows[0].hint, "same order"));
    scene_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crossed_communicators),
        cmocka_unit_test(streams_of_threads),
        cmocka_unit_test(blocked_in_crossed_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
