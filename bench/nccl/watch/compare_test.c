/* Ranks that keep to the rules are never accused, at whatever moments their records are read; each planted fault is
 * named. */
#include "tests/support/bench/scene.h"

#include "lib/base/numbers/random.h"
#include "tests/support/seed.h"

static void expect_difference(call usual, call other, const char *text)
{
    scene s;
    scene_begin_with_three(&s);
    for (int i = 0; i < 3; i++) scene_call(&s, i, 0, usual);
    scene_expect_nothing(&s);
    scene_call(&s, 3, 0, other);
    scene_expect(&s, SLC_NCCL_FOUND_DIFFERS, text);
    assert_int_equal(s.found.rows[0].number, 4);
    scene_call(&s, 0, 0, usual); /* it waits in vain, which is a consequence */
    scene_all_quiet(&s, 12);
    scene_expect(&s, SLC_NCCL_FOUND_DIFFERS, text);
    scene_end(&s);
}

static void arguments(void **state)
{
    (void)state;
    call count = sum_of_64, dtype = sum_of_64, redop = sum_of_64;
    count.count = 32;
    dtype.dtype = INT8;
    redop.redop = MAX;
    call gather = {SLC_RECORD_ALL_GATHER, 64, FLOAT32, SLC_RECORD_NO_REDOP, -1, 1, 0, 0};
    call root = {SLC_RECORD_BROADCAST, 64, FLOAT32, SLC_RECORD_NO_REDOP, 0, 1, 0, 0}, other_root = root;
    other_root.peer = 2;
    expect_difference(sum_of_64, count,
                      "communicator 3f2a (4 ranks), operation 4: ranks 0-2 called all_reduce float32[64] sum, rank 3 "
                      "called all_reduce float32[32] sum");
    expect_difference(sum_of_64, dtype, "rank 3 called all_reduce int8[64] sum");
    expect_difference(sum_of_64, redop, "rank 3 called all_reduce float32[64] max");
    expect_difference(sum_of_64, gather, "rank 3 called all_gather float32[64]");
    expect_difference(root, other_root, "rank 3 called broadcast float32[64] root 2");
}

static void order(void **state)
{
    (void)state;
    scene s;
    call big = sum_of_64;
    big.count = 1000;
    scene_begin_with_three(&s);
    for (int i = 0; i < 3; i++) {
        scene_call(&s, i, 0, sum_of_64);
        scene_call(&s, i, 0, big);
    }
    scene_call(&s, 3, 0, big);
    scene_call(&s, 3, 0, sum_of_64);
    scene_expect(&s, SLC_NCCL_FOUND_DIFFERS, "operation 4: ranks 0-2 called all_reduce float32[64] sum, rank 3 called");
    assert_non_null(strstr(s.found.rows[0].hint, "opposite order"));
    scene_end(&s);
}

static void call_left_out(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    for (unsigned n = 0; n < 5; n++)
        for (int i = 0; i < 4; i++) {
            call c = sum_of_64;
            c.count += n;
            if (i != 1 || n != 1) scene_call(&s, i, 0, c);
        }
    scene_expect(
        &s, SLC_NCCL_FOUND_DIFFERS,
        "operation 5: ranks 0 and 2-3 called all_reduce float32[65] sum, rank 1 called all_reduce float32[66]");
    assert_non_null(strstr(s.found.rows[0].hint, "left out a call"));
    scene_end(&s);
}

/* Two ranks: only what they did before tells which of them is wrong. */
static void out_of_step(void **state)
{
    (void)state;
    for (int left_out = 0; left_out < 2; left_out++) {
        scene s;
        scene_begin(&s, 2);
        scene_join_all(&s, 0x3f2a000000000001);
        for (unsigned n = 0; n < 33; n++) {
            call c = sum_of_64;
            c.count += n % 10;
            scene_all_call(&s, 0, c);
        }
        call due = sum_of_64, other = sum_of_64;
        due.count += 3;
        other.count = left_out ? 64 + 4 : 5;
        scene_call(&s, 0, 0, other);
        scene_call(&s, 1, 0, due);
        scene_expect(&s, SLC_NCCL_FOUND_DIFFERS,
                     left_out ? "; going by earlier steps, rank 0 left out a call"
                              : "; going by earlier steps, rank 0 made the wrong call");
        scene_end(&s);
    }
}

