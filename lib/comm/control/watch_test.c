/* Ranks that wait in vain must be found. The judgement is asked about ranks that are made up, moment by moment; and
 * worlds whose ranks all run the same random program must never be accused, however unevenly they go on. */
#include "tests/support/comm/forked_ranks.h"
#include "lib/comm/control/control.h"
#include "lib/comm/control/watch.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { SIZE = 3 };

/* ---- Ranks that are made up ---- */

typedef struct {
    slc_failure failure;
    slc_control control;
    slc_socket links[SIZE - 1];
    slc_departure departures[SIZE];
    slc_collect collect;
} court;

static slc_doing *doing_of(court *c, int rank)
{
    return rank ? &c->links[rank - 1].doing : &c->control.doing;
}

static court *open_court(double timeout_s)
{
    court *c = calloc(1, sizeof *c);
    assert_non_null(c);
    slc_failure_init(&c->failure);
    c->control = (slc_control){
        .size = SIZE, .link_count = SIZE - 1, .links = c->links, .departures = c->departures, .failure = &c->failure};
    slc_watch_init(&c->control.watch, 0, timeout_s);
    for (int rank = 0; rank < SIZE; rank++) {
        *doing_of(c, rank) = (slc_doing){.begun = 10, .halted = 1, .one_thread = 1};
        snprintf(doing_of(c, rank)->text, sizeof doing_of(c, rank)->text, "does its number %d", rank);
        if (rank) c->links[rank - 1].rank = rank;
    }
    return c;
}

static void close_court(court *c)
{
    slc_failure_fini(&c->failure);
    free(c);
}

static void in_collective(court *c, int rank, uint32_t seconds)
{
    doing_of(c, rank)->place = SLC_IN_COLLECTIVE;
    doing_of(c, rank)->still_ms = doing_of(c, rank)->unmoved_ms = 1000 * seconds;
    if (rank)
        c->links[rank - 1].has_part = true;
    else
        c->control.collect = &c->collect;
}

static void in_operations(court *c, int rank, uint32_t needed, uint32_t seconds)
{
    doing_of(c, rank)->place = SLC_IN_OPERATIONS;
    doing_of(c, rank)->needed = needed;
    doing_of(c, rank)->still_ms = doing_of(c, rank)->unmoved_ms = 1000 * seconds;
}

static void in_neither(court *c, int rank, slc_place place, uint32_t seconds)
{
    doing_of(c, rank)->place = place;
    doing_of(c, rank)->still_ms = 1000 * seconds;
}

/* Returns the failure to which two heartbeats lead, and closes the court. */
static sluice_status verdict(court *c, const char *part)
{
    slc_watch_judge(&c->control);
    slc_watch_judge(&c->control);
    sluice_status status = slc_failure_get(&c->failure);
    if (status && !strstr(c->failure.line, part)) fail_msg("\"%s\" should say \"%s\"", c->failure.line, part);
    close_court(c);
    return status;
}

static void test_crossed(void **state)
{
    (void)state;
    for (int reader = 0; reader < SIZE; reader++) {
        court *c = open_court(0);
        for (int rank = 0; rank < SIZE; rank++) in_collective(c, rank, 0);
        if (reader)
            c->links[reader - 1].has_part = false;
        else
            c->control.collect = NULL;
        in_operations(c, reader, 11, 0);
        assert_int_equal(verdict(c, "does its number 2"), SLUICE_ERR_MISMATCH);
    }
    /* Two ranks are enough; a third may still compute. */
    court *c = open_court(0);
    in_collective(c, 1, 0);
    in_operations(c, 2, 11, 0);
    assert_int_equal(verdict(c, "calls that cannot meet"), SLUICE_ERR_MISMATCH);
}

