/* Ranks that leave with an error: which of them reports it, which exit code the others learn, and that nobody waits for
 * ever for a rank that says nothing. */
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "tests/support/comm/forked_ranks.h"
#include "lib/comm/leave.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <cmocka.h>

enum { RANKS = 5, VICTIM = 2, CODE = 7, OTHER_CODE = 1 };
static const double limit_s = 30; /* against hanging: a rank waits 3 s at most */

typedef enum { ALL_ALIKE, ALONE, FAILS, FAILS_SLOWLY, DIES, DESTROYS, FIRST_IS_STOPPED } trouble;

typedef struct {
    bool speaks;
    int told_code;
} answer;

typedef struct {
    trouble what;
    int port, late; /* this rank is the last to leave; -1: none */
    answer *answers;
} test_case;

static void leave(sluice_world *world, const test_case *test, int rank, int code)
{
    const uint64_t start = slc_clock_ns();
    answer *mine = &test->answers[rank];
    mine->speaks = slc_world_leave(world, code, &mine->told_code);
    CHECK(slc_seconds(slc_clock_ns() - start) < limit_s);
}

static void suffer(sluice_world *world, const test_case *test)
{
    slc_error(SLUICE_ERR_ARGUMENT, "no such colour");
    switch (test->what) {
    case DIES: _exit(0);
    case DESTROYS: sluice_world_destroy(world); exit(0);
    case FAILS:
    case FAILS_SLOWLY:
        slc_comm_fail(slc_world_comm(world), SLUICE_ERR_IO, "disk on fire");
        CHECK(sluice_world_barrier(world) == SLUICE_ERR_IO);
        if (test->what == FAILS_SLOWLY) usleep(700000); /* the others have long been told */
        break;
    default: break;
    }
    leave(world, test, VICTIM, CODE);
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = test_config(rank, RANKS, test->port);
    sluice_world *world;
    CHECK(!sluice_world_create(&config, &world));
    CHECK(!sluice_world_barrier(world));
    if (test->what == ALL_ALIKE) {
        if (rank == test->late) usleep(300000);
        slc_error(SLUICE_ERR_ARGUMENT, "no such colour");
        leave(world, test, rank, CODE);
    } else if (rank == VICTIM)
        suffer(world, test);
    else if (test->what == FIRST_IS_STOPPED && rank == 0)
        kill(getpid(), SIGSTOP);
    else if (test->what == FIRST_IS_STOPPED)
        sluice_world_destroy(world);
    else {
        CHECK(sluice_world_barrier(world) == SLUICE_ERR_PEER);
        leave(world, test, rank, OTHER_CODE);
    }
    return 0;
}

static void play(trouble what, int late, answer answers[RANKS])
{
    ranks all;
    answer *shared = mmap(NULL, RANKS * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    test_case test = {what, free_port(), late, shared};
    ranks_start(&all, RANKS, body, &test);
    if (what == FIRST_IS_STOPPED) {
        for (int rank = 1; rank < RANKS; rank++) assert_int_equal(rank_wait(&all, rank), 0);
        kill(all.pids[0], SIGKILL);
        rank_wait(&all, 0);
    } else
        assert_int_equal(ranks_wait(&all), 0);
    memcpy(answers, shared, RANKS * sizeof *answers);
    munmap(shared, RANKS * sizeof *shared);
}

/* The lowest rank speaks for all, whoever leaves last. */
static void test_alike(void **state)
{
    (void)state;
    for (int late = -1; late < RANKS; late++) {
        answer answers[RANKS];
        play(ALL_ALIKE, late, answers);
        for (int rank = 0; rank < RANKS; rank++) assert_int_equal(answers[rank].speaks, rank == 0);
    }
}

static void check_victim_speaks(trouble what)
{
    answer answers[RANKS];
    play(what, -1, answers);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(answers[rank].speaks, rank == VICTIM);
        assert_int_equal(answers[rank].told_code, rank == VICTIM ? 0 : CODE);
    }
}

static void test_alone(void **state)
{
    (void)state;
    check_victim_speaks(ALONE);
    check_victim_speaks(FAILS);
    check_victim_speaks(FAILS_SLOWLY);
}

/* Nobody else reports the end of a rank that died, or that left without promising to report. */
static void test_silent_end(void **state)
{
    (void)state;
    for (trouble what = DIES; what <= DESTROYS; what++) {
        answer answers[RANKS];
        play(what, -1, answers);
        for (int rank = 0; rank < RANKS; rank++) {
            assert_int_equal(answers[rank].speaks, rank != VICTIM);
            assert_int_equal(answers[rank].told_code, 0);
        }
    }
}

static void test_stopped(void **state)
{
    answer answers[RANKS];
    (void)state;
    play(FIRST_IS_STOPPED, -1, answers);
    assert_true(answers[VICTIM].speaks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_silent_end),
        cmocka_unit_test(test_stopped),
    };
    return cmocka_run_group_tests_name("leave", tests, NULL, NULL);
}
