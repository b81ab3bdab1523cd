/* Sums must be the same under all settings that change how they are made: windows, idling, instruction sets, many
 * ranks, counters that wrap. A rank with nothing to do must use no processor. */
#include "lib/base/clock.h"
#include "tests/support/comm/forked_ranks.h"
#include "lib/comm/control/control.h"
#include "lib/comm/lane/lane.h"
#include "tests/support/scale.h"

#include <setjmp.h>
#include <stdint.h>
#include <sys/resource.h>
#include <cmocka.h>

enum { BLOCK = 16 * 8 * 3 * 5, BLOCKS = 24, ELEMENTS = BLOCK * BLOCKS, SUMS = 12 };

typedef struct {
    const char *name, *value; /* a setting; NULL: none */
    int size, port;
    test_path path;
    uint32_t start; /* where all counters of operations begin */
    double idle_s;
} test_case;

typedef struct {
    slc_device *device;
    slc_segment segment;
    sluice_world *world;
    float *data;
} rig;

/* Make a world in which many operations seem to have run already: the linker puts these functions in the place of those
 * that they call (--wrap), so that the counters are set before the communication thread exists. */
static uint32_t first_operation;

sluice_status __real_slc_lane_init(slc_comm *comm, int rank, int size, slc_failure *failure, slc_neighbours *neighbours,
                                   slc_transport *transport, slc_history *history);
sluice_status __wrap_slc_lane_init(slc_comm *comm, int rank, int size, slc_failure *failure, slc_neighbours *neighbours,
                                   slc_transport *transport, slc_history *history);
sluice_status __wrap_slc_lane_init(slc_comm *comm, int rank, int size, slc_failure *failure, slc_neighbours *neighbours,
                                   slc_transport *transport, slc_history *history)
{
    sluice_status status = __real_slc_lane_init(comm, rank, size, failure, neighbours, transport, history);
    comm->active.taken = comm->active.first = comm->active.wire = first_operation;
    atomic_store(&comm->active.wire_completed, first_operation);
    atomic_store(&comm->queue.wire_submitted, first_operation);
    atomic_store(&neighbours->page->lanes[0].ready, first_operation);
    atomic_store(&neighbours->page->lanes[0].done, first_operation);
    atomic_store(&comm->queue.counts.completed.value, first_operation);
    atomic_store(&comm->queue.counts.finished, first_operation);
    atomic_store(&comm->queue.counts.submitted, first_operation);
    return status;
}

sluice_status __real_slc_control_init(slc_control *control, slc_rendezvous *rendezvous, slc_failure *failure,
                                      double timeout_s);
sluice_status __wrap_slc_control_init(slc_control *control, slc_rendezvous *rendezvous, slc_failure *failure,
                                      double timeout_s);
sluice_status __wrap_slc_control_init(slc_control *control, slc_rendezvous *rendezvous, slc_failure *failure,
                                      double timeout_s)
{
    sluice_status status = __real_slc_control_init(control, rendezvous, failure, timeout_s);
    control->history.count = first_operation;
    return status;
}

static void rig_open(rig *all, const test_case *test, int rank)
{
    if (test->name) setenv(test->name, test->value, 1);
    first_operation = test->start;
    sluice_world_config config = path_config(rank, test->size, test->port, test->path);
    CHECK(!sluice_world_create(&config, &all->world));
    slc_comm *comm = slc_world_comm(all->world);
    uint64_t scratch = slc_comm_scratch_bytes(comm, BLOCK * sizeof(float));
    CHECK(!slc_device_open("cpu", &all->device));
    CHECK(!slc_segment_create(all->device, ELEMENTS * sizeof(float) + scratch, &all->segment));
    all->data = all->segment.base;
    CHECK(!slc_comm_attach(comm, &all->segment, all->data + ELEMENTS, scratch));
}

static void sum_many(rig *all, const test_case *test, int rank)
{
    slc_comm *comm = slc_world_comm(all->world);
    const slc_op op = {.kind = SLC_ALL_REDUCE,
                       .dtype = SLUICE_FP32,
                       .elements = ELEMENTS,
                       .block_elements = BLOCK,
                       .block_count = BLOCKS,
                       .src = all->data,
                       .dst = all->data,
                       .scale = 1.0f / (float)test->size,
                       .what = "sum"};
    uint32_t index = 0;
    for (int i = 0; i < ELEMENTS; i++) all->data[i] = (float)(i % 1000 + rank);
    for (int i = 0; i < SUMS; i++) CHECK(!slc_comm_submit(comm, &op, 1, &index));
    CHECK(!slc_comm_wait(comm, index + 1));
    for (int i = 0; i < ELEMENTS; i++) CHECK(all->data[i] == (float)(i % 1000) + 0.5f * (float)(test->size - 1));
}

static double processor_s(void)
{
    struct rusage usage;
    CHECK(!getrusage(RUSAGE_SELF, &usage));
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    sum_many(&all, test, rank);
    if (test->idle_s > 0) {
        CHECK(!sluice_world_barrier(all.world));
        double before = processor_s();
        usleep((useconds_t)(1e6 * test->idle_s));
        double used = processor_s() - before;
        if (used > test->idle_s / 10) fprintf(stderr, "%.3f s of %.0f\n", used, test->idle_s);
        CHECK(used <= test->idle_s / 10); /* a busy poll would take all of it, heartbeats take a thousandth */
    }
    CHECK(!sluice_world_barrier(all.world));
    close_rank(all.world, &all.segment, all.device);
    return 0;
}

/* The worlds of the three paths run at the same time. */
static void check_case(test_case test)
{
    test_case tests[MIXED + 1];
    ranks all[MIXED + 1];
    for (int path = DIRECT; path <= MIXED; path++) {
        tests[path] = test;
        tests[path].path = (test_path)path;
        tests[path].port = free_port();
        ranks_start(&all[path], test.size, body, &tests[path]);
    }
    for (int path = DIRECT; path <= MIXED; path++)
        if (ranks_wait(&all[path]))
            fail_msg("%s=%s, %d ranks, path %d", test.name ? test.name : "no setting", test.value ? test.value : "",
                     test.size, path);
}

static void sums_are_equal_under_all_settings(void **state)
{
    (void)state;
    static const char *const settings[][2] = {
        {"SLUICE_COMM_DEPTH", "2"},   {"SLUICE_COMM_DEPTH", "3"},        {"SLUICE_COMM_DEPTH", "16"},
        {"SLUICE_COMM_SPIN_US", "0"}, {"SLUICE_COMM_SPIN_US", "100000"}, {"SLUICE_COMM_PACE_US", "0"},
    };
    for (uint32_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (test_takes(i, 1)) check_case((test_case){.name = settings[i][0], .value = settings[i][1], .size = 3});
    check_case((test_case){.name = "SLUICE_KERNELS_ISA", .value = "baseline", .size = 3});
}

static void eight_ranks_make_a_world(void **state)
{
    (void)state;
    check_case((test_case){.size = 8});
}

static void counters_wrap(void **state)
{
    (void)state;
    for (uint32_t before = 1; before < SUMS; before += 5) check_case((test_case){.size = 3, .start = 0u - before});
    check_case((test_case){.size = 3, .start = 0x7ffffffb});
}

static void an_idle_rank_uses_no_processor(void **state)
{
    (void)state;
    check_case((test_case){.size = 2, .idle_s = 1.5});
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_equal_under_all_settings),
        cmocka_unit_test(eight_ranks_make_a_world),
        cmocka_unit_test(counters_wrap),
        cmocka_unit_test(an_idle_rank_uses_no_processor),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
