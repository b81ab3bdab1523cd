/* An operation whose results go past the cache must give the same bits as its blocks moved one at a time, which go
 * through it, and must touch nothing else. collectives_test.c compares the latter with a plain oracle. */
#include "tests/support/comm/forked_ranks.h"
#include "lib/comm/lane/spans.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* The last block is shorter, and the parts of none are whole pages. */
enum { ELEMENTS = 96 * 54700, BLOCK = 96 * 1001, FRAME = 1000, ROOT = 1 };

typedef struct {
    sluice_world *world;
    slc_comm *comm;
    slc_device *device;
    slc_segment segment;
    char *source, *result, *frame; /* one after the other; the last is FRAME bytes that no operation may touch */
    uint64_t place_bytes;
} rig;

typedef struct {
    int size, port;
    test_path path;
} test_case;

static void rig_open(rig *all, const test_case *test, int rank)
{
    sluice_world_config config = path_config(rank, test->size, test->port, test->path);
    CHECK(!sluice_world_create(&config, &all->world));
    all->comm = slc_world_comm(all->world);
    all->place_bytes = (uint64_t)ELEMENTS * sizeof(float);
    const uint64_t scratch = slc_comm_scratch_bytes(all->comm, (uint64_t)BLOCK * sizeof(float));
    CHECK(!slc_device_open("cpu", &all->device));
    CHECK(!slc_segment_create(all->device, 2 * all->place_bytes + scratch + FRAME, &all->segment));
    all->source = all->segment.base;
    all->result = all->source + all->place_bytes;
    all->frame = all->result + all->place_bytes + scratch;
    CHECK(!slc_comm_attach(all->comm, &all->segment, all->result + all->place_bytes, scratch));
}

static void fill(const rig *all, sluice_dtype dtype, int rank)
{
    enum { DRAWN = 8191 }; /* they are repeated */
    float drawn[DRAWN];
    uint64_t chance = 7 + (uint64_t)rank;
    for (int i = 0; i < DRAWN; i++) drawn[i] = (float)pick(&chance, 1 << 20) / (1 << 10) - 512;
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        const float value = drawn[i % DRAWN];
        if (dtype == SLUICE_BF16)
            ((uint16_t *)(void *)all->source)[i] = sluice_bf16_from_float(value);
        else
            ((float *)(void *)all->source)[i] = value;
    }
    memset(all->result, 0x5a, all->place_bytes);
    memset(all->frame, 0x5a, FRAME);
}

static void carry_out(rig *all, const slc_op *op, bool by_block, uint32_t *submitted)
{
    slc_op one = *op;
    if (by_block) one.block_count = 1;
    CHECK(!sluice_world_barrier(all->world));         /* all sources are there */
    const bool alone = !all->comm->neighbours->count; /* what this rank touches by itself, a cache may keep */
    CHECK(slc_op_goes_past_cache(all->comm, &one) == !by_block || (alone && !by_block));
    for (; one.first_block < op->block_count; one.first_block += one.block_count, ++*submitted)
        CHECK(!slc_comm_submit(all->comm, &one, 1, NULL));
    CHECK(!slc_comm_wait(all->comm, *submitted));
    CHECK(!sluice_world_barrier(all->world)); /* no rank reads this one's source any more */
}

static void compare(rig *all, slc_op op, int rank, uint32_t *submitted)
{
    char *places = all->source, *want = malloc(2 * all->place_bytes), frame[FRAME];
    CHECK(want);
    memset(frame, 0x5a, FRAME);
    op.elements = ELEMENTS, op.block_elements = BLOCK, op.scale = 0.3f, op.what = "past the cache";
    op.block_count = (ELEMENTS + BLOCK - 1) / BLOCK;
    fill(all, op.dtype, rank);
    carry_out(all, &op, true, submitted);
    memcpy(want, places, 2 * all->place_bytes);
    fill(all, op.dtype, rank);
    const bool gives = op.kind == SLC_BROADCAST && rank == ROOT;
    CHECK(gives == !memcmp(want, places, 2 * all->place_bytes)); /* the operation did something */
    carry_out(all, &op, false, submitted);
    CHECK(!memcmp(want, places, 2 * all->place_bytes) && !memcmp(frame, all->frame, FRAME));
    free(want);
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    uint32_t submitted = 0;
    rig_open(&all, test, rank);
    slc_op sum = {.kind = SLC_REDUCE_SCATTER, .dtype = SLUICE_FP32, .src = all.source, .dst = all.result};
    compare(&all, sum, rank, &submitted);
    sum.dst_layout = SLC_SHARD, sum.dst = all.result + 4; /* no border of a line */
    compare(&all, sum, rank, &submitted);
    sum.dtype = SLUICE_BF16, sum.widen = true;
    compare(&all, sum, rank, &submitted);
    slc_op gather = {.kind = SLC_ALL_GATHER, .dtype = SLUICE_FP32, .src = all.source, .dst = all.result};
    gather.src_layout = SLC_SHARD;
    compare(&all, gather, rank, &submitted);
    gather.src_layout = SLC_WHOLE, gather.dst = all.source;
    compare(&all, gather, rank, &submitted);
    slc_op broadcast = {.kind = SLC_BROADCAST, .dtype = SLUICE_FP32, .src = all.source, .dst = all.source};
    broadcast.root = ROOT;
    compare(&all, broadcast, rank, &submitted);
    close_rank(all.world, &all.segment, all.device);
    return 0;
}

static void check_case(int size, test_path path)
{
    test_case test = {.size = size, .port = free_port(), .path = path};
    assert_int_equal(run_ranks(size, body, &test), 0);
}

static void test_direct(void **state)
{
    (void)state;
    check_case(2, DIRECT);
    check_case(3, DIRECT);
}

/* Contributions come by messages from one rank and through memory from the other. */
static void test_mixed(void **state)
{
    (void)state;
    check_case(3, MIXED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_direct), cmocka_unit_test(test_mixed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