/* Ranks that may still go on make no mistake. */
static void test_not_crossed(void **state)
{
    (void)state;
    for (int why = 0; why < 6; why++) {
        court *c = open_court(0);
        in_collective(c, 1, 5);
        in_operations(c, 2, 11, 5);
        switch (why) {
        case 0: doing_of(c, 1)->begun = 11; break;     /* it has begun the operation that the other one needs */
        case 1: doing_of(c, 1)->halted = 0; break;     /* or will begin it by itself */
        case 2: doing_of(c, 1)->one_thread = 0; break; /* or another of its threads may act */
        case 3: doing_of(c, 2)->one_thread = 0; break; /* another thread may bring the other one's part */
        case 4: c->control.collects = 1; break;        /* the collective in the heartbeat is over */
        case 5: c->links[0].has_part = false; break;
        }
        assert_int_equal(verdict(c, ""), SLUICE_OK);
    }
    /* Operations that all ranks have begun may take any time. */
    court *c = open_court(0);
    for (int rank = 0; rank < SIZE; rank++) in_operations(c, rank, 10, 50);
    assert_int_equal(verdict(c, ""), SLUICE_OK);
    /* Counts wrap. */
    c = open_court(0);
    in_collective(c, 1, 5);
    in_operations(c, 2, UINT32_MAX, 5);
    doing_of(c, 1)->begun = 3;
    assert_int_equal(verdict(c, ""), SLUICE_OK);
}

static sluice_status judge_absent(double timeout_s, slc_place place, uint32_t waits_s, uint32_t absent_s)
{
    court *c = open_court(timeout_s);
    in_collective(c, 0, waits_s);
    in_collective(c, 2, waits_s / 2);
    in_neither(c, 1, place, absent_s);
    return verdict(c, "rank 1 is absent: rank 0 does its number 0");
}

static void test_absent(void **state)
{
    (void)state;
    /* When no limit is set, the rank may be loading data. */
    assert_int_equal(judge_absent(0, SLC_ELSEWHERE, 590, 590), SLUICE_OK);
    assert_int_equal(judge_absent(0, SLC_ELSEWHERE, 610, 610), SLUICE_ERR_TIMEOUT);
    assert_int_equal(judge_absent(0, SLC_ELSEWHERE, 610, 5), SLUICE_OK); /* it made a call in between */
    assert_int_equal(judge_absent(0, SLC_ELSEWHERE, 5, 610), SLUICE_OK); /* nobody has waited for it for long */
    /* When a limit is set it holds, except for a rank that is at work in a call of ours. */
    assert_int_equal(judge_absent(30, SLC_ELSEWHERE, 29, 29), SLUICE_OK);
    assert_int_equal(judge_absent(30, SLC_ELSEWHERE, 31, 31), SLUICE_ERR_TIMEOUT);
    assert_int_equal(judge_absent(30, SLC_WORKING, 590, 590), SLUICE_OK);
    assert_int_equal(judge_absent(30, SLC_WORKING, 610, 610), SLUICE_ERR_TIMEOUT);
    assert_int_equal(judge_absent(900, SLC_WORKING, 890, 890), SLUICE_OK);
    /* The limit holds for operations too: rank 1 is absent only if it must act itself (halted), not if its
     * communication thread can still begin the operation. */
    for (int halted = 0; halted < 2; halted++) {
        court *c = open_court(30);
        in_operations(c, 0, 11, 31);
        in_operations(c, 2, 11, 31);
        in_neither(c, 1, SLC_ELSEWHERE, 31);
        doing_of(c, 0)->begun = doing_of(c, 2)->begun = 11;
        doing_of(c, 1)->halted = (uint8_t)halted;
        assert_int_equal(verdict(c, "rank 1 is absent"), halted ? SLUICE_ERR_TIMEOUT : SLUICE_OK);
    }
    /* A rank that left is not absent; other code judges that. */
    court *c = open_court(30);
    in_collective(c, 0, 31);
    in_collective(c, 2, 31);
    in_neither(c, 1, SLC_ELSEWHERE, 31);
    c->departures[1].left = true;
    doing_of(c, 0)->unmoved_ms = 0;
    assert_int_equal(verdict(c, ""), SLUICE_OK);
}

static void in_transfer(court *c, int rank, int missing, uint32_t seconds)
{
    doing_of(c, rank)->place = SLC_IN_TRANSFER;
    doing_of(c, rank)->missing = missing;
    doing_of(c, rank)->still_ms = doing_of(c, rank)->unmoved_ms = 1000 * seconds;
}

/* Rank 2 waits at a channel for rank 1, and rank 1 for rank 0. */
static court *open_line(void)
{
    court *c = open_court(30);
    in_transfer(c, 2, 1, 31);
    in_transfer(c, 1, 0, 31);
    in_neither(c, 0, SLC_ELSEWHERE, 31);
    return c;
}

