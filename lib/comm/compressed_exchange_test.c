/* Compressed exchanges of groups over memory, messages and both, bit for bit against the simulation of all ranks, over
 * many steps; and the bytes that they put on the wire. */
#include "lib/comm/exchange_test.h"

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { GROUPS = 3, TENSORS_MOST = 200 };

typedef struct {
    int size, port, steps;
    test_path path;
    uint64_t seed, most; /* elements */
    uint32_t tensors;    /* of a group, at most */
} test_case;

/* Groups of random shapes. */
static void draw_groups(const slc_comm *comm, const test_case *test, exchange *groups, char *arena)
{
    uint64_t chance = test->seed;
    for (int g = 0; g < GROUPS; g++) {
        slc_compress_shape shapes[TENSORS_MOST];
        uint32_t count = 1 + (uint32_t)pick(&chance, test->tensors);
        for (uint32_t i = 0; i < count; i++) shapes[i] = draw_shape(&chance, test->size, test->most);
        groups[g] = exchange_create(comm, count, shapes, &arena);
    }
}

static uint64_t arena_bytes(const test_case *test)
{
    uint64_t one = 8 * test->most / 8 + 8 * test->most / 16 * 4 + 4096; /* packets and results, messages too */
    return GROUPS * (test->tensors * one + 65536);
}

static void refuses_what_is_wrong(slc_comm *comm, const exchange *x)
{
    slc_op wrong = slc_exchange_op(&x->group, x->packets, x->packets, x->own.servers);
    CHECK(slc_comm_submit(comm, &wrong, 1, NULL) == SLUICE_ERR_ARGUMENT); /* overlap */
    wrong = exchange_op(x);
    wrong.servers = NULL;
    CHECK(slc_comm_submit(comm, &wrong, 1, NULL) == SLUICE_ERR_ARGUMENT);
    slc_compress_group other;
    slc_compress_shape shape = {100, 0, x->group.shapes[0].ranks + 1};
    CHECK(!slc_compress_group_init(&other, 1, &shape));
    wrong = slc_exchange_op(&other, x->packets, x->results, x->own.servers);
    CHECK(slc_comm_submit(comm, &wrong, 1, NULL) == SLUICE_ERR_ARGUMENT); /* not of this world */
    slc_compress_group_fini(&other);
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = path_config(rank, test->size, test->port, test->path);
    sluice_world *world;
    CHECK(!sluice_world_create(&config, &world));
    slc_comm *comm = slc_world_comm(world);
    slc_device *device;
    slc_segment segment;
    slc_stream stream;
    uint64_t sent = 0;
    CHECK(!slc_device_open("cpu", &device) && !slc_stream_create(device, 1, &stream));
    CHECK(!slc_segment_create(device, arena_bytes(test), &segment));
    CHECK(!slc_comm_attach(comm, &segment, NULL, 0));

    exchange groups[GROUPS];
    draw_groups(comm, test, groups, segment.base);
    for (int step = 0; step < test->steps; step++) {
        slc_op ops[GROUPS];
        uint32_t index;
        for (int g = 0; g < GROUPS; g++) {
            exchange_prepare(&groups[g], &stream, rank, test->seed + (uint64_t)g);
            ops[g] = exchange_op(&groups[g]);
            sent += exchange_formula(&groups[g].group);
        }
        CHECK(!slc_comm_submit(comm, ops, GROUPS, &index) && !slc_comm_wait(comm, index + GROUPS));
        for (int g = 0; g < GROUPS; g++) exchange_check(&groups[g], rank), exchange_decompress(&groups[g]);
        CHECK(slc_comm_bytes_sent(comm) == sent);
    }
    CHECK(!sluice_world_barrier(world));
    refuses_what_is_wrong(comm, &groups[0]);

    for (int g = 0; g < GROUPS; g++) exchange_destroy(&groups[g]);
    CHECK(!slc_comm_attach(comm, NULL, NULL, 0));
    slc_segment_destroy(&segment);
    slc_stream_destroy(&stream);
    slc_device_close(device);
    sluice_world_destroy(world);
    return 0;
}

static void check_case(int size, test_path path, int steps, uint64_t most, uint32_t tensors)
{
    static uint64_t seed = 1;
    test_case test = {.size = size,
                      .port = free_port(),
                      .steps = steps,
                      .path = path,
                      .seed = 1000000 * seed++,
                      .most = most,
                      .tensors = tensors};
    assert_int_equal(run_ranks(size, body, &test), 0);
}

static void test_direct(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MAX; size++) check_case(size, DIRECT, 3, 30000, 12);
}

static void test_messages(void **state)
{
    (void)state;
    for (int size = 2; size <= RANKS_MAX; size++) check_case(size, MESSAGES, 3, 30000, 12);
}

static void test_mixed(void **state)
{
    (void)state;
    for (int size = 3; size <= RANKS_MAX; size++) check_case(size, MIXED, 3, 30000, 12);
}

/* Hundreds of tensors, most of them less than a rank's chunk is padded to. */
static void test_tiny(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MIXED; path++) check_case(3, (test_path)path, 10, 40, TENSORS_MOST);
}

/* Pieces of a chunk; messages beyond a socket's buffer. */
static void test_large(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MIXED; path++) check_case(path == MIXED ? 3 : 2, (test_path)path, 2, 1000000, 4);
}

static void test_thousand_steps(void **state)
{
    (void)state;
    check_case(4, DIRECT, 1000, 500, 4);
    check_case(2, MESSAGES, 1000, 500, 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct), cmocka_unit_test(test_messages), cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_tiny),   cmocka_unit_test(test_large),    cmocka_unit_test(test_thousand_steps),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
