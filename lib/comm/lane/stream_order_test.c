/* Ranks in one thread, whose lanes are stepped by turns, over collectives that a stand-in carries out in this process:
 * it moves a group's bytes when every rank has ended it, and tells each rank that it is launched some looks later. The
 * stand-in adds in the wrong order on purpose. */
#include "lib/base/status.h"
#include "lib/comm/lane/lane.h"
#include "lib/comm/lane/stream_order.h"
#include "tests/support/comm/compressed_exchange.h"
#include "tests/support/comm/forked_ranks.h"
#include "tests/support/comm/random_op.h"
#include "tests/support/device/host_device.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 4, MOST_CALLS = 4096, NOBODY = -1, ARENA = PLACES * SMALL_PLACE };

/* ---- The stand-in ---- */

typedef enum { REDUCE_SCATTER, ALL_GATHER, ALL_REDUCE, BROADCAST, SEND, RECEIVE } call_kind;

typedef struct {
    call_kind kind;
    const void *from;
    void *to;
    size_t count;
    sluice_dtype dtype;
    int peer; /* or the root */
} call;

typedef struct bed bed;
typedef struct {
    bed *all;
    int rank;
    bool open;       /* between begin and end of a group */
    bool ended;      /* its group waits for the other ranks', or for its looks */
    uint32_t looks;  /* that are left before it is told to be launched */
    uint32_t groups; /* that were launched */
    uint32_t calls;
    call list[MOST_CALLS];
    sluice_status fails; /* what `launched` and `health` say; SLUICE_OK: nothing is wrong */
} stand_in;

struct bed {
    int size;
    uint64_t chance;
    stand_in ranks[MOST_RANKS];
};

static sluice_status add_call(void *self, call made)
{
    stand_in *s = self;
    assert_true(s->open && made.count > 0 && s->calls < MOST_CALLS);
    s->list[s->calls++] = made;
    return SLUICE_OK;
}

static sluice_status do_attach(void *self, void *stream)
{
    (void)self, (void)stream;
    return SLUICE_OK;
}

static sluice_status do_group_begin(void *self)
{
    stand_in *s = self;
    assert_true(!s->open && !s->ended);
    s->open = true;
    s->calls = 0;
    return SLUICE_OK;
}

static sluice_status do_reduce_scatter(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype)
{
    return add_call(self, (call){REDUCE_SCATTER, send, receive, count, dtype, 0});
}

static sluice_status do_all_gather(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype)
{
    return add_call(self, (call){ALL_GATHER, send, receive, count, dtype, 0});
}

static sluice_status do_all_reduce(void *self, const void *send, void *receive, size_t count, sluice_dtype dtype)
{
    return add_call(self, (call){ALL_REDUCE, send, receive, count, dtype, 0});
}

static sluice_status do_broadcast(void *self, void *buffer, size_t count, sluice_dtype dtype, int root)
{
    return add_call(self, (call){BROADCAST, buffer, buffer, count, dtype, root});
}

static sluice_status do_send(void *self, int rank, const void *data, size_t count, sluice_dtype dtype)
{
    assert_int_not_equal(rank, ((stand_in *)self)->rank);
    return add_call(self, (call){SEND, data, NULL, count, dtype, rank});
}

static sluice_status do_receive(void *self, int rank, void *data, size_t count, sluice_dtype dtype)
{
    assert_int_not_equal(rank, ((stand_in *)self)->rank);
    return add_call(self, (call){RECEIVE, NULL, data, count, dtype, rank});
}

static double value_at(const void *data, sluice_dtype dtype, size_t i)
{
    switch (dtype) {
    case SLUICE_FP32: return ((const float *)data)[i];
    case SLUICE_BF16: return sluice_bf16_to_float(((const uint16_t *)data)[i]);
    case SLUICE_INT64: return (double)((const int64_t *)data)[i];
    default: return ((const double *)data)[i];
    }
}