/* A rank that waits at a channel is not absent; the one at which a line of them ends is. */
static void test_transfers(void **state)
{
    (void)state;
    const char *line = "rank 0 is absent: rank 1 does its number 1 for 31 s, to which rank 0 has not come";
    assert_int_equal(verdict(open_line(), line), SLUICE_ERR_TIMEOUT);
    for (int why = 0; why < 5; why++) {
        court *c = open_line();
        switch (why) {
        case 0: doing_of(c, 0)->place = SLC_WORKING; break;
        case 1: doing_of(c, 0)->still_ms = 29000; break;
        case 2: doing_of(c, 1)->unmoved_ms = 5000; break; /* its transfer is on its way */
        case 3: doing_of(c, 1)->missing = -1; break;
        case 4: in_operations(c, 0, 10, 29); break;
        }
        assert_int_equal(verdict(c, ""), SLUICE_OK);
    }
    /* Rank 0 is not absent for a rank that waits for its next operation either. */
    court *c = open_line();
    in_operations(c, 0, 11, 31);
    in_neither(c, 2, SLC_ELSEWHERE, 31);
    doing_of(c, 2)->begun = 11;
    assert_int_equal(verdict(c, ""), SLUICE_OK);
    /* No rank is to blame alone if all wait for each other. */
    c = open_line();
    in_transfer(c, 0, 2, 31);
    assert_int_equal(verdict(c, "every rank waits and nothing moves"), SLUICE_ERR_MISMATCH);
}

static void test_standstill(void **state)
{
    (void)state;
    for (int moves = 0; moves < 2; moves++) {
        court *c = open_court(0);
        for (int rank = 0; rank < SIZE; rank++) in_operations(c, rank, 10, 61);
        if (moves) doing_of(c, 1)->unmoved_ms = 10000;
        assert_int_equal(verdict(c, "every rank waits"), moves ? SLUICE_OK : SLUICE_ERR_MISMATCH);
    }
}

static void lacks(court *c, int rank, int peer, uint32_t operation, uint32_t stage)
{
    in_operations(c, rank, 10, 61);
    doing_of(c, rank)->lacks = 1;
    doing_of(c, rank)->peer = peer;
    doing_of(c, rank)->operation = operation;
    doing_of(c, rank)->stage = stage;
}

