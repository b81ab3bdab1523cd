/* An imagined world answers as the real one does about sizes, and its collectives are those of ranks that all bring the
 * same. */
#include "lib/comm/comm.h"
#include "lib/comm/imagined_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RANKS = 64, BLOCK = 1 << 20 };

static sluice_world *imagine(int size, int ranks_a_host)
{
    sluice_world *world = NULL;
    assert_int_equal(slc_world_imagine(size, ranks_a_host, &world), SLUICE_OK);
    return world;
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        int size, a_host;
        const char *path;
    } rows[] = {{1, 1, "alone"}, {RANKS, RANKS, "direct"}, {RANKS, 8, "mixed"}, {RANKS, 1, "messages"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sluice_world *world = imagine(rows[i].size, rows[i].a_host);
        assert_string_equal(sluice_world_path(world), rows[i].path);
        assert_int_equal(sluice_world_size(world), rows[i].size);
        assert_int_equal(sluice_world_rank(world), 0);
        assert_string_equal(sluice_world_transport(world), "none");
        sluice_world_destroy(world);
    }
}

static void test_scratch(void **state)
{
    (void)state;
    sluice_world *near = imagine(RANKS, RANKS), *far = imagine(RANKS, 8), *two = imagine(2, 1);
    assert_int_equal(slc_comm_scratch_bytes(slc_world_comm(near), BLOCK), 0);
    /* depth x block x (N-1)/N, and the depth is the same in any world */
    uint64_t of_two = slc_comm_scratch_bytes(slc_world_comm(two), BLOCK);
    uint64_t of_many = slc_comm_scratch_bytes(slc_world_comm(far), BLOCK);
    assert_true(of_two > 0);
    assert_int_equal(of_many * RANKS / (RANKS - 1), of_two * 2);
    sluice_world_destroy(near);
    sluice_world_destroy(far);
    sluice_world_destroy(two);
}

static void test_collectives(void **state)
{
    (void)state;
    sluice_world *world = imagine(RANKS, 1);
    double sums[2] = {0.25, 3};
    uint64_t mine = 42, all[RANKS] = {0};
    assert_int_equal(sluice_world_barrier(world), SLUICE_OK);
    assert_int_equal(sluice_world_all_reduce(world, sums, 2), SLUICE_OK);
    assert_true(sums[0] == 16 && sums[1] == 192);
    assert_int_equal(sluice_world_all_gather(world, &mine, sizeof mine, all), SLUICE_OK);
    for (int r = 0; r < RANKS; r++) assert_int_equal(all[r], 42);
    assert_int_equal(sluice_world_broadcast(world, &mine, sizeof mine, RANKS - 1), SLUICE_OK);
    assert_int_equal(mine, 42);
    assert_int_equal(sluice_world_broadcast(world, &mine, sizeof mine, RANKS), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_comm_meet(slc_world_comm(world), "barrier", NULL), SLUICE_OK);
    /* A failure is told, as in any world. */
    slc_comm_fail(slc_world_comm(world), SLUICE_ERR_MEMORY, "no memory");
    assert_int_equal(sluice_world_barrier(world), SLUICE_ERR_MEMORY);
    sluice_world_destroy(world);
}

static void test_impossible(void **state)
{
    (void)state;
    sluice_world *world = NULL;
    assert_int_equal(slc_world_imagine(0, 1, &world), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_world_imagine(4, 0, &world), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_world_imagine(SLUICE_RANKS_MOST + 1, 1, &world), SLUICE_ERR_ARGUMENT);
    assert_null(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_impossible),
    };
    return cmocka_run_group_tests_name("imagined", tests, NULL, NULL);
}
