/* One rank of several has too few file descriptors. Whatever it lacks them for, every rank must say so, and what helps.
 */
#include "tests/support/comm/forked_ranks.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <cmocka.h>

enum { SIZE = 5, MOST = 60 };

typedef struct {
    int port, victim;
    int limit;    /* descriptors that the victim may open beyond those that it has */
    bool *joined; /* shared by all processes */
} test_case;

static int highest_descriptor(void)
{
    int highest = 2;
    for (int fd = 0; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) >= 0) highest = fd;
    return highest;
}

static int join(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = test_config(rank, SIZE, test->port);
    sluice_world *world;
    slc_device *device;
    slc_segment segment;
    config.join_timeout_s = 3;
    CHECK(!close_range(3, ~0u, 0)); /* inherited ones would leave holes below the highest one */
    CHECK(!slc_device_open("cpu", &device));
    CHECK(!slc_segment_create(device, 1 << 20, &segment));
    const rlim_t most = (rlim_t)(highest_descriptor() + 1 + test->limit);
    struct rlimit limit = {most, most};
    if (rank == test->victim) CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    sluice_status status = sluice_world_create(&config, &world);
    if (!status) {
        status = slc_comm_attach(slc_world_comm(world), &segment, segment.base, 1 << 20);
        if (!status) test->joined[rank] = true;
        if (!status) status = sluice_world_barrier(world);
        char line[1024];
        snprintf(line, sizeof line, "%s", sluice_last_error());
        sluice_world_destroy(world);
        CHECK(!strcmp(line, sluice_last_error()) || !status);
    }
    slc_segment_destroy(&segment);
    slc_device_close(device);
    if (!status || strstr(sluice_last_error(), "escriptor")) return 0;
    if (strstr(sluice_last_error(), "missing: 0")) return 0; /* rank 0 could not even listen */
    if (strstr(sluice_last_error(), "Too many open files")) return 0;
    fprintf(stderr, "rank %d, limit %d of rank %d: %s\n", rank, test->limit, test->victim, sluice_last_error());
    return 1;
}

static void check_victim(int victim)
{
    bool *joined = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(joined != MAP_FAILED);
    int refused = 0;
    /* With one descriptor it can reach rank 0 (rank 0 can listen), so that the others may hear of it. */
    for (int limit = 1; limit < MOST && !joined[0]; limit += 3) {
        test_case test = {.port = free_port(), .victim = victim, .limit = limit, .joined = joined};
        memset(joined, 0, SIZE);
        assert_int_equal(run_ranks(SIZE, join, &test), 0);
        refused += !joined[0];
    }
    assert_true(joined[0]);
    assert_true(refused > 3);
    munmap(joined, SIZE);
}

static void rank_0_lacks_descriptors(void **state)
{
    (void)state;
    check_victim(0);
}

static void another_lacks_descriptors(void **state)
{
    (void)state;
    check_victim(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rank_0_lacks_descriptors),
                                       cmocka_unit_test(another_lacks_descriptors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