/* Two groups of one size and nothing before: neither is accused, and the sequences are told. */
static void no_majority(void **state)
{
    (void)state;
    scene s;
    scene_begin(&s, 2);
    scene_join_all(&s, 0x3f2a000000000001);
    for (unsigned n = 0; n < 5; n++) {
        call c = sum_of_64;
        c.count += n;
        scene_call(&s, 0, 0, c);
        if (n != 1) scene_call(&s, 1, 0, c);
    }
    scene_expect(
        &s, SLC_NCCL_FOUND_DIFFERS,
        "operation 2: rank 0 called all_reduce float32[65] sum, rank 1 called all_reduce float32[66] sum; rank 1 "
        "goes on with what rank 0 called next");
    assert_null(strstr(s.found.rows[0].hint, "group"));
    /* The call before returned an error on one of them. */
    s.processes[1].entries[0].flags = SLC_RECORD_FAILED;
    scene_expect(&s, SLC_NCCL_FOUND_DIFFERS, "; the call before it of rank 1 returned an error");
    scene_end(&s);
}

static void one_call_too_many(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    scene_call(&s, 0, 0, sum_of_64);
    scene_all_quiet(&s, 9);
    scene_expect_nothing(&s);
    for (int i = 1; i < 4; i++) {
        s.processes[i].state = SLC_NCCL_ENDED;
        s.processes[i].header.state = SLC_RECORD_ENDED;
    }
    scene_all_quiet(&s, 0);
    scene_expect(
        &s, SLC_NCCL_FOUND_ENDED,
        "operation 4: rank 0 called all_reduce float32[64] sum; rank 1 (host a, pid 101) has ended after operation 3");
    /* A file that was removed does not say how many calls there were in the end. */
    for (int i = 1; i < 4; i++) s.processes[i].header.state = SLC_RECORD_RUNNING;
    scene_expect_nothing(&s);
    scene_end(&s);
}

static void one_call_missing(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    for (int i = 0; i < 4; i++)
        if (i != 2) scene_call(&s, i, 0, sum_of_64);
    scene_all_quiet(&s, 9.9);
    scene_expect_nothing(&s);
    scene_all_quiet(&s, 12);
    scene_expect(&s, SLC_NCCL_FOUND_LAGS,
                 "rank 2 (host a, pid 102) is running and has called nothing more after operation 3");
    s.quiet_s[2] = 3; /* it moves */
    scene_expect_nothing(&s);
    scene_all_quiet(&s, 12);
    s.processes[2].state = SLC_NCCL_STOPPED;
    scene_expect(&s, SLC_NCCL_FOUND_STOPPED, "rank 2 (host a, pid 102) is stopped after operation 3, 12 s ago");
    s.processes[2].state = SLC_NCCL_GONE;
    scene_all_quiet(&s, 0);
    scene_expect(&s, SLC_NCCL_FOUND_GONE, "rank 2 (host a, pid 102) is gone without an orderly end after operation 3");
    scene_end(&s);
}

/* A rank is killed after it called as much as the others. */
static void killed_at_the_same_place(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    s.processes[2].state = SLC_NCCL_GONE;
    scene_expect_nothing(&s);
    scene_all_quiet(&s, 12);
    scene_expect(&s, SLC_NCCL_FOUND_GONE, "rank 2 (host a, pid 102) is gone without an orderly end after operation 3");
    s.rows[2][0].state = SLC_RECORD_ROW_DESTROYED;
    scene_expect_nothing(&s);
    scene_end(&s);
}

static call exchange(unsigned operation, int peer, uint64_t count)
{
    return (call){operation, count, FLOAT32, SLC_RECORD_NO_REDOP, peer, 1, 0, 0};
}