static void put_value(void *data, sluice_dtype dtype, size_t i, double value)
{
    switch (dtype) {
    case SLUICE_FP32: ((float *)data)[i] = (float)value; break;
    case SLUICE_BF16: ((uint16_t *)data)[i] = sluice_bf16_from_float((float)value); break;
    case SLUICE_INT64: ((int64_t *)data)[i] = (int64_t)value; break;
    default: ((double *)data)[i] = value;
    }
}

/* Call number `c` of every rank is the same collective. *out is what it gives to each rank, one after the other. */
static void collective(const bed *b, uint32_t c, char *out)
{
    const call *first = &b->ranks[0].list[c];
    const size_t each = sluice_dtype_bytes(first->dtype), count = first->count;
    for (int rank = 0; rank < b->size; rank++) {
        const call *own = &b->ranks[rank].list[c];
        assert_true(own->kind == first->kind && own->count == count && own->dtype == first->dtype &&
                    own->peer == first->peer);
        char *to = out + (size_t)rank * (size_t)b->size * count * each;
        if (first->kind == BROADCAST) memcpy(to, b->ranks[first->peer].list[c].from, count * each);
        for (int other = 0; first->kind == ALL_GATHER && other < b->size; other++)
            memcpy(to + (size_t)other * count * each, b->ranks[other].list[c].from, count * each);
        if (first->kind != REDUCE_SCATTER && first->kind != ALL_REDUCE) continue;
        const size_t begin = first->kind == REDUCE_SCATTER ? (size_t)rank * count : 0;
        for (size_t i = 0; i < count; i++) {
            double sum = 0;
            for (int other = b->size; other-- > 0;)
                sum += value_at(b->ranks[other].list[c].from, first->dtype, begin + i);
            put_value(to, first->dtype, i, sum);
        }
    }
}

static void deliver_collectives(bed *b)
{
    for (uint32_t c = 0; c < b->ranks[0].calls; c++) {
        const call *first = &b->ranks[0].list[c];
        if (first->kind == SEND || first->kind == RECEIVE) continue;
        const size_t bytes = first->count * sluice_dtype_bytes(first->dtype);
        char *out = malloc((size_t)b->size * (size_t)b->size * bytes);
        assert_non_null(out);
        collective(b, c, out);
        for (int rank = 0; rank < b->size; rank++)
            memcpy(b->ranks[rank].list[c].to, out + (size_t)rank * (size_t)b->size * bytes,
                   first->kind == ALL_GATHER ? (size_t)b->size * bytes : bytes);
        free(out);
    }
}

/* The n-th message between two ranks is the n-th that either names. */
static const call *message_of(const stand_in *sender, int to, uint32_t n)
{
    for (uint32_t c = 0; c < sender->calls; c++)
        if (sender->list[c].kind == SEND && sender->list[c].peer == to && n-- == 0) return &sender->list[c];
    fail_msg("rank %d sends less to rank %d than that receives", sender->rank, to);
    return NULL;
}

static void deliver_messages(bed *b)
{
    for (int rank = 0; rank < b->size; rank++) {
        uint32_t taken[MOST_RANKS] = {0}, sends = 0, receives = 0;
        for (uint32_t c = 0; c < b->ranks[rank].calls; c++) {
            const call *own = &b->ranks[rank].list[c];
            sends += own->kind == SEND;
            if (own->kind != RECEIVE) continue;
            receives++;
            const call *sent = message_of(&b->ranks[own->peer], rank, taken[own->peer]++);
            assert_true(sent->count == own->count && sent->dtype == own->dtype);
            memcpy(own->to, sent->from, own->count * sluice_dtype_bytes(own->dtype));
        }
        assert_int_equal(sends, receives);
    }
}

static void move_when_all_ended(bed *b)
{
    for (int rank = 0; rank < b->size; rank++)
        if (!b->ranks[rank].ended || b->ranks[rank].groups != b->ranks[0].groups) return;
    deliver_messages(b);
    deliver_collectives(b);
    for (int rank = 0; rank < b->size; rank++) b->ranks[rank].looks = 1 + (uint32_t)pick(&b->chance, 4);
}

