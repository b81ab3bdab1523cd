/* When a rank dies, stalls, leaves, fails or does not come while others wait for it in a channel or a group, every
 * other rank must learn which one it is; and a rank that waits for a transfer itself is not to blame. */
#include "tests/support/comm/forked_ranks.h"
#include "tests/support/scale.h"
#include "lib/comm/channels.h"
#include "lib/comm/groups.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { SIZE = 3, BYTES = 3 << 20, VICTIM_CODE = 7, DONE = 4 };
static const double stall_s = 2.5; /* the limit in tests of ranks that stall or stay away */

typedef enum { KILLED, STOPPED, LEAVES, FAILS, STAYS_AWAY, OTHER_LABEL } fault;

/* The victim and a survivor are the ends of one channel, or two of three members of a group. */
typedef struct {
    int port, victim;
    test_path path;
    bool group;
    fault what;
} test_case;

typedef struct {
    sluice_world *world;
    slc_device *device;
    slc_segment segment;
    slc_comm *group;
    slc_channel *ring[2]; /* from the rank before, and to the rank after */
    uint32_t submitted;
} rig;

static void rig_open(rig *all, const test_case *test, int rank)
{
    sluice_world_config config = path_config(rank, SIZE, test->port, test->path);
    if (test->what == STOPPED || test->what == STAYS_AWAY) config.timeout_s = stall_s;
    CHECK(!sluice_world_create(&config, &all->world));
    slc_comm *comm = slc_world_comm(all->world);
    CHECK(!slc_device_open("cpu", &all->device));
    CHECK(!slc_segment_create(all->device, 4 * BYTES, &all->segment));
    CHECK(!slc_comm_attach_apart(comm, &all->segment, NULL, 0));
    const int members[SIZE] = {0, 1, 2}, before = (rank + SIZE - 1) % SIZE, after = (rank + 1) % SIZE;
    const slc_channel_desc descs[2] = {{before, rank, (uint32_t)rank, "ring"}, {rank, after, (uint32_t)after, "ring"}};
    CHECK(!slc_channels_open(comm, descs, 2, all->ring));
    CHECK(!slc_comm_group_create(comm, 1, members, SIZE, &all->group));
    CHECK(!slc_comm_group_attach(all->group, (char *)all->segment.base + BYTES, 3 * BYTES));
}

static void rig_close(rig *all)
{
    slc_channels_close(all->ring, 2);
    slc_comm_group_destroy(all->group);
    close_rank(all->world, &all->segment, all->device);
}

/* Makes one step: a sum of all members, or a transfer to the next rank and one from the rank before. */
static sluice_status step(rig *all, const test_case *test, uint64_t label)
{
    const slc_channel_transfer transfer = {
        .data = all->segment.base, .bytes = BYTES / 2, .label = label, .what = "endless transfer"};
    slc_channel_transfer other = transfer;
    other.data = (char *)all->segment.base + BYTES / 2;
    const uint64_t elements = BYTES / 4;
    const slc_op sum = {.kind = SLC_ALL_REDUCE,
                        .dtype = SLUICE_FP32,
                        .elements = elements,
                        .block_elements = elements / 8,
                        .block_count = 8,
                        .src = all->segment.base,
                        .dst = all->segment.base,
                        .scale = 0.25f,
                        .what = "endless sum"};
    all->submitted++;
    if (test->group) {
        sluice_status status = slc_comm_submit(all->group, &sum, 1, NULL);
        return status ? status : slc_comm_wait(all->group, all->submitted);
    }
    sluice_status status = slc_channel_submit(all->ring[1], &other, 1, NULL);
    if (!status) status = slc_channel_submit(all->ring[0], &transfer, 1, NULL);
    if (!status) status = slc_channel_wait(all->ring[0], all->submitted);
    return status ? status : slc_channel_wait(all->ring[1], all->submitted);
}

static void suffer(rig *all, const test_case *test)
{
    slc_comm *comm = slc_world_comm(all->world);
    for (uint64_t i = 0; i < DONE; i++) CHECK(!step(all, test, i));
    if (test->what != LEAVES && test->what != FAILS) usleep(100000); /* the others wait by then */
    switch (test->what) {
    case KILLED: kill(getpid(), SIGKILL); break;
    case STOPPED: kill(getpid(), SIGSTOP); break;
    case LEAVES: rig_close(all); exit(VICTIM_CODE);
    case FAILS:
        slc_comm_fail(comm, SLUICE_ERR_IO, "disk on fire");
        rig_close(all);
        exit(VICTIM_CODE);
    case STAYS_AWAY:
        while (!sluice_world_check(all->world)) usleep(20000);
        break;
    case OTHER_LABEL: step(all, test, 99); break;
    }
}

static int survive(rig *all, const test_case *test)
{
    sluice_status status = SLUICE_OK;
    const bool late = test->what == STOPPED || test->what == STAYS_AWAY;
    const sluice_status wanted = late                        ? SLUICE_ERR_TIMEOUT
                                 : test->what == OTHER_LABEL ? SLUICE_ERR_MISMATCH
                                                             : SLUICE_ERR_PEER;
    char part[64], line[1024];
    snprintf(part, sizeof part, test->what == STAYS_AWAY ? "rank %d is absent" : "rank %d ", test->victim);
    for (uint64_t i = 0; !status; i++) status = step(all, test, i);
    snprintf(line, sizeof line, "%s", sluice_last_error());
    if (status != wanted || !strstr(line, part)) {
        fprintf(stderr, "%s, \"%s\", should be %s and say \"%s\"\n", sluice_status_name(status), line,
                sluice_status_name(wanted), part);
        _exit(1);
    }
    CHECK(step(all, test, 0) == status && !strcmp(line, sluice_last_error())); /* every other call fails likewise */
    CHECK(sluice_world_barrier(all->world) == status && !strcmp(line, sluice_last_error()));
    rig_close(all);
    return 0;
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    if (rank != test->victim) return survive(&all, test);
    suffer(&all, test);
    rig_close(&all);
    return VICTIM_CODE;
}

