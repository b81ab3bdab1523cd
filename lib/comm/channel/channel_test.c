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

enum { RANKS = LANE_RANKS, CHANNELS = 3, PLACES = 2, PLACE = 300 << 10, CELL = 64, MOST_ROUNDS = 1000, HANG_S = 60 };

typedef struct {
    char *places[CHANNELS][PLACES];
    slc_gate filled[CHANNELS]; /* counts the places that the program has filled */
    slc_gate_count counts[CHANNELS][MOST_ROUNDS];
    uint32_t rounds;
    uint32_t begun, ended; /* hooks */
    pthread_mutex_t lock;  /* held while somebody is at the channels, where several threads may be */
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

static bool step_channels(place *p)
{
    bool busy = false;
    for (int c = 0; c < CHANNELS; c++) busy |= slc_channel_step(&p->channels[c], slc_clock_ns());
    return busy;
}

static void *carry_out(void *context)
{
    place *p = context;
    while (!p->stop)
        if (!step_channels(p)) sched_yield();
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

/* ---- Threads that sleep ---- */

static bool step_locked(place *p)
{
    pthread_mutex_lock(&p->lock);
    const bool busy = step_channels(p);
    pthread_mutex_unlock(&p->lock);
    return busy;
}

/* Carries transfers out as a world's thread does: where nothing is to be done it sleeps until somebody rings. */
static void *carry_out_when_rung(void *context)
{
    place *p = context;
    _Atomic uint32_t *sleeping = &p->lane.page.sleeping;
    while (!p->stop) {
        if (step_locked(p)) continue;
        atomic_exchange(sleeping, 1);
        const bool busy = step_locked(p);
        while (!busy && !p->stop && atomic_load(sleeping)) sched_yield();
        atomic_exchange(sleeping, 0);
    }
    return NULL;
}

/* Every round has a place of its own. */
static char *cell_of(const place *p, int c, uint32_t round)
{
    return p->places[c][0] + (uint64_t)round * CELL;
}

/* Both ends wait for a count that their program raises. Most sends do not ask to be told of their end. */
static void submit_counted(place *p, int c, uint32_t round)
{
    slc_gate_count *count = &p->counts[c][round];
    *count = (slc_gate_count){&p->filled[c], round + 1};
    const slc_channel_transfer transfer = {.data = cell_of(p, c, round),
                                           .bytes = CELL,
                                           .label = round,
                                           .counts = count,
                                           .count_count = 1,
                                           .start = note_begin,
                                           .end = note_end,
                                           .context = p,
                                           .end_may_wait = round % 5 != 4};
    if (slc_channel_submit(&p->channels[c], &transfer, 1, NULL)) p->wrong = "submission";
}

static void raise_count(place *p, int c, uint32_t round)
{
    if ((round * 7 + (uint32_t)c + (uint32_t)p->lane.rank) % 3 == 0)
        sched_yield(); /* the thread goes to sleep before */
    slc_gate_post(&p->filled[c], round + 1);
    slc_channel_go_on(&p->channels[c], &p->lock);
}

static void send_counted(place *p, int c, uint32_t round)
{
    memset(cell_of(p, c, round), content_of(c, round, 0), CELL);
    raise_count(p, c, round);
    if (round % 7 == 6 && slc_channel_wait(&p->channels[c], round - 2)) p->wrong = "a send";
}

static void receive_counted(place *p, int c, uint32_t round)
{
    const char *got = cell_of(p, c, round);
    raise_count(p, c, round);
    if (slc_channel_wait(&p->channels[c], round + 1)) p->wrong = "a receive";
    if (got[0] != content_of(c, round, 0) || got[CELL - 1] != got[0]) p->wrong = "what came";
}

/* A sender goes ahead of the receiver, as far as transfers may be open, and waits for some of its sends. */
static void *run_counted_program(void *context)
{
    place *p = context;
    for (uint32_t round = 0; round < p->rounds; round++)
        for (int c = 0; c < CHANNELS; c++) submit_counted(p, c, round);
    for (uint32_t round = 0; round < p->rounds && !p->wrong; round++)
        for (int c = 0; c < CHANNELS && !p->wrong; c++) {
            if (p->channels[c].sends)
                send_counted(p, c, round);
            else
                receive_counted(p, c, round);
        }
    for (int c = 0; c < CHANNELS && !p->wrong; c++)
        if (slc_channel_wait(&p->channels[c], p->rounds)) p->wrong = "the last";
    return NULL;
}

/* ---- Both kinds of threads ---- */

static void run_both_ends(bool all_down, uint32_t rounds, void *(*carry)(void *), void *(*program)(void *))
{
    static place all[RANKS];
    pthread_t carriers[RANKS], programs[RANKS];
    memset(all, 0, sizeof all);
    for (int rank = 0; rank < RANKS; rank++) {
        all[rank].lane.rank = rank;
        pthread_mutex_init(&all[rank].lock, NULL);
        all[rank].rounds = rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS;
        open_memory(&all[rank]);
    }
    for (int rank = 0; rank < RANKS; rank++) open_rank(all, rank, all_down);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(pthread_create(&carriers[rank], NULL, carry, &all[rank]), 0);
        assert_int_equal(pthread_create(&programs[rank], NULL, program, &all[rank]), 0);
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
    run_both_ends(false, test_rounds(60), carry_out, run_program);
}

/* No word but `taken` tells the sender that its place is free. */
static void words_order_one_way(void **state)
{
    (void)state;
    run_both_ends(true, test_rounds(60), carry_out, run_program);
}

/* A ring that is left out is one that nobody needs: else this hangs, and the alarm ends it. */
static void no_wait_is_lost(void **state)
{
    (void)state;
    for (int all_down = 0; all_down < 2; all_down++)
        run_both_ends(all_down, test_rounds(MOST_ROUNDS), carry_out_when_rung, run_counted_program);
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

/* A sender that nobody wakes does not notice that its transfer has been taken, but can see it. */
static void what_was_taken_has_arrived(void **state)
{
    (void)state;
    static place all[RANKS];
    open_both(all);
    slc_channel *from = &all[0].channels[0], *to = &all[1].channels[0];
    slc_channel_transfer sent = whole(&all[0], 0, 0), taken = whole(&all[1], 0, 0);
    sent.end_may_wait = true;
    assert_true(slc_channel_arrived(from, 0));
    assert_int_equal(slc_channel_submit(from, &sent, 1, NULL), SLUICE_OK);
    assert_int_equal(slc_channel_submit(to, &taken, 1, NULL), SLUICE_OK);
    while (slc_channel_step(from, slc_clock_ns())) continue;
    assert_false(slc_channel_arrived(from, 1));
    assert_false(slc_channel_arrived(to, 1));
    while (slc_channel_step(to, slc_clock_ns())) continue;
    assert_true(slc_channel_arrived(to, 1));
    assert_true(slc_channel_arrived(from, 1));
    assert_false(slc_gate_passed(slc_channel_completed(from), 1));
    for (int rank = 0; rank < RANKS; rank++) close_rank(&all[rank]);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_order_both_ends),     cmocka_unit_test(words_order_one_way),
        cmocka_unit_test(no_wait_is_lost),           cmocka_unit_test(channels_do_not_wait_for_each_other),
        cmocka_unit_test(ends_that_differ_are_told), cmocka_unit_test(places_are_checked),
        cmocka_unit_test(what_was_taken_has_arrived)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