static void send_without_receive(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    for (int n = 0; n < 2; n++) {
        scene_call(&s, 0, 0, exchange(SLC_RECORD_SEND, 1, 16));
        scene_call(&s, 1, 0, exchange(SLC_RECORD_RECEIVE, 0, 16));
    }
    scene_call(&s, 0, 0, exchange(SLC_RECORD_SEND, 1, 16));
    scene_expect_nothing(&s);
    scene_all_quiet(&s, 12);
    scene_expect(
        &s, SLC_NCCL_FOUND_SEND_UNMATCHED,
        "rank 0 sent float32[16] (64 bytes) to rank 1, send 3 between the two, of which rank 1 received 2; rank 1 "
        "(host a, pid 101) is running");
    /* The other ranks, which call a collective, wait for the sender. */
    for (int i = 1; i < 4; i++) scene_call(&s, i, 0, sum_of_64);
    scene_expect(&s, SLC_NCCL_FOUND_SEND_UNMATCHED, "rank 0 sent float32[16] (64 bytes) to rank 1");
    scene_end(&s);
}

static void send_to_oneself(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    scene_call(&s, 2, 0, exchange(SLC_RECORD_SEND, 2, 16));
    scene_all_quiet(&s, 12);
    scene_expect(&s, SLC_NCCL_FOUND_SEND_UNMATCHED, "rank 2 sent float32[16] (64 bytes) to rank 2");
    scene_call(&s, 2, 0, exchange(SLC_RECORD_RECEIVE, 2, 16));
    scene_expect_nothing(&s);
    scene_end(&s);
}

/* A rank whose file was removed may have received since, so its peer's send is a fault only if the record says that the
 * rank has ended. */
static void send_to_one_that_has_ended(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    scene_call(&s, 0, 0, exchange(SLC_RECORD_SEND, 1, 16));
    s.processes[1].state = SLC_NCCL_ENDED;
    scene_all_quiet(&s, 12);
    scene_expect_nothing(&s);
    s.processes[1].header.state = SLC_RECORD_ENDED;
    scene_expect(&s, SLC_NCCL_FOUND_SEND_UNMATCHED, "rank 1 (host a, pid 101) has ended");
    scene_end(&s);
}

static void receive_without_send(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    scene_call(&s, 2, 0, exchange(SLC_RECORD_RECEIVE, 3, 16));
    scene_all_quiet(&s, 12);
    scene_expect(&s, SLC_NCCL_FOUND_RECEIVE_UNMATCHED, "rank 2 waits to receive float32[16] (64 bytes) from rank 3");
    scene_end(&s);
}

static void sends_in_a_circle(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    scene_call(&s, 0, 0, exchange(SLC_RECORD_SEND, 1, 16));
    scene_call(&s, 1, 0, exchange(SLC_RECORD_SEND, 0, 16));
    scene_all_quiet(&s, 12);
    scene_expect(&s, SLC_NCCL_FOUND_CIRCLE, "ranks wait for each other: rank 0 (pid 100) sent float32[16] (64 bytes)");
    scene_end(&s);
}

static void unequal_send_and_receive(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    scene_call(&s, 0, 0, exchange(SLC_RECORD_SEND, 1, 16));
    scene_call(&s, 1, 0, exchange(SLC_RECORD_RECEIVE, 0, 16));
    scene_call(&s, 0, 0, exchange(SLC_RECORD_SEND, 1, 16));
    scene_call(&s, 1, 0, exchange(SLC_RECORD_RECEIVE, 0, 8));
    const char *text =
        "rank 0 sent float32[16] (64 bytes) to rank 1, and rank 1 receives float32[8] (32 bytes) for it: "
        "send 2 between the two";
    scene_expect(&s, SLC_NCCL_FOUND_UNEQUAL, text);
    scene_lose(&s, 0, 4);
    scene_expect(&s, SLC_NCCL_FOUND_UNEQUAL, text);
    scene_end(&s);
}