static sluice_status do_group_end(void *self)
{
    stand_in *s = self;
    assert_true(s->open);
    s->open = false;
    s->ended = true;
    s->looks = 0;
    move_when_all_ended(s->all);
    return SLUICE_IN_PROGRESS;
}

static sluice_status do_launched(void *self)
{
    stand_in *s = self;
    if (s->fails) return slc_error(s->fails, "a connection has broken");
    assert_true(s->ended);
    if (!s->looks) return SLUICE_IN_PROGRESS;
    if (--s->looks) return SLUICE_IN_PROGRESS;
    s->ended = false;
    s->groups++;
    return SLUICE_OK;
}

static sluice_status do_health(void *self)
{
    const stand_in *s = self;
    return s->fails ? slc_error(s->fails, "a connection has broken") : SLUICE_OK;
}

static void do_abort(void *self)
{
    (void)self;
}

static const sluice_transport_collectives_v2 slots = {.attach = do_attach,
                                                      .group_begin = do_group_begin,
                                                      .group_end = do_group_end,
                                                      .launched = do_launched,
                                                      .reduce_scatter = do_reduce_scatter,
                                                      .all_gather = do_all_gather,
                                                      .all_reduce = do_all_reduce,
                                                      .broadcast = do_broadcast,
                                                      .send = do_send,
                                                      .receive = do_receive,
                                                      .health = do_health,
                                                      .abort = do_abort};
static const sluice_transport_v1 no_messages = {.name = "stand-in"};

/* ---- Ranks ---- */

typedef struct {
    slc_control_page page;
    slc_neighbour peers[MOST_RANKS];
    slc_neighbours neighbours;
    slc_failure failure;
    slc_transport transport;
    slc_history history;
    slc_segment segment;
    slc_comm comm;
} place;

typedef struct {
    bed bed;
    place ranks[MOST_RANKS];
    uint64_t now_ns;
} world;

static void open_rank(world *w, int rank)
{
    place *p = &w->ranks[rank];
    p->neighbours = (slc_neighbours){.rank = rank, .size = w->bed.size, .peers = p->peers, .page = &p->page};
    p->neighbours.doorbell = NOBODY;
    for (int peer = 0; peer < w->bed.size; peer++)
        p->peers[peer] = (slc_neighbour){.socket = NOBODY, .doorbell = NOBODY};
    w->bed.ranks[rank].all = &w->bed;
    w->bed.ranks[rank].rank = rank;
    p->transport = (slc_transport){.table = &no_messages, .collectives = &slots, .self = &w->bed.ranks[rank]};
    slc_failure_init(&p->failure);
    assert_int_equal(
        slc_lane_init(&p->comm, rank, w->bed.size, &p->failure, &p->neighbours, &p->transport, &p->history), SLUICE_OK);
    p->comm.stream_order.on = true;
    const uint64_t scratch = slc_comm_scratch_bytes(&p->comm, SMALL_PLACE);
    assert_int_equal(slc_segment_create(device, ARENA + scratch, &p->segment), SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &p->comm.attached.stream), SLUICE_OK);
    assert_int_equal(slc_stream_order_attach(&p->comm), SLUICE_OK);
    p->comm.attached.segment = &p->segment;
    p->comm.attached.base = p->segment.base;
    p->comm.attached.bytes = p->segment.bytes;
    p->comm.scratch.base = (char *)p->segment.base + ARENA;
    p->comm.scratch.bytes = scratch;
}

static world *open_world(int size, uint64_t seed)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->bed.size = size;
    w->bed.chance = seed;
    w->now_ns = 1;
    for (int rank = 0; rank < size; rank++) open_rank(w, rank);
    return w;
}

