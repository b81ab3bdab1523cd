/* Two ranks in one process, whose lanes use each other's memory at the same addresses, each in a thread of its own.
 * Ranks of two processes order what they do with it by the words of their control pages alone, which the thread
 * sanitizer cannot see there: each process has addresses and an order of its own. Here it sees every access, and that
 * nothing else orders the two.
 *
 * There are two because a lane that rings a neighbour writes a word of the neighbour's page: of three, two would be
 * ordered by the word of the third. */
#include "tests/support/device/host_device.h"
#include "lib/base/clock.h"
#include "lib/comm/lane/lane.h"
#include "tests/support/comm/lane_rank.h"
#include "tests/support/scale.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = LANE_RANKS, BLOCK = 16 * RANKS * 4, BLOCKS = 3, ELEMENTS = BLOCK * BLOCKS, ARRAYS = 4, HANG_S = 60 };
enum { OPERATIONS = 9 };

typedef struct {
    float *sent, *summed, *whole, *given; /* arrays of ELEMENTS in the segment */
    float round;
    uint32_t submitted;
    _Atomic(const char *) wrong; /* what is not as it should be */
    _Atomic bool stop;
    lane_rank lane;
} place;

/* ---- A rank ---- */

static void open_memory(place *p)
{
    assert_int_equal(slc_segment_create(device, ARRAYS * ELEMENTS * sizeof(float), &p->lane.segment), SLUICE_OK);
    float *base = p->lane.segment.base;
    p->sent = base, p->summed = base + ELEMENTS, p->whole = base + 2 * ELEMENTS, p->given = base + 3 * ELEMENTS;
}

static void open_lane(place *all, int rank)
{
    lane_rank_open((lane_rank *[]){&all[0].lane, &all[1].lane}, rank, device);
}

/* ---- What the program does between operations ---- */

static sluice_status write_sent(void *context)
{
    place *p = context;
    for (int i = 0; i < ELEMENTS; i++) p->sent[i] = p->round + (float)(i + p->lane.rank);
    return SLUICE_OK;
}

static sluice_status write_given(void *context)
{
    place *p = context;
    for (int i = 0; i < ELEMENTS; i++) p->given[i] = p->lane.rank ? -1 : p->round + (float)i;
    return SLUICE_OK;
}

static sluice_status check_whole(void *context)
{
    place *p = context;
    for (int i = 0; i < ELEMENTS; i++)
        if (p->whole[i] != 2 * p->round + (float)(2 * i + 1)) p->wrong = "the gathered sum";
    return SLUICE_OK;
}

static sluice_status check_twice(void *context)
{
    place *p = context;
    for (int i = 0; i < ELEMENTS; i++)
        if (p->whole[i] != 4 * p->round + (float)(4 * i + 2)) p->wrong = "the sum of what was gathered";
    return SLUICE_OK;
}

/* Checks in the thread that submits, which is as free to touch the memory once it has waited. */
static void check_given(place *p)
{
    for (int i = 0; i < ELEMENTS; i++)
        if (p->given[i] != p->round + (float)i) p->wrong = "what rank 0 gave";
    memset(p->lane.segment.base, 0, ARRAYS * ELEMENTS * sizeof(float));
}

/* ---- Operations ---- */

static slc_op collective(slc_op_kind kind, const void *src, void *dst)
{
    return (slc_op){.kind = kind,
                    .dtype = SLUICE_FP32,
                    .elements = ELEMENTS,
                    .block_elements = BLOCK,
                    .block_count = BLOCKS,
                    .src = src,
                    .dst = dst,
                    .scale = 1};
}

/* A call waits until all operations before it are complete, as the engine's do: then the memory is this rank's again.
 */
static slc_op program(place *p, sluice_status (*call)(void *), uint32_t before)
{
    return (slc_op){.kind = SLC_CALL,
                    .call = call,
                    .context = p,
                    .wait = {NULL, &p->lane.comm.queue.counts.completed},
                    .wait_value = {0, p->submitted + before}};
}

static void submit_round(place *p)
{
    slc_op ops[OPERATIONS] = {0};
    uint32_t n = 0;
    ops[n] = program(p, write_sent, n), n++;
    ops[n++] = collective(SLC_REDUCE_SCATTER, p->sent, p->summed);
    ops[n] = program(p, write_sent, n), n++;
    ops[n++] = collective(SLC_ALL_GATHER, p->summed, p->whole);
    ops[n] = program(p, check_whole, n), n++;
    ops[n++] = collective(SLC_ALL_REDUCE, p->whole, p->whole);
    ops[n] = program(p, check_twice, n), n++;
    ops[n] = program(p, write_given, n), n++;
    ops[n++] = collective(SLC_BROADCAST, p->given, p->given);
    /* Operations are submitted one at a time, so that the lane finds the last one when it is just there. */
    for (uint32_t i = 0; i < n; i++)
        if (slc_comm_submit(&p->lane.comm, &ops[i], 1, NULL)) p->wrong = "submission";
    p->submitted += n;
}

static void *run_lane(void *context)
{
    place *p = context;
    while (!p->stop)
        if (!slc_lane_step(&p->lane.comm, slc_clock_ns())) sched_yield();
    return NULL;
}

static void *run_program(void *context)
{
    place *p = context;
    for (uint32_t round = 1, rounds = test_rounds(100); round <= rounds; round++) {
        p->round = (float)round;
        submit_round(p);
        while (!slc_gate_wait(&p->lane.comm.queue.counts.completed, p->submitted, 10000000))
            if (slc_failed(&p->lane.failure)) {
                p->wrong = p->lane.failure.line;
                return NULL;
            }
        check_given(p);
    }
    return NULL;
}

static void pages_order_what_neighbours_do(void **state)
{
    (void)state;
    static place all[RANKS];
    pthread_t lanes[RANKS], programs[RANKS];
    for (int rank = 0; rank < RANKS; rank++) open_memory(&all[rank]);
    for (int rank = 0; rank < RANKS; rank++) open_lane(all, rank);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(pthread_create(&lanes[rank], NULL, run_lane, &all[rank]), 0);
        assert_int_equal(pthread_create(&programs[rank], NULL, run_program, &all[rank]), 0);
    }
    for (int rank = 0; rank < RANKS; rank++) pthread_join(programs[rank], NULL);
    for (int rank = 0; rank < RANKS; rank++) all[rank].stop = true;
    for (int rank = 0; rank < RANKS; rank++) pthread_join(lanes[rank], NULL);
    for (int rank = 0; rank < RANKS; rank++) {
        if (all[rank].wrong) fail_msg("rank %d: %s", rank, all[rank].wrong);
        lane_rank_close(&all[rank].lane);
    }
}

int main(void)
{
    alarm(HANG_S);
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages_order_what_neighbours_do)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