static void split_missed(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    for (int i = 0; i < 3; i++)
        scene_call(&s, i, 0, (call){SLC_RECORD_SPLIT, (uint64_t)i, 0xff, SLC_RECORD_NO_REDOP, 7 * i, 0, 0, 0});
    scene_expect_nothing(&s);
    scene_all_quiet(&s, 12);
    scene_expect(&s, SLC_NCCL_FOUND_LAGS, "ranks 0-2 called split; rank 3");
    scene_call(&s, 3, 0, sum_of_64);
    scene_all_quiet(&s, 0);
    scene_expect(&s, SLC_NCCL_FOUND_DIFFERS, "ranks 0-2 called split, rank 3 called all_reduce float32[64] sum");
    scene_end(&s);
}

static void missing_rank(void **state)
{
    (void)state;
    scene s;
    scene_begin(&s, 3);
    for (int i = 0; i < 3; i++) {
        unsigned row = scene_join(&s, i, 0x3f2a000000000001, i < 2 ? i : 3, 4);
        s.rows[i][row].state = SLC_RECORD_ROW_CREATING;
    }
    scene_expect_nothing(&s);
    scene_all_quiet(&s, 12);
    scene_expect(&s, SLC_NCCL_FOUND_MISSING, "ranks 0-1 and 3 wait for its creation; rank 2 is missing");
    scene_end(&s);
    /* The rank that is missing is known by another communicator. */
    scene_begin_with_three(&s);
    for (int i = 0; i < 4; i++) {
        if (i == 2) continue;
        unsigned row = scene_join(&s, i, 0x1111000000000001, i, 4);
        s.rows[i][row].state = SLC_RECORD_ROW_CREATING;
    }
    scene_all_quiet(&s, 12);
    s.processes[2].state = SLC_NCCL_STOPPED;
    scene_expect(&s, SLC_NCCL_FOUND_MISSING, "rank 2 (host a, pid 102, stopped) has not come to it");
    scene_end(&s);
}

/* The rank that died keeps its row's group waiting; they keep the others waiting. */
static void cause_of_a_chain(void **state)
{
    (void)state;
    scene s;
    scene_begin(&s, 4);
    for (int i = 0; i < 4; i++) {
        scene_join(&s, i, 0xaaaa000000000001 + (uint64_t)(i / 2), i % 2, 2); /* 0 1 | 2 3 */
        scene_join(&s, i, 0xbbbb000000000001 + (uint64_t)(i % 2), i / 2, 2); /* 0 2 | 1 3 */
    }
    scene_call(&s, 2, 0, sum_of_64); /* waits for rank 3 */
    scene_call(&s, 0, 1, sum_of_64); /* waits for rank 2 */
    scene_call(&s, 1, 0, sum_of_64); /* waits for rank 0 */
    scene_all_quiet(&s, 12);
    s.processes[3].state = SLC_NCCL_GONE;
    scene_expect(&s, SLC_NCCL_FOUND_GONE,
                 "rank 1 (host a, pid 103) is gone without an orderly end before its first operation");
    for (int i = 0; i < 4; i++) {
        s.processes[i].header.launch_rank = i;
        s.processes[i].header.launch_size = 4;
    }
    scene_expect(&s, SLC_NCCL_FOUND_GONE, "rank 1 (rank 3 of the job's 4, host a, pid 103) is gone");
    scene_end(&s);
}