static void close_world(world *w)
{
    for (int rank = 0; rank < w->bed.size; rank++) {
        place *p = &w->ranks[rank];
        slc_stream_order_detach(&p->comm);
        slc_lane_fini(&p->comm);
        slc_failure_fini(&p->failure);
        slc_segment_destroy(&p->segment);
    }
    free(w);
}

/* Steps the lanes, in a drawn order, until every rank has completed all that it has submitted. */
static void run_world(world *w)
{
    for (uint32_t steps = 0; steps < 1000000; steps++) {
        place *p = &w->ranks[pick(&w->bed.chance, (uint64_t)w->bed.size)];
        w->now_ns += 1000;
        slc_lane_step(&p->comm, w->now_ns);
        assert_int_equal(slc_failure_get(&p->failure), SLUICE_OK);
        bool complete = true;
        for (int rank = 0; rank < w->bed.size; rank++)
            complete = complete && w->ranks[rank].comm.active.first == w->ranks[rank].comm.queue.counts.submitted;
        if (complete) return;
    }
    fail_msg("the operation does not end");
}

/* ---- Drawn operations ---- */

static bool same(const random_op *made, const char *got, const char *want, uint64_t bytes)
{
    const slc_op *op = &made->op;
    if (!op->any_order || op->dtype == SLUICE_INT64 || (op->kind != SLC_REDUCE_SCATTER && op->kind != SLC_ALL_REDUCE))
        return !memcmp(got, want, bytes);
    /* The stand-in's sums of bfloat16 are rounded once more than ours. */
    const sluice_dtype type = op->widen ? SLUICE_FP32 : op->dtype;
    const double most = op->dtype == SLUICE_BF16 ? 0.3 : 1e-5;
    const uint64_t each = sluice_dtype_bytes(type);
    for (uint64_t i = 0; i < bytes / each; i++) /* what is of another type has not changed */
        if (memcmp(got + i * each, want + i * each, each) &&
            !(fabs(value_at(got, type, i) - value_at(want, type, i)) <= most))
            return false;
    return true;
}

static sluice_status check_launched(void *context)
{
    const stand_in *s = context;
    assert_true(!s->open && !s->ended); /* nothing may follow a group that is not in the stream */
    return SLUICE_OK;
}

static void submit_everywhere(world *w, const random_op *made, const bool *skip)
{
    for (int rank = 0; rank < w->bed.size; rank++) {
        place *p = &w->ranks[rank];
        slc_op op = made->op;
        op.src = (char *)p->segment.base + made->src_at;
        op.dst = (char *)p->segment.base + made->dst_at;
        op.call = op.end = check_launched;
        op.context = &w->bed.ranks[rank];
        op.skip = skip;
        const bool known = op.kind <= SLC_BROADCAST;
        assert_int_equal(slc_comm_submit(&p->comm, &op, 1, NULL), known ? SLUICE_OK : SLUICE_ERR_UNSUPPORTED);
        if (!known) assert_non_null(strstr(sluice_last_error(), "in the host's memory only"));
    }
}

static void check_arenas(const world *w, const random_op *made, char **want)
{
    for (int rank = 0; rank < w->bed.size; rank++) {
        const char *got = w->ranks[rank].segment.base;
        for (uint64_t at = 0; at < ARENA; at += SMALL_PLACE)
            if (!same(made, got + at, want[rank] + at, SMALL_PLACE))
                fail_msg("rank %d of %d: kind %d, type %d, any order %d: not as the oracle has it", rank, w->bed.size,
                         (int)made->op.kind, (int)made->op.dtype, made->op.any_order);
    }
}

