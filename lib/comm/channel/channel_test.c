/* Two ranks in one process, whose channels use each other's memory at the same addresses, each with a thread that
 * carries them out and one that submits: the thread sanitizer sees here that the words of the control pages alone order
 * the sender's writing, the receiver's copying, and the sender's writing again (lane_race_test.c says why). */
#include "tests/support/device/host_device.h"
#include "lib/base/clock.h"
#include "lib/comm/channel/channel.h"
#include "lib/comm/lane/lane.h"
#include "tests/support/comm/lane_rank.h"
#include "tests/support/scale.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = LANE_RANKS, CHANNELS = 3, PLACES = 2, PLACE = 300 << 10, MOST_ROUNDS = 1000, HANG_S = 60 };

typedef struct {
    char *places[CHANNELS][PLACES];
    slc_gate filled[CHANNELS]; /* counts the places that the program has filled */
    slc_gate_count counts[CHANNELS][MOST_ROUNDS];
    uint32_t rounds;
    uint32_t begun, ended; /* hooks */
    _Atomic(const char *) wrong;
    _Atomic bool stop;
    lane_rank lane;
    slc_channel channels[CHANNELS];
} place;

static sluice_status note_begin(void *context)
{
    place *p = context;
    p->begun++;
    return SLUICE_OK;
}

static sluice_status note_end(void *context)
{
    place *p = context;
    p->ended++;
    return SLUICE_OK;
}

/* ---- A rank ---- */

/* The arenas have different sizes, and the same place lies elsewhere in each. */
static void open_memory(place *p)
{
    const size_t before = (size_t)p->lane.rank * 8192;
    assert_int_equal(slc_segment_create(device, before + CHANNELS * PLACES * (size_t)PLACE, &p->lane.segment),
                     SLUICE_OK);
    char *at = (char *)p->lane.segment.base + before;
    for (int c = 0; c < CHANNELS; c++)
        for (int i = 0; i < PLACES; i++, at += PLACE) p->places[c][i] = at;
}

/* Opens the channels. They lead by turns down, from rank 0 to rank 1, and up, from 1 to 0, unless all lead down. */
static void open_channels(place *p, bool all_down)
{
    static const char *const names[CHANNELS] = {"down", "up", "down again"};
    for (int c = 0; c < CHANNELS; c++) {
        const int from = all_down ? 0 : c % 2;
        const slc_channel_desc desc = {from, 1 - from, (uint32_t)c * 7, names[c]};
        assert_int_equal(slc_channel_init(&p->channels[c], &p->lane.comm, &desc), SLUICE_OK);
        slc_gate_init(&p->filled[c]);
    }
}

static void open_rank(place *all, int rank, bool all_down)
{
    lane_rank_open((lane_rank *[]){&all[0].lane, &all[1].lane}, rank, device);
    open_channels(&all[rank], all_down);
}

static void close_rank(place *p)
{
    for (int c = 0; c < CHANNELS; c++) slc_channel_fini(&p->channels[c]);
    lane_rank_close(&p->lane);
}

static void *carry_out(void *context)
{
    place *p = context;
    while (!p->stop) {
        bool busy = false;
        for (int c = 0; c < CHANNELS; c++) busy |= slc_channel_step(&p->channels[c], slc_clock_ns());
        if (!busy) sched_yield();
    }
    return NULL;
}

/* ---- The program ---- */

static uint64_t bytes_of(int channel, uint32_t round)
{
    return PLACE - (uint64_t)(channel * 1000) - round % 7;
}

static char content_of(int channel, uint32_t round, uint64_t at)
{
    return (char)(channel * 31 + (int)(round * 7) + (int)(at % 113));
}

/* A send waits until the program has filled its place; a receive may begin at once. */
static void submit_transfer(place *p, int c, uint32_t round)
{
    slc_gate_count *count = &p->counts[c][round];
    *count = (slc_gate_count){&p->filled[c], round + 1};
    const bool sends = p->channels[c].sends;
    const slc_channel_transfer transfer = {.data = p->places[c][round % PLACES],
                                           .bytes = bytes_of(c, round),
                                           .label = round,
                                           .counts = sends ? count : NULL,
                                           .count_count = sends,
                                           .start = note_begin,
                                           .end = note_end,
                                           .context = p};
    if (slc_channel_submit(&p->channels[c], &transfer, 1, NULL)) p->wrong = "submission";
}