static void unfinished(void **state)
{
    (void)state;
    scene s;
    scene_begin(&s, 2);
    scene_join_all(&s, 0xaaaa000000000001);
    scene_join_all(&s, 0xbbbb000000000001);
    scene_all_call_times(&s, 0, 3);
    scene_all_quiet(&s, 12);
    scene_expect_nothing(&s);
    for (int i = 0; i < 2; i++) {
        s.processes[i].header.done_is_written = 1;
        s.rows[i][0].done = 3;
    }
    scene_expect_nothing(&s);
    s.rows[1][0].done = 1;
    scene_expect(&s, SLC_NCCL_FOUND_UNFINISHED,
                 ": every rank called all_reduce float32[64] sum, and the stream of rank 1 has not finished it");
    /* NCCL has not said that it launched the second operation; then only the third is not launched. */
    s.rows[1][0].unlaunched = 2;
    scene_expect_nothing(&s);
    s.rows[1][0].unlaunched = 3;
    scene_expect(&s, SLC_NCCL_FOUND_UNFINISHED, "the stream of rank 1 has not finished it");
    s.rows[1][0].unlaunched = 0;
    scene_all_quiet(&s, 9);
    scene_expect_nothing(&s);
    /* Another stream may have written a lower number last. */
    scene_all_quiet(&s, 12);
    s.processes[1].entries[2].stream = 2;
    scene_expect_nothing(&s);
    /* Two communicators in two streams, in opposite orders. */
    for (int i = 0; i < 2; i++) {
        call c = sum_of_64;
        scene_call(&s, i, (unsigned)i, c);
        c.stream = 2;
        scene_call(&s, i, 1u - (unsigned)i, c);
        s.rows[i][0].done = 3;
    }
    scene_expect(&s, SLC_NCCL_FOUND_CROSSED, "their streams have not finished them");
    scene_end(&s);
}

static void failed_call(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    /* A call that one rank alone makes, and NCCL refuses, is not of the sequence. */
    scene_call(&s, 1, 0, sum_of_64);
    s.processes[1].entries[3].flags = SLC_RECORD_FAILED;
    scene_all_quiet(&s, 12);
    scene_expect_nothing(&s);
    scene_all_call(&s, 0, sum_of_64);
    scene_expect_nothing(&s);
    for (int i = 0; i < 4; i++) scene_call(&s, i, 0, sum_of_64);
    s.processes[2].entries[s.processes[2].entry_count - 1].flags = SLC_RECORD_FAILED;
    scene_expect(&s, SLC_NCCL_FOUND_FAILED,
                 "rank 2 (host a, pid 102) called all_reduce float32[64] sum, which returned an error");
    scene_end(&s);
}

/* NCCL discards a collective without elements, so that ranks need not agree on it; a split's count is its colour. */
static void empty_collectives(void **state)
{
    (void)state;
    scene s;
    call empty = sum_of_64;
    empty.count = 0;
    scene_begin(&s, 4);
    scene_join_all(&s, 0x3f2a000000000001);
    scene_call(&s, 0, 0, empty);
    scene_all_call_times(&s, 0, 3);
    scene_call(&s, 1, 0, empty);
    scene_all_call(&s, 0, (call){SLC_RECORD_SPLIT, 0, 0xff, SLC_RECORD_NO_REDOP, 0, 0, 0, 0});
    scene_all_quiet(&s, 12);
    scene_expect_nothing(&s);
    for (int i = 0; i < 4; i++) scene_lose(&s, i, 1);
    scene_expect_nothing(&s);
    scene_call(&s, 0, 0, sum_of_64);
    scene_expect(&s, SLC_NCCL_FOUND_LAGS, "operation 5: rank 0 called all_reduce float32[64] sum; rank 1");
    scene_end(&s);
}

static void difference_before_the_oldest_entry(void **state)
{
    (void)state;
    scene s;
    call other = sum_of_64;
    other.count = 8;
    scene_begin_with_three(&s);
    for (int i = 0; i < 4; i++) scene_call(&s, i, 0, i == 1 ? other : sum_of_64);
    scene_all_call_times(&s, 0, 20);
    for (int i = 0; i < 4; i++) scene_lose(&s, i, 10);
    scene_all_quiet(&s, 1);
    scene_expect(&s, SLC_NCCL_FOUND_DIFFERS, "before operation 11: the difference lies before the oldest entry kept");
    scene_end(&s);
}

