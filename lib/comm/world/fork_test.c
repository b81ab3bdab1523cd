/* Ranks that have children. A forked child holds nothing of the rank's world, so the rank's death is noticed at once,
 * while the child lives on, and a call in the child is an error that disturbs no rank. */
#include "tests/support/comm/forked_ranks.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <cmocka.h>

enum { ELEMENTS = 48 * 1000, SIZE = 3, PARENT = 1 };
static const float untouched = 77;

/* Shared by all processes of a test. */
typedef struct {
    pid_t child;
} shared;

typedef struct {
    int port;
    test_path path;
    bool exec; /* the child becomes another program */
    shared *seen;
} test_case;

typedef struct {
    slc_device *device;
    slc_segment segment;
    sluice_world *world;
    float *data, *beyond; /* the data that are summed, and a place that no operation touches */
} rig;

static void rig_open(rig *all, const test_case *test, int rank)
{
    sluice_world_config config = path_config(rank, SIZE, test->port, test->path);
    CHECK(!sluice_world_create(&config, &all->world));
    CHECK(!slc_device_open("cpu", &all->device));
    CHECK(!slc_segment_create(all->device, ELEMENTS * 4 * 8, &all->segment));
    all->data = all->segment.base;
    all->beyond = all->data + ELEMENTS;
    for (int i = 0; i < ELEMENTS; i++) all->beyond[i] = untouched;
    char *scratch = (char *)all->segment.base + ELEMENTS * 4 * 2;
    CHECK(!slc_comm_attach(slc_world_comm(all->world), &all->segment, scratch, ELEMENTS * 4 * 6));
}

static slc_op sum_op(const rig *all)
{
    return (slc_op){.kind = SLC_ALL_REDUCE,
                    .dtype = SLUICE_FP32,
                    .elements = ELEMENTS,
                    .block_elements = 4800,
                    .block_count = ELEMENTS / 4800,
                    .src = all->data,
                    .dst = all->data,
                    .scale = 1,
                    .what = "sum"};
}

static void sum_ones(rig *all)
{
    slc_comm *comm = slc_world_comm(all->world);
    slc_op op = sum_op(all);
    uint32_t index;
    for (int i = 0; i < ELEMENTS; i++) all->data[i] = 1;
    CHECK(!slc_comm_submit(comm, &op, 1, &index));
    CHECK(!slc_comm_wait(comm, index + 1));
    for (int i = 0; i < ELEMENTS; i++) CHECK(all->data[i] == SIZE && all->beyond[i] == untouched);
}

/* ---- A child that sleeps ---- */

static pid_t fork_sleeper(bool exec)
{
    pid_t child = fork();
    if (child) return child;
    if (exec) execlp("sleep", "sleep", "60", NULL);
    sleep(60);
    _exit(0);
}

static int die_with_a_child(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    sum_ones(&all);
    sluice_status status = sluice_world_barrier(all.world);
    if (rank == PARENT) {
        test->seen->child = fork_sleeper(test->exec);
        kill(getpid(), SIGKILL);
    }
    while (!status) status = sluice_world_barrier(all.world);
    CHECK(status == SLUICE_ERR_PEER && strstr(sluice_last_error(), "rank 1 died"));
    close_rank(all.world, &all.segment, all.device);
    return 0;
}

static test_case open_case(test_path path)
{
    test_case test = {.port = free_port(), .path = path};
    test.seen = mmap(NULL, sizeof *test.seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(test.seen != MAP_FAILED);
    return test;
}

static void check_death(test_path path, bool exec)
{
    test_case test = open_case(path);
    ranks all;
    test.exec = exec;
    ranks_start(&all, SIZE, die_with_a_child, &test);
    for (int rank = 0; rank < SIZE; rank++) assert_int_equal(rank_wait(&all, rank), rank == PARENT ? 128 + SIGKILL : 0);
    assert_true(test.seen->child > 0);
    assert_int_equal(kill(test.seen->child, SIGKILL), 0); /* it was still alive */
    munmap(test.seen, sizeof *test.seen);
}

static void test_death(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MIXED; path++) {
        check_death((test_path)path, false);
        check_death((test_path)path, true);
    }
}

/* ---- A child that calls ---- */

static void expect_refusal(sluice_status status)
{
    CHECK(status == SLUICE_ERR_ORDER);
    CHECK(strstr(sluice_last_error(), "forked from rank 1"));
}