static bool wait_for_transfer(place *p, int c, uint32_t count)
{
    while (!slc_gate_wait(slc_channel_completed(&p->channels[c]), count, 10000000))
        if (slc_failed(&p->lane.failure)) {
            p->wrong = p->lane.failure.line;
            return false;
        }
    return true;
}

static void fill(place *p, int c, uint32_t round)
{
    char *to = p->places[c][round % PLACES];
    const uint64_t bytes = bytes_of(c, round);
    for (uint64_t i = 0; i < bytes; i++) to[i] = content_of(c, round, i);
    slc_gate_post(&p->filled[c], round + 1);
}

static void check(place *p, int c, uint32_t round)
{
    char *got = p->places[c][round % PLACES];
    const uint64_t bytes = bytes_of(c, round);
    for (uint64_t i = 0; i < bytes; i++)
        if (got[i] != content_of(c, round, i)) p->wrong = "what came";
    memset(got, 0, bytes);
}

/* A sender submits everything before it fills the first place, because each submission reads a word that the other rank
 * writes when it rings. */
static void *run_program(void *context)
{
    place *p = context;
    for (uint32_t round = 0; round < p->rounds; round++)
        for (int c = 0; c < CHANNELS; c++)
            if (p->channels[c].sends) submit_transfer(p, c, round);
    for (uint32_t round = 0; round <= p->rounds && !p->wrong; round++) {
        for (int c = 0; c < CHANNELS && round < p->rounds; c++) {
            if (!p->channels[c].sends)
                submit_transfer(p, c, round);
            else if (round < PLACES || wait_for_transfer(p, c, round + 1 - PLACES))
                fill(p, c, round);
        }
        for (int c = 0; c < CHANNELS && round; c++)
            if (!p->channels[c].sends && wait_for_transfer(p, c, round)) check(p, c, round - 1);
    }
    for (int c = 0; c < CHANNELS; c++) wait_for_transfer(p, c, p->rounds);
    return NULL;
}

static void check_order(bool all_down)
{
    static place all[RANKS];
    pthread_t carriers[RANKS], programs[RANKS];
    const uint32_t rounds = test_rounds(60);
    memset(all, 0, sizeof all);
    for (int rank = 0; rank < RANKS; rank++) {
        all[rank].lane.rank = rank;
        all[rank].rounds = rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS;
        open_memory(&all[rank]);
    }
    for (int rank = 0; rank < RANKS; rank++) open_rank(all, rank, all_down);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(pthread_create(&carriers[rank], NULL, carry_out, &all[rank]), 0);
        assert_int_equal(pthread_create(&programs[rank], NULL, run_program, &all[rank]), 0);
    }
    for (int rank = 0; rank < RANKS; rank++) pthread_join(programs[rank], NULL);
    for (int rank = 0; rank < RANKS; rank++) all[rank].stop = true;
    for (int rank = 0; rank < RANKS; rank++) pthread_join(carriers[rank], NULL);
    for (int rank = 0; rank < RANKS; rank++) {
        if (all[rank].wrong) fail_msg("rank %d: %s", rank, all[rank].wrong);
        assert_int_equal(all[rank].begun, CHANNELS * all[rank].rounds);
        assert_int_equal(all[rank].ended, CHANNELS * all[rank].rounds);
    }
    for (int rank = 0; rank < RANKS; rank++) close_rank(&all[rank]);
}

static void words_order_both_ends(void **state)
{
    (void)state;
    check_order(false);
}

/* No word but `taken` tells the sender that its place is free. */
static void words_order_one_way(void **state)
{
    (void)state;
    check_order(true);
}

/* ---- One thread, step by step ---- */

static void step_all(place *all)
{
    for (int i = 0; i < 20; i++)
        for (int rank = 0; rank < RANKS; rank++)
            for (int c = 0; c < CHANNELS; c++) slc_channel_step(&all[rank].channels[c], slc_clock_ns());
}

static void open_both(place *all)
{
    memset(all, 0, RANKS * sizeof *all);
    for (int rank = 0; rank < RANKS; rank++) all[rank].lane.rank = rank, open_memory(&all[rank]);
    for (int rank = 0; rank < RANKS; rank++) open_rank(all, rank, false);
}

static slc_channel_transfer whole(place *p, int c, uint64_t label)
{
    return (slc_channel_transfer){.data = p->places[c][0], .bytes = PLACE, .label = label};
}