static void end_case(const test_case *test, ranks *all)
{
    const bool killed = test->what == KILLED || test->what == STOPPED;
    ranks_outlive(all, test->victim, test->what == STOPPED, killed ? 128 + SIGKILL : VICTIM_CODE);
}

/* The worlds of a fault run at the same time, because most of them wait. Rank 0 is the middle of the control
 * connections, so both it and another one are tried. */
static void check_fault(fault what, bool groups)
{
    test_case tests[] = {{.victim = 1, .path = DIRECT, .what = what},
                         {.victim = 0, .path = MESSAGES, .what = what},
                         {.victim = 2, .path = MIXED, .what = what, .group = groups},
                         {.victim = 0, .path = DIRECT, .what = what, .group = groups},
                         {.victim = 1, .path = MESSAGES, .what = what, .group = groups}};
    const size_t count = test_brief() ? 3 : sizeof tests / sizeof *tests;
    ranks all[sizeof tests / sizeof *tests];
    for (size_t i = 0; i < count; i++) {
        tests[i].port = free_port();
        ranks_start(&all[i], SIZE, body, &tests[i]);
    }
    for (size_t i = 0; i < count; i++) end_case(&tests[i], &all[i]);
}

static void test_killed(void **state)
{
    (void)state;
    check_fault(KILLED, true);
}

static void test_stopped(void **state)
{
    (void)state;
    check_fault(STOPPED, true);
}

static void test_leaves(void **state)
{
    (void)state;
    check_fault(LEAVES, true);
}

static void test_fails(void **state)
{
    (void)state;
    check_fault(FAILS, true);
}

static void test_stays_away(void **state)
{
    (void)state;
    check_fault(STAYS_AWAY, true);
}

static void test_other_label(void **state)
{
    (void)state;
    check_fault(OTHER_LABEL, false);
}

/* ---- Who waits for whom ---- */

/* Rank 2 waits for rank 1, which waits for rank 0, which stays away: rank 0 alone is to blame. */
static int wait_in_line(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    const slc_channel_transfer transfer = {.data = all.segment.base, .bytes = BYTES, .what = "the first thing"};
    if (rank == 0) {
        while (!sluice_world_check(all.world)) usleep(20000);
    } else {
        CHECK(!slc_channel_submit(all.ring[0], &transfer, 1, NULL));
        const slc_gate_count after = {slc_channel_completed(all.ring[0]), 1};
        slc_channel_transfer onward = transfer;
        onward.counts = &after;
        onward.count_count = 1;
        if (rank == 1) CHECK(!slc_channel_submit(all.ring[1], &onward, 1, NULL));
        CHECK(slc_channel_wait(all.ring[0], 1) == SLUICE_ERR_TIMEOUT);
    }
    CHECK(sluice_world_check(all.world) == SLUICE_ERR_TIMEOUT);
    const char *line = sluice_last_error();
    if (!strstr(line, "rank 0 is absent: rank 1 waits in") || !strstr(line, "for the first thing")) {
        fprintf(stderr, "%s\n", line);
        _exit(1);
    }
    rig_close(&all);
    return 0;
}

static void test_line(void **state)
{
    (void)state;
    test_case tests[] = {{.path = DIRECT, .what = STAYS_AWAY}, {.path = MESSAGES, .what = STAYS_AWAY}};
    ranks all[2];
    for (int i = 0; i < 2; i++) {
        tests[i].port = free_port();
        ranks_start(&all[i], SIZE, wait_in_line, &tests[i]);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(ranks_wait(&all[i]), 0);
}

/* Rank 0 needs longer than the limit, bit by bit; those that wait meanwhile for its transfer accuse nobody. */
static int wait_for_slow(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    const slc_channel_transfer transfer = {.data = all.segment.base, .bytes = BYTES};
    slc_comm *comm = slc_world_comm(all.world);
    if (rank == 0)
        for (int i = 0; i < 8; i++) {
            usleep(500000);
            slc_comm_work(comm, i < 7 ? "thinking" : NULL);
        }
    if (rank > 0) CHECK(!slc_channel_submit(all.ring[0], &transfer, 1, NULL) && !slc_channel_wait(all.ring[0], 1));
    if (rank < 2) CHECK(!slc_channel_submit(all.ring[1], &transfer, 1, NULL) && !slc_channel_wait(all.ring[1], 1));
    CHECK(!sluice_world_barrier(all.world));
    rig_close(&all);
    return 0;
}

static void test_slow(void **state)
{
    (void)state;
    test_case test = {.path = DIRECT, .what = STAYS_AWAY, .port = free_port()};
    assert_int_equal(run_ranks(SIZE, wait_for_slow, &test), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed),     cmocka_unit_test(test_stopped),
                                       cmocka_unit_test(test_leaves),     cmocka_unit_test(test_fails),
                                       cmocka_unit_test(test_stays_away), cmocka_unit_test(test_other_label),
                                       cmocka_unit_test(test_line),       cmocka_unit_test(test_slow)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