/* A child leaves its parent's transport's allocations where they are, which the leak checker would count. */
static void leave_child(void)
{
#ifdef __SANITIZE_ADDRESS__
    _exit(0);
#else
    exit(0);
#endif
}

static void call_in_child(rig *all)
{
    slc_comm *comm = slc_world_comm(all->world);
    slc_op op = sum_op(all);
    double value = 1;
    alarm(20);
    expect_refusal(sluice_world_check(all->world));
    expect_refusal(sluice_world_barrier(all->world));
    expect_refusal(sluice_world_all_reduce(all->world, &value, 1));
    expect_refusal(slc_comm_submit(comm, &op, 1, NULL));
    expect_refusal(slc_comm_wait(comm, 1000));
    expect_refusal(slc_comm_attach(comm, &all->segment, all->data, 4096));
    slc_comm_notify(comm);
    slc_comm_fail(comm, SLUICE_ERR_IO, "the child's own trouble");
    for (int i = 0; i < 2 * ELEMENTS; i++) all->data[i] = -1;
    slc_segment_discard(&all->segment, 0, all->segment.bytes);
    CHECK(sluice_world_rank(all->world) == PARENT && sluice_world_size(all->world) == SIZE);
    close_rank(all->world, &all->segment, all->device);
    leave_child();
}

static int have_a_child_that_calls(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    sum_ones(&all);
    for (int i = 0; i < 3; i++) {
        pid_t child = rank == PARENT ? fork() : -1;
        if (!child) call_in_child(&all);
        sum_ones(&all); /* while the child does its part */
        int status = 0;
        if (child > 0) CHECK(waitpid(child, &status, 0) == child && !exit_code(status));
        sum_ones(&all);
        CHECK(!sluice_world_barrier(all.world));
    }
    close_rank(all.world, &all.segment, all.device);
    return 0;
}

static void test_calls(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MIXED; path++) {
        test_case test = {.port = free_port(), .path = (test_path)path};
        assert_int_equal(run_ranks(SIZE, have_a_child_that_calls, &test), 0);
    }
}

/* ---- Programs that exec starts ---- */

/* The number of descriptors of a program that this process starts. */
static int inherited_descriptors(void)
{
    int count = -1;
    FILE *answer = popen("ls /proc/self/fd | wc -l", "re");
    CHECK(answer && fscanf(answer, "%d", &count) == 1);
    pclose(answer);
    return count;
}

static int start_a_program(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    int before = inherited_descriptors();
    rig_open(&all, test, rank);
    sum_ones(&all);
    CHECK(inherited_descriptors() == before);
    close_rank(all.world, &all.segment, all.device);
    return 0;
}

/* Tested on this path alone, because a transport's library opens descriptors that it keeps to itself. */
static void test_exec(void **state)
{
    (void)state;
    test_case test = {.port = free_port(), .path = DIRECT};
    assert_int_equal(run_ranks(SIZE, start_a_program, &test), 0);
}

/* A world of one has a thread too, which a child lacks. */
static int alone_with_a_child(int rank, void *argument)
{
    test_case test = {.port = free_port()};
    (void)rank, (void)argument;
    sluice_world_config config = path_config(0, 1, test.port, DIRECT);
    rig all = {0};
    CHECK(!sluice_world_create(&config, &all.world));
    pid_t child = fork();
    if (!child) {
        alarm(20);
        CHECK(sluice_world_barrier(all.world) == SLUICE_ERR_ORDER && strstr(sluice_last_error(), "forked from rank 0"));
        CHECK(slc_comm_submit(slc_world_comm(all.world), &(slc_op){.kind = SLC_BARRIER}, 1, NULL) == SLUICE_ERR_ORDER);
        sluice_world_destroy(all.world);
        CHECK(!sluice_world_create(&config, &all.world)); /* a world of the child's own */
        CHECK(!sluice_world_barrier(all.world));
        sluice_world_destroy(all.world);
        exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && !exit_code(status));
    CHECK(!sluice_world_barrier(all.world));
    sluice_world_destroy(all.world);
    return 0;
}

static void test_alone(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    puts("SKIP: a world of a forked child: the thread sanitizer allows no threads there");
    skip();
#endif
    assert_int_equal(run_ranks(1, alone_with_a_child, NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_exec),
        cmocka_unit_test(test_alone),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