/* A row that was read while its process wrote it: the hash lacks the last call. */
static void torn_row(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    uint64_t before = s.rows[1][0].hash;
    scene_all_call_times(&s, 0, 1);
    for (int i = 0; i < 4; i++) scene_lose(&s, i, 2);
    s.rows[1][0].hash = before;
    scene_expect_nothing(&s);
    scene_all_quiet(&s, 1); /* nothing is being written: it is a difference */
    scene_expect(&s, SLC_NCCL_FOUND_DIFFERS, "lies before the oldest entry kept");
    scene_end(&s);
}

static void dead_programs(void **state)
{
    (void)state;
    scene s;
    scene_begin_with_three(&s);
    for (int i = 0; i < 4; i++) s.processes[i].state = SLC_NCCL_GONE; /* somebody ended them all */
    scene_expect_nothing(&s);
    for (int i = 1; i < 4; i++) scene_call(&s, i, 0, sum_of_64);
    scene_expect(&s, SLC_NCCL_FOUND_LAGS,
                 "rank 0 (host a, pid 100) called nothing more until it was gone, after operation 3");
    for (int i = 0; i < 4; i++) {
        s.processes[i].state = SLC_NCCL_ENDED;
        s.processes[i].header.state = SLC_RECORD_ENDED;
        s.rows[i][0].state = SLC_RECORD_ROW_ABORTED; /* the program gave up by itself */
    }
    scene_expect_nothing(&s);
    scene_end(&s);
}

/* Random programs that keep to the rules. Events of the whole program are drawn; each rank calls those that it is part
 * of, in their order. */
typedef struct {
    uint64_t seed, drawn;
} dice;

static unsigned draw(dice *d, unsigned limit)
{
    return (unsigned)slc_random_below(test_seed(d->seed), 1, d->drawn++, limit);
}

static call random_collective(dice *d, int size)
{
    static const unsigned operations[] = {SLC_RECORD_ALL_REDUCE, SLC_RECORD_ALL_GATHER, SLC_RECORD_BROADCAST,
                                          SLC_RECORD_SPLIT};
    call c = {operations[draw(d, 4)], draw(d, 4), FLOAT32, SLC_RECORD_NO_REDOP, -1, 1, 0, 0};
    if (c.operation == SLC_RECORD_ALL_REDUCE) c.redop = draw(d, 2) ? SUM : SLC_RECORD_CUSTOM_REDOP;
    if (c.operation == SLC_RECORD_BROADCAST) c.peer = (int)draw(d, (unsigned)size);
    return c;
}

/* Row 0 of each rank is the world, row 1 its half of it. */
static void begin_halves(scene *s)
{
    scene_begin(s, 4);
    scene_join_all(s, 0xcccc000000000001);
    for (int i = 0; i < 4; i++) scene_join(s, i, 0xdddd000000000001 + (uint64_t)(i / 2), i % 2, 2);
}

static void random_event(scene *s, dice *d)
{
    unsigned kind = draw(d, 4);
    if (kind == 0) {
        int from = (int)draw(d, 4), to = (int)draw(d, 4);
        uint64_t count = 1 + draw(d, 5);
        scene_call(s, from, 0, exchange(SLC_RECORD_SEND, to, count));
        scene_call(s, to, 0, exchange(SLC_RECORD_RECEIVE, from, count));
        return;
    }
    call c = random_collective(d, kind == 1 ? 2 : 4);
    int half = (int)draw(d, 2);
    for (int i = 0; i < 4; i++) {
        call mine = c;
        mine.stream = draw(d, 2);
        if (mine.operation == SLC_RECORD_SPLIT) mine.count = draw(d, 2), mine.dtype = 0xff;
        if (kind == 1 && i / 2 != half) continue;
        if (is_empty_call(c.operation, c.count) && draw(d, 2)) continue;
        scene_call(s, i, kind == 1, mine);
    }
}

