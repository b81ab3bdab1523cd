/* Ranks that submit operations of other sizes hear who sent too much to whom, and what to do: also if the message
 * was there before its receive. */
#include "tests/support/comm/forked_ranks.h"

#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { SHORT = 64, LONG = 4096, RANKS = 2, LATE_US = 100000 };

typedef struct {
    int port;
    bool late; /* rank 0 posts its receive when rank 1's message is there */
} test_case;

typedef struct {
    sluice_world *world;
    slc_comm *comm;
    slc_device *device;
    slc_segment segment;
} rig;

static void rig_open(rig *all, const test_case *test, int rank)
{
    sluice_world_config config = path_config(rank, RANKS, test->port, MESSAGES);
    CHECK(!sluice_world_create(&config, &all->world));
    all->comm = slc_world_comm(all->world);
    const uint64_t data = 2 * LONG * sizeof(float), scratch = slc_comm_scratch_bytes(all->comm, data);
    CHECK(!slc_device_open("cpu", &all->device));
    CHECK(!slc_segment_create(all->device, data + scratch, &all->segment));
    CHECK(!slc_comm_attach(all->comm, &all->segment, (char *)all->segment.base + data, scratch));
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    const uint64_t elements = rank ? LONG : SHORT;
    const slc_op meet = {.kind = SLC_BARRIER};
    const slc_op gather = {.kind = SLC_ALL_GATHER,
                           .dtype = SLUICE_FP32,
                           .elements = elements,
                           .block_elements = elements,
                           .block_count = 1,
                           .src = all.segment.base,
                           .dst = all.segment.base,
                           .what = "the gather"};
    CHECK(!slc_comm_submit(all.comm, &meet, 1, NULL) && !slc_comm_wait(all.comm, 1));
    if (test->late && rank == 0) usleep(LATE_US);
    if (!test->late && rank == 1) usleep(LATE_US);
    CHECK(!slc_comm_submit(all.comm, &gather, 1, NULL));
    CHECK(slc_comm_wait(all.comm, 2) == SLUICE_ERR_MISMATCH);
    CHECK(strstr(sluice_last_error(), "the gather: rank "));
    CHECK(strstr(sluice_last_error(), "submit the same operations in the same order on every rank"));
    close_rank(all.world, &all.segment, all.device);
    return 0;
}

static void its_receive_is_posted_later(void **state)
{
    (void)state;
    test_case test = {.port = free_port(), .late = true};
    assert_int_equal(run_ranks(RANKS, body, &test), 0);
}

static void its_receive_is_posted_before(void **state)
{
    (void)state;
    test_case test = {.port = free_port()};
    assert_int_equal(run_ranks(RANKS, body, &test), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_receive_is_posted_later),
        cmocka_unit_test(its_receive_is_posted_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