/* If every rank has begun the operation of which one lacks a message, the network withholds that message. */
static void test_cut(void **state)
{
    (void)state;
    static const struct {
        uint32_t begun[SIZE], operation[SIZE], stage[SIZE];
        sluice_status status;
        const char *part;
    } cases[] = {
        {{10, 10, 10}, {9, 9, 9}, {16, 16, 0}, SLUICE_ERR_TIMEOUT, "between rank 1 and rank 2 carries heartbeats"},
        {{10, 10, 10}, {9, 9, 9}, {8, 16, 9}, SLUICE_ERR_TIMEOUT, "between rank 2 and rank 0 carries heartbeats"},
        {{12, 10, 10}, {10, 9, 9}, {0, 1, 2}, SLUICE_ERR_TIMEOUT, "between rank 2 and rank 1 carries heartbeats"},
        {{1, UINT32_MAX, 0}, {0, UINT32_MAX - 1, UINT32_MAX}, {0, 3, 0}, SLUICE_ERR_TIMEOUT, "rank 2 and rank 1"},
        {{10, 10, 9}, {9, 9, 9}, {0, 1, 2}, SLUICE_ERR_MISMATCH, "all ranks must make the same calls"},
        {{10, 11, 10}, {10, 10, 10}, {0, 1, 2}, SLUICE_ERR_MISMATCH, "all ranks must make the same calls"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        court *c = open_court(60); /* a limit on absence too, and a rank that lacks a message is not absent */
        for (int rank = 0; rank < SIZE; rank++) {
            lacks(c, rank, rank == 2 ? 1 : 2, cases[i].operation[rank], cases[i].stage[rank]);
            doing_of(c, rank)->begun = doing_of(c, rank)->needed = cases[i].begun[rank];
        }
        assert_int_equal(verdict(c, cases[i].part), cases[i].status);
    }
    /* A rank whose messages have left may wait in a collective for one that lacks them; so may any that lacks none. */
    court *c = open_court(0);
    in_collective(c, 0, 61);
    in_collective(c, 1, 61);
    lacks(c, 2, 0, 9, 0);
    assert_int_equal(verdict(c, "between rank 0 and rank 2 carries heartbeats"), SLUICE_ERR_TIMEOUT);
    /* While one of them moves, all may wait. */
    c = open_court(0);
    for (int rank = 0; rank < SIZE; rank++) lacks(c, rank, (rank + 1) % SIZE, 9, 0);
    doing_of(c, 1)->unmoved_ms = 10000;
    assert_int_equal(verdict(c, ""), SLUICE_OK);
}

/* ---- Worlds that go on unevenly ---- */

enum { ELEMENTS = 4800, ROUNDS = 400, BATCH = 3 };

typedef struct {
    int port;
    test_path path;
    uint64_t seed;
} uneven;

/* Pauses on the way, operations that need gates which are raised late, and collectives in between: they are the same on
 * every rank, except for the time that each takes between two calls. */
static int go_unevenly(int rank, void *argument)
{
    const uneven *test = argument;
    sluice_world_config config = path_config(rank, SIZE, test->port, test->path);
    config.timeout_s = 0;
    sluice_world *world;
    slc_device *device;
    slc_segment segment;
    CHECK(!sluice_world_create(&config, &world));
    slc_comm *comm = slc_world_comm(world);
    CHECK(!slc_device_open("cpu", &device) && !slc_segment_create(device, ELEMENTS * 16, &segment));
    CHECK(!slc_comm_attach(comm, &segment, (char *)segment.base + ELEMENTS * 4, ELEMENTS * 12));
    const slc_op sum = {.kind = SLC_ALL_REDUCE,
                        .dtype = SLUICE_FP32,
                        .elements = ELEMENTS,
                        .block_elements = ELEMENTS / 10,
                        .block_count = 10,
                        .src = segment.base,
                        .dst = segment.base,
                        .scale = 0.3f,
                        .what = "uneven sum"};
    slc_gate gate;
    slc_gate_init(&gate);
    uint64_t drawn = test->seed, own = test->seed + (uint64_t)rank + 1;
    uint32_t raised = 0, index = 0, submitted = 0;
    for (int round = 0; round < ROUNDS; round++) {
        slc_op ops[BATCH] = {sum, sum, sum};
        if (pick(&own, 20) == 0) usleep((useconds_t)pick(&own, 300000));
        switch (pick(&drawn, 5)) {
        case 0:
        case 1: /* some of them wait for a gate */
            ops[1 + pick(&drawn, 2)].wait[0] = &gate;
            ops[1].wait_value[0] = ops[2].wait_value[0] = raised + 1;
            CHECK(!slc_comm_submit(comm, ops, BATCH, &index));
            submitted = index + BATCH;
            if (pick(&drawn, 2)) CHECK(!sluice_world_barrier(world)); /* with the gate closed */
            if (pick(&own, 10) == 0) usleep((useconds_t)pick(&own, 200000));
            slc_gate_post(&gate, ++raised);
            slc_comm_notify(comm);
            break;
        case 2: CHECK(!slc_comm_wait(comm, submitted)); break;
        case 3: CHECK(!sluice_world_barrier(world)); break;
        case 4: CHECK(!slc_comm_meet(comm, "meeting", NULL)); break;
        }
    }
    CHECK(!slc_comm_wait(comm, submitted));
    close_rank(world, &segment, device);
    return 0;
}

/* The worlds run at the same time, because they wait most of it. */
static void test_uneven(void **state)
{
    (void)state;
    uneven tests[MIXED + 1];
    ranks all[MIXED + 1];
    for (int path = DIRECT; path <= MIXED; path++) {
        tests[path] = (uneven){.port = free_port(), .path = (test_path)path, .seed = 77 + (uint64_t)path};
        ranks_start(&all[path], SIZE, go_unevenly, &tests[path]);
    }
    for (int path = DIRECT; path <= MIXED; path++) assert_int_equal(ranks_wait(&all[path]), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crossed),   cmocka_unit_test(test_not_crossed), cmocka_unit_test(test_absent),
        cmocka_unit_test(test_transfers), cmocka_unit_test(test_standstill),  cmocka_unit_test(test_cut),
        cmocka_unit_test(test_uneven),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
