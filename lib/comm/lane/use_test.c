/* Waiting for a rank that comes late to an operation is told from carrying it. */
#include "lib/base/clock.h"
#include "tests/support/comm/forked_ranks.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>

/* Moments in memory that both ranks see. */
typedef struct {
    _Atomic uint64_t began_ns, came_ns; /* rank 0 was at the operation; rank 1 was */
} moments;

typedef struct {
    moments *shared;
    int port;
    test_path path;
} test_case;

static sluice_status note_begin(void *context)
{
    atomic_store(&((moments *)context)->began_ns, slc_clock_ns());
    return SLUICE_OK;
}

static void come_late(moments *shared)
{
    while (!atomic_load(&shared->began_ns)) usleep(100);
    usleep(20000);
    atomic_store(&shared->came_ns, slc_clock_ns());
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = path_config(rank, 2, test->port, test->path);
    sluice_world *world;
    slc_device *device;
    slc_segment segment;
    uint32_t index;
    CHECK(!sluice_world_create(&config, &world));
    slc_comm *comm = slc_world_comm(world);
    const uint64_t scratch = slc_comm_scratch_bytes(comm, 4096);
    CHECK(!slc_device_open("cpu", &device) && !slc_segment_create(device, 4096 + scratch, &segment));
    CHECK(!slc_comm_attach(comm, &segment, (char *)segment.base + 4096, scratch));
    const slc_comm_use before = slc_comm_used(comm);
    slc_op op = {.kind = SLC_BARRIER, .start = rank ? NULL : note_begin, .context = test->shared, .what = "barrier"};
    if (rank) come_late(test->shared);
    const uint64_t from_ns = slc_clock_ns();
    CHECK(!slc_comm_submit(comm, &op, 1, &index) && !slc_comm_wait(comm, index + 1));
    const slc_comm_use after = slc_comm_used(comm);
    const double late_s = after.late_s - before.late_s, carried_s = after.carried_s - before.carried_s;
    CHECK(after.operations == before.operations + 1);
    CHECK(late_s >= 0 && carried_s >= 0 && late_s + carried_s <= slc_seconds(slc_clock_ns() - from_ns) + 1e-9);
    const double apart_s = slc_seconds(atomic_load(&test->shared->came_ns) - atomic_load(&test->shared->began_ns));
    if (!rank)
        CHECK((test->path == MESSAGES ? carried_s : late_s) >= apart_s / 2); /* it reads the clock after began_ns */
    if (test->path == MESSAGES) CHECK(late_s == 0);
    close_rank(world, &segment, device);
    return 0;
}

static void check_path(test_path path)
{
    void *shared = mmap(NULL, sizeof(moments), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    test_case test = {.shared = shared, .port = free_port(), .path = path};
    assert_int_equal(run_ranks(2, body, &test), 0);
    munmap(shared, sizeof(moments));
}

static void a_rank_that_comes_late_is_waited_for(void **state)
{
    (void)state;
    check_path(DIRECT);
}

static void through_messages_that_is_carrying(void **state)
{
    (void)state;
    check_path(MESSAGES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_comes_late_is_waited_for),
        cmocka_unit_test(through_messages_that_is_carrying),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
