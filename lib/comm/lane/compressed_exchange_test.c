/* Compressed exchanges of groups over memory, messages and both must agree bit for bit with the simulation of all
 * ranks, over many steps, and put no more bytes on the wire than they should. */
#include "tests/support/comm/compressed_exchange.h"
#include "tests/support/scale.h"

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { GROUPS = 3, TENSORS_MOST = 200 };

typedef struct {
    int size, port, steps;
    test_path path;
    uint64_t seed, most; /* most: elements of a group */
    uint32_t tensors;    /* the most that a group has */
} test_case;

/* Draws groups of random shapes. */
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
    uint64_t one =
        8 * test->most / 8 + 8 * test->most / 16 * 4 + 4096; /* packets and results, with room for messages */
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
    CHECK(slc_comm_submit(comm, &wrong, 1, NULL) == SLUICE_ERR_ARGUMENT); /* made for another number of ranks */
    slc_compress_group_fini(&other);
}

typedef struct {
    sluice_world *world;
    slc_comm *comm;
    slc_device *device;
    slc_segment segment;
    sluice_stream stream;
} rig;

static void rig_open(rig *all, const test_case *test, int rank, uint64_t bytes)
{
    sluice_world_config config = path_config(rank, test->size, test->port, test->path);
    CHECK(!sluice_world_create(&config, &all->world));
    all->comm = slc_world_comm(all->world);
    CHECK(!slc_device_open("cpu", &all->device) && !slc_stream_create(all->device, 1, &all->stream));
    CHECK(!slc_segment_create(all->device, bytes, &all->segment));
    CHECK(!slc_comm_attach(all->comm, &all->segment, NULL, 0));
}

static void rig_close(rig *all)
{
    slc_stream_destroy(&all->stream);
    close_rank(all->world, &all->segment, all->device);
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    rig all;
    uint64_t sent = 0;
    rig_open(&all, test, rank, arena_bytes(test));
    slc_comm *comm = all.comm;
    exchange groups[GROUPS];
    draw_groups(comm, test, groups, all.segment.base);
    for (int step = 0; step < test->steps; step++) {
        slc_op ops[GROUPS];
        uint32_t index;
        for (int g = 0; g < GROUPS; g++) {
            exchange_prepare(&groups[g], &all.stream, rank, test->seed + (uint64_t)g);
            ops[g] = exchange_op(&groups[g]);
            sent += exchange_formula(&groups[g].group);
        }
        CHECK(!slc_comm_submit(comm, ops, GROUPS, &index) && !slc_comm_wait(comm, index + GROUPS));
        for (int g = 0; g < GROUPS; g++) exchange_check(&groups[g], rank), exchange_decompress(&groups[g]);
        CHECK(slc_comm_bytes_sent(comm) == sent);
    }
    CHECK(!sluice_world_barrier(all.world));
    refuses_what_is_wrong(comm, &groups[0]);
    for (int g = 0; g < GROUPS; g++) exchange_destroy(&groups[g]);
    rig_close(&all);
    return 0;
}

/* A block of GPT-2, where the large tensors make up the bytes; and its vectors alone, four times. */
static const uint64_t block_of_gpt2[] = {768, 768, 768 * 2304, 2304, 768 * 768,  768,
                                         768, 768, 768 * 3072, 3072, 3072 * 768, 768};
static const uint64_t vectors[] = {768, 768, 2304, 768, 768, 768, 3072, 768, 768, 768, 2304, 768, 768, 768, 3072, 768,
                                   768, 768, 2304, 768, 768, 768, 3072, 768, 768, 768, 2304, 768, 768, 768, 3072, 768};

/* Sent bytes are at most 1.02 (V/32) 2 (N-1)/N and the scales, one for each tensor and chunk in each phase. */
static void check_bytes(rig *all, uint32_t count, const uint64_t *lengths)
{
    const uint32_t n = (uint32_t)sluice_world_size(all->world);
    slc_compress_shape shapes[TENSORS_MOST];
    double elements = 0, peers = n - 1;
    for (uint32_t i = 0; i < count; i++) {
        shapes[i] = (slc_compress_shape){.count = lengths[i], .ranks = n};
        elements += (double)lengths[i];
    }
    slc_compress_group group;
    CHECK(!slc_compress_group_init(&group, count, shapes));
    CHECK(exchange_bytes(all->comm, &group) <= all->segment.bytes);
    residues own = residues_create(&group);
    char *packets = all->segment.base;
    uint32_t index;
    uint64_t before = slc_comm_bytes_sent(all->comm);
    slc_op op = slc_exchange_op(&group, packets, packets + n * group.stride, own.servers);
    CHECK(!slc_comm_submit(all->comm, &op, 1, &index) && !slc_comm_wait(all->comm, index + 1));
    double sent = (double)(slc_comm_bytes_sent(all->comm) - before), scales = 2 * peers * count * 4;
    CHECK(sent <= 1.02 * (elements * 4 / 32) * 2 * peers / n + scales);
    CHECK(sent >= (elements * 4 / 32) * 2 * peers / n);
    residues_destroy(&own);
    slc_compress_group_fini(&group);
}

static int count_bytes(int rank, void *argument)
{
    const test_case *test = argument;
    rig all;
    rig_open(&all, test, rank, 16 << 20);
    check_bytes(&all, sizeof block_of_gpt2 / sizeof *block_of_gpt2, block_of_gpt2);
    if (test->size % 3) check_bytes(&all, sizeof vectors / sizeof *vectors, vectors); /* padding to 72 costs 3 % more */
    CHECK(!sluice_world_barrier(all.world));
    rig_close(&all);
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

/* In either case some tensors take several pieces, and each rank's thread is watched. */
static uint64_t longest(void)
{
    return test_brief() ? 6000 : 30000;
}

static void test_direct(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MAX; size++) check_case(size, DIRECT, 3, longest(), 12);
}

static void test_messages(void **state)
{
    (void)state;
    for (int size = 2; size <= RANKS_MAX; size++) check_case(size, MESSAGES, 3, longest(), 12);
}

static void test_mixed(void **state)
{
    (void)state;
    for (int size = 3; size <= RANKS_MAX; size++) check_case(size, MIXED, 3, longest(), 12);
}

/* Hundreds of tensors, most of them smaller than the size to which a rank's chunk is padded. */
static void test_tiny(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MIXED; path++)
        check_case(3, (test_path)path, test_brief() ? 2 : 10, 40, TENSORS_MOST);
}

/* A chunk takes several pieces of work, and messages do not fit a socket's buffer. */
static void test_large(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MIXED; path++)
        check_case(path == MIXED ? 3 : 2, (test_path)path, 2, test_brief() ? 200000 : 1000000, 4);
}

static void test_bytes(void **state)
{
    (void)state;
    if (test_brief()) return; /* a number of bytes is no sanitizer's matter */
    const int sizes[] = {2, 3, 4, 8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int path = DIRECT; path <= (sizes[i] > 2 ? MIXED : MESSAGES); path++) {
            test_case test = {.size = sizes[i], .port = free_port(), .path = (test_path)path};
            assert_int_equal(run_ranks(test.size, count_bytes, &test), 0);
        }
}

static void test_many_steps(void **state)
{
    (void)state;
    check_case(4, DIRECT, (int)test_rounds(400), 500, 4);
    check_case(2, MESSAGES, (int)test_rounds(400), 500, 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct),     cmocka_unit_test(test_messages), cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_tiny),       cmocka_unit_test(test_large),    cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_many_steps),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