/* A transfer that waits holds no other channel up, and a gate's count holds back the transfers behind it alone. */
static void channels_do_not_wait_for_each_other(void **state)
{
    (void)state;
    static place all[RANKS];
    open_both(all);
    slc_gate later;
    slc_gate_init(&later);
    const slc_gate_count count = {&later, 1};
    slc_channel_transfer held = whole(&all[0], 0, 5), behind = whole(&all[0], 0, 6);
    held.counts = &count;
    held.count_count = 1;
    const slc_channel_transfer takes[2] = {whole(&all[1], 0, 5), whole(&all[1], 0, 6)};
    assert_int_equal(slc_channel_submit(&all[0].channels[0], &held, 1, NULL), SLUICE_OK);
    assert_int_equal(slc_channel_submit(&all[0].channels[0], &behind, 1, NULL), SLUICE_OK);
    assert_int_equal(slc_channel_submit(&all[1].channels[0], takes, 2, NULL), SLUICE_OK);
    const slc_channel_transfer other[2] = {whole(&all[0], 2, 0), whole(&all[1], 2, 0)};
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(slc_channel_submit(&all[rank].channels[2], &other[rank], 1, NULL), SLUICE_OK);
    step_all(all);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_true(slc_gate_passed(slc_channel_completed(&all[rank].channels[2]), 1));
        assert_false(slc_gate_passed(slc_channel_completed(&all[rank].channels[0]), 1));
        assert_true(slc_channel_unfinished(&all[rank].channels[0]));
    }
    slc_gate_post(&later, 1);
    step_all(all);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_true(slc_gate_passed(slc_channel_completed(&all[rank].channels[0]), 2));
        assert_false(slc_channel_unfinished(&all[rank].channels[0]));
        assert_int_equal(slc_channel_bytes(&all[rank].channels[0]), 2 * PLACE);
        close_rank(&all[rank]);
    }
}

/* Ends that list a channel in different orders hear it, and nothing is copied. */
static void ends_that_differ_are_told(void **state)
{
    (void)state;
    static place all[RANKS];
    for (int what = 0; what < 2; what++) {
        open_both(all);
        slc_channel_transfer sent = whole(&all[0], 0, 3), taken = whole(&all[1], 0, what ? 3 : 4);
        if (what) taken.bytes--;
        memset(sent.data, 1, PLACE);
        assert_int_equal(slc_channel_submit(&all[0].channels[0], &sent, 1, NULL), SLUICE_OK);
        assert_int_equal(slc_channel_submit(&all[1].channels[0], &taken, 1, NULL), SLUICE_OK);
        step_all(all);
        assert_int_equal(slc_failure_get(&all[1].lane.failure), SLUICE_ERR_MISMATCH);
        assert_non_null(strstr(sluice_last_error(), what ? "307199 bytes with label 3" : "307200 bytes with label 4"));
        assert_non_null(strstr(sluice_last_error(), "channel \"down\", transfer 0"));
        assert_int_equal(((const char *)taken.data)[0], 0);
        for (int rank = 0; rank < RANKS; rank++) close_rank(&all[rank]);
    }
}

/* A place that a sender names outside its arena is not read. */
static void places_are_checked(void **state)
{
    (void)state;
    static place all[RANKS];
    open_both(all);
    slc_channel_transfer taken = whole(&all[1], 0, 0), outside = whole(&all[0], 0, 0);
    outside.data = (char *)all[0].lane.segment.base + all[0].lane.segment.bytes - PLACE + 1;
    assert_int_equal(slc_channel_submit(&all[0].channels[0], &outside, 1, NULL), SLUICE_ERR_ARGUMENT);
    outside.bytes = 0;
    assert_int_equal(slc_channel_submit(&all[0].channels[0], &outside, 1, NULL), SLUICE_ERR_ARGUMENT);
    all[0].lane.page.channels[0].offers[0] =
        (slc_offer){.offset = all[0].lane.segment.bytes - PLACE + 1, .bytes = PLACE};
    all[0].lane.page.channels[0].offered = 1;
    assert_int_equal(slc_channel_submit(&all[1].channels[0], &taken, 1, NULL), SLUICE_OK);
    step_all(all);
    assert_int_equal(slc_failure_get(&all[1].lane.failure), SLUICE_ERR_FORMAT);
    for (int rank = 0; rank < RANKS; rank++) close_rank(&all[rank]);
}

int main(void)
{
    alarm(HANG_S);
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_order_both_ends), cmocka_unit_test(words_order_one_way),
                                       cmocka_unit_test(channels_do_not_wait_for_each_other),
                                       cmocka_unit_test(ends_that_differ_are_told),
                                       cmocka_unit_test(places_are_checked)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