static void draw_operations(int size, uint64_t seed, int count)
{
    static const bool skips = true;
    world *w = open_world(size, seed);
    char *want[MOST_RANKS];
    for (int rank = 0; rank < size; rank++) {
        want[rank] = malloc(ARENA);
        assert_non_null(want[rank]);
    }
    uint64_t sent[MOST_RANKS] = {0};
    for (int i = 0; i < count; i++) {
        random_op made = random_op_draw(&w->bed.chance, size, (int)pick(&w->bed.chance, OPERATIONS), SMALL_PLACE);
        const bool skipped = pick(&w->bed.chance, 8) == 0;
        made.op.any_order = pick(&w->bed.chance, 3) == 0;
        made.op.alone = pick(&w->bed.chance, 2);
        for (int rank = 0; rank < size; rank++) {
            random_op_fill(w->ranks[rank].segment.base, SMALL_PLACE, seed + (uint64_t)i, rank);
            memcpy(want[rank], w->ranks[rank].segment.base, ARENA);
        }
        submit_everywhere(w, &made, skipped ? &skips : NULL);
        if (made.op.kind > SLC_BROADCAST) continue;
        run_world(w);
        for (uint64_t b = made.op.first_block; !skipped && b < made.op.first_block + made.op.block_count; b++)
            random_op_block(&made, want, size, b);
        check_arenas(w, &made, want);
        for (int rank = 0; rank < size; rank++) {
            if (!skipped) sent[rank] += random_op_bytes(&made.op, rank, size);
            assert_true(slc_comm_bytes_sent(&w->ranks[rank].comm) == sent[rank]);
        }
    }
    for (int rank = 0; rank < size; rank++) free(want[rank]);
    close_world(w);
}

static void operations_do_what_the_oracle_does(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST_RANKS; size++)
        draw_operations(size, test_seed((uint64_t)size), (int)test_rounds(60));
}

/* A long sum with little scratch takes several groups, and gives the same bits. */
static void little_scratch_makes_more_groups(void **state)
{
    (void)state;
    enum { SIZE = 3, BLOCKS = 9, BLOCK = 16 * SIZE * 4 };
    uint32_t groups[2];
    for (int little = 0; little < 2; little++) {
        world *w = open_world(SIZE, 5);
        char *want[SIZE];
        random_op made = {.op = {.kind = SLC_ALL_REDUCE,
                                 .dtype = SLUICE_FP32,
                                 .elements = BLOCKS * BLOCK,
                                 .block_elements = BLOCK,
                                 .block_count = BLOCKS,
                                 .scale = 0.7f}};
        for (int rank = 0; rank < SIZE; rank++) {
            if (little)
                w->ranks[rank].comm.scratch.bytes = slc_comm_scratch_bytes(&w->ranks[rank].comm, BLOCK * sizeof(float));
            random_op_fill(w->ranks[rank].segment.base, SMALL_PLACE, 3, rank);
            want[rank] = malloc(ARENA);
            memcpy(want[rank], w->ranks[rank].segment.base, ARENA);
        }
        submit_everywhere(w, &made, NULL);
        run_world(w);
        for (uint64_t b = 0; b < BLOCKS; b++) random_op_block(&made, want, SIZE, b);
        check_arenas(w, &made, want);
        groups[little] = w->bed.ranks[0].groups;
        for (int rank = 0; rank < SIZE; rank++) free(want[rank]);
        close_world(w);
    }
    assert_int_equal(groups[0], 1 + 1);
    assert_int_equal(groups[1], 3 + 1); /* four blocks at a time */
}

/* ---- Trouble ---- */

static slc_op small_sum(place *p)
{
    return (slc_op){.kind = SLC_REDUCE_SCATTER,
                    .dtype = SLUICE_FP32,
                    .elements = 32,
                    .block_elements = 32,
                    .block_count = 1,
                    .src = p->segment.base,
                    .dst = p->segment.base,
                    .scale = 1,
                    .what = "a small sum"};
}