/* Takes a rank's latest calls back, as if its record had been read earlier. */
static void read_earlier(scene *s, int i, size_t calls)
{
    slc_nccl_process *p = &s->processes[i];
    for (; calls && p->entry_count; calls--) {
        const slc_nccl_entry *e = &p->entries[--p->entry_count];
        slc_record_communicator *row = &s->rows[i][e->communicator];
        p->header.entries--;
        if (is_empty_call(e->operation, e->count)) continue;
        row->calls--;
        row->returned--;
        if (e->operation == SLC_RECORD_SEND || e->operation == SLC_RECORD_RECEIVE) continue;
        row->collectives--;
        row->hash = row->key;
        for (size_t k = 0; k < p->entry_count; k++) {
            const slc_nccl_entry *x = &p->entries[k];
            bool split = x->operation == SLC_RECORD_SPLIT;
            if (x->communicator != e->communicator || x->operation > SLC_RECORD_SPLIT) continue;
            if (is_empty_call(x->operation, x->count)) continue;
            row->hash =
                row->hash * SLC_RECORD_HASH_STEP +
                slc_record_hash_term(x->operation, split ? 0 : x->count, x->dtype, x->redop, split ? -1 : x->peer);
        }
    }
}

static void random_programs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        dice d = {seed, 0};
        scene s;
        begin_halves(&s);
        unsigned events = 1 + draw(&d, 120);
        for (unsigned n = 0; n < events; n++) random_event(&s, &d);
        for (int i = 0; i < 4; i++) {
            read_earlier(&s, i, draw(&d, 3) ? 0 : draw(&d, 30));
            if (draw(&d, 2)) scene_lose(&s, i, draw(&d, 60));
            s.quiet_s[i] = draw(&d, 2) ? 0.4 : 0;
        }
        scene_expect_nothing(&s);
        scene_end(&s);
    }
}

/* One argument of one call differs: that call is named, and none other. */
static void random_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        dice d = {seed, 0};
        scene s;
        begin_halves(&s);
        unsigned events = 5 + draw(&d, 100);
        for (unsigned n = 0; n < events; n++) random_event(&s, &d);
        for (int i = 0; i < 4; i++) scene_call(&s, i, 0, sum_of_64);
        slc_nccl_process *p = &s.processes[draw(&d, 4)];
        slc_nccl_entry *e = &p->entries[draw(&d, (unsigned)p->entry_count)];
        while (is_empty_call(e->operation, e->count)) e++; /* the last one is not */
        bool is_send = e->operation == SLC_RECORD_SEND, is_receive = e->operation == SLC_RECORD_RECEIVE;
        if (e->operation == SLC_RECORD_SPLIT) e->operation = SLC_RECORD_ALL_TO_ALL;
        e->count += 100;
        bool self = (is_send || is_receive) && &s.processes[e->peer] == p;
        assert_int_equal(scene_look(&s), 1);
        if (!self)
            assert_int_equal(s.found.rows[0].kind,
                             is_send || is_receive ? SLC_NCCL_FOUND_UNEQUAL : SLC_NCCL_FOUND_DIFFERS);
        scene_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),
        cmocka_unit_test(order),
        cmocka_unit_test(call_left_out),
        cmocka_unit_test(out_of_step),
        cmocka_unit_test(no_majority),
        cmocka_unit_test(one_call_too_many),
        cmocka_unit_test(one_call_missing),
        cmocka_unit_test(killed_at_the_same_place),
        cmocka_unit_test(send_without_receive),
        cmocka_unit_test(send_to_oneself),
        cmocka_unit_test(send_to_one_that_has_ended),
        cmocka_unit_test(receive_without_send),
        cmocka_unit_test(sends_in_a_circle),
        cmocka_unit_test(unequal_send_and_receive),
        cmocka_unit_test(split_missed),
        cmocka_unit_test(missing_rank),
        cmocka_unit_test(cause_of_a_chain),
        cmocka_unit_test(unfinished),
        cmocka_unit_test(failed_call),
        cmocka_unit_test(empty_collectives),
        cmocka_unit_test(difference_before_the_oldest_entry),
        cmocka_unit_test(torn_row),
        cmocka_unit_test(dead_programs),
        cmocka_unit_test(random_programs),
        cmocka_unit_test(random_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