/* A broken connection fails the world only after the ranks have had the time to say who is to blame. */
static void trouble_waits_for_an_explanation(void **state)
{
    (void)state;
    const uint64_t second = 1000000000u;
    for (int in_group = 0; in_group < 2; in_group++) {
        world *w = open_world(2, 9);
        place *p = &w->ranks[0];
        w->bed.ranks[0].fails = SLUICE_ERR_PEER;
        if (in_group) {
            const slc_op op = small_sum(p);
            assert_int_equal(slc_comm_submit(&p->comm, &op, 1, NULL), SLUICE_OK);
            for (int i = 0; i < 5; i++) slc_lane_step(&p->comm, second);
            assert_int_equal(p->comm.active.first, 0);
        }
        slc_stream_order_check(&p->comm, second);
        slc_stream_order_check(&p->comm, second + second);
        assert_int_equal(slc_failure_get(&p->failure), SLUICE_OK);
        slc_stream_order_check(&p->comm, second + 8 * second / 5);
        assert_int_equal(slc_failure_get(&p->failure), SLUICE_ERR_PEER);
        assert_non_null(strstr(sluice_last_error(), "a connection has broken"));
        close_world(w);
    }
}

/* ---- Compressed exchanges ---- */

enum { TENSORS = 4 };

static void exchange_steps(int size, uint64_t seed)
{
    const uint64_t counts[TENSORS] = {700, 0, 2049, 3};
    world *w = open_world(size, seed);
    exchange all[MOST_RANKS];
    uint64_t sent = 0;
    for (int rank = 0; rank < size; rank++) {
        slc_compress_shape shapes[TENSORS];
        char *arena = w->ranks[rank].segment.base;
        for (int i = 0; i < TENSORS; i++) shapes[i] = (slc_compress_shape){.count = counts[i], .ranks = (uint32_t)size};
        all[rank] = exchange_create(&w->ranks[rank].comm, TENSORS, shapes, &arena);
        assert_true(arena <= (char *)w->ranks[rank].segment.base + ARENA);
    }
    for (uint64_t step = 0; step < 4; step++) {
        for (int rank = 0; rank < size; rank++) {
            place *p = &w->ranks[rank];
            exchange_prepare(&all[rank], &p->comm.attached.stream, rank, seed);
            slc_op op = exchange_op(&all[rank]);
            op.call = op.end = check_launched;
            op.context = &w->bed.ranks[rank];
            assert_int_equal(slc_comm_submit(&p->comm, &op, 1, NULL), SLUICE_OK);
        }
        run_world(w);
        sent += (all[0].group.packet_bytes + all[0].group.stride) * (uint64_t)(size - 1);
        for (int rank = 0; rank < size; rank++) {
            exchange_check(&all[rank], rank), exchange_decompress(&all[rank]);
            assert_int_equal(slc_comm_bytes_sent(&w->ranks[rank].comm), sent);
        }
    }
    for (int rank = 0; rank < size; rank++) exchange_destroy(&all[rank]);
    close_world(w);
}

/* Results and residues must be those of a simulation of all ranks, over many exchanges. */
static void compressed_exchanges_are_as_simulated(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST_RANKS; size++)
        for (uint64_t seed = 1; seed <= 3; seed++) exchange_steps(size, test_seed(seed));
}

/* A call that the transport refuses is a mistake of the program itself, so the operation fails at once. */
static void refusals_fail_at_once(void **state)
{
    (void)state;
    world *w = open_world(2, 9);
    place *p = &w->ranks[0];
    const slc_op op = small_sum(p);
    w->bed.ranks[0].fails = SLUICE_ERR_ARGUMENT;
    assert_int_equal(slc_comm_submit(&p->comm, &op, 1, NULL), SLUICE_OK);
    for (int i = 0; i < 5; i++) slc_lane_step(&p->comm, 1);
    assert_int_equal(slc_failure_get(&p->failure), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "a small sum"));
    close_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_do_what_the_oracle_does),
        cmocka_unit_test(little_scratch_makes_more_groups),
        cmocka_unit_test(trouble_waits_for_an_explanation),
        cmocka_unit_test(compressed_exchanges_are_as_simulated),
        cmocka_unit_test(refusals_fail_at_once),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
