/* Collectives must agree with plain oracles bit for bit: sums are in rank order, over memory, messages and both.
 * Lengths, blocks, ranges, layouts and delays are random; rows of tables and compressed exchanges are among the
 * operations, and some operations of every kind are skipped. */
#include "tests/support/comm/compressed_exchange.h"
#include "tests/support/comm/random_op.h"
#include "tests/support/scale.h"
#include "tests/support/comm/rows_op.h"

#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { EXCHANGES = 2, LISTS = 2, MOST = 1 + 2 * OPERATIONS + EXCHANGES };

typedef struct {
    int size, port;
    test_path path;
    const char *throttle;
    uint64_t seed;
    int rounds;
    bool delays;
    uint64_t place_bytes;
} test_case;

/* ---- A rank ---- */

typedef struct {
    sluice_world *world;
    slc_comm *comm;
    slc_device *device;
    slc_segment segment;
    sluice_stream stream;
    char *arenas[RANKS_MAX]; /* all ranks' arenas, in the oracle */
    exchange exchanges[EXCHANGES];
    char *lists;        /* LISTS places, each for the lists of all ranks */
    uint64_t bytes;     /* how many were sent */
    uint32_t submitted; /* how many operations were */
} rig;

/* Counts how often an operation's hooks ran; for an operation on rows, this rank's list and the place where it has to
 * be. */
typedef struct {
    int start, call, end;
    const slc_rows *rows;
    uint64_t lists_seed;
    int rank;
    bool skipped;
} calls;

/* The operations of a round. `skip` says which are to be skipped; `looked_at` takes its values before the operations
 * begin, or in `decide`, a hook of the first one, for which the others then wait. */
typedef struct {
    slc_op ops[MOST];
    size_t count;
    bool skip[MOST], looked_at[MOST], late;
    calls ran[MOST];
    slc_rows rows[MOST];
    useconds_t delay;
} round_ops;

static sluice_status on_start(void *context)
{
    calls *ran = context;
    char *lists = ran->rows && !ran->skipped ? ran->rows->lists : NULL; /* a skipped operation must not touch memory */
    if (lists)
        rows_list_draw(ran->lists_seed, ran->rank, ran->rows,
                       (slc_row_list *)(void *)(lists + (uint64_t)ran->rank * slc_row_list_bytes(ran->rows->most)));
    return ran->start++, SLUICE_OK;
}

static sluice_status on_call(void *context)
{
    return ((calls *)context)->call++, SLUICE_OK;
}

static sluice_status on_end(void *context)
{
    return ((calls *)context)->end++, SLUICE_OK;
}

static sluice_status decide(void *context)
{
    round_ops *round = context;
    memcpy(round->looked_at, round->skip, sizeof round->skip);
    return SLUICE_OK;
}

static sluice_status small_delay(void *context)
{
    usleep(*(useconds_t *)context);
    return SLUICE_OK;
}

static void begin_round(round_ops *round, uint64_t *chance)
{
    memset(round, 0, sizeof *round);
    round->late = pick(chance, 2);
    if (round->late)
        round->ops[round->count++] =
            (slc_op){.kind = SLC_BARRIER, .call = decide, .context = round, .what = "decision"};
}

/* True if the operation will be skipped. */
static bool add_op(rig *all, round_ops *round, slc_op op, uint64_t *chance)
{
    const size_t i = round->count++;
    op.start = on_start, op.end = on_end, op.context = &round->ran[i];
    if (!op.call) op.call = on_call;
    const bool may_skip = pick(chance, 3) < 2;
    round->skip[i] = round->ran[i].skipped = may_skip && pick(chance, 2);
    round->looked_at[i] = round->late ? !round->skip[i] : round->skip[i];
    if (may_skip) op.skip = &round->looked_at[i];
    if (may_skip && round->late) op.wait[1] = slc_comm_completed(all->comm), op.wait_value[1] = all->submitted + 1;
    round->ops[i] = op;
    return round->skip[i];
}

/* Two operations may share the memory of their lists. */
static void place_lists(rig *all, round_ops *round, random_op *made, uint64_t *chance)
{
    calls *ran = &round->ran[round->count];
    made->rows.lists = all->lists + pick(chance, LISTS) * RANKS_MAX * slc_row_list_bytes(MOST_ROWS);
    round->rows[round->count] = made->rows;
    *ran = (calls){.rows = &round->rows[round->count], .lists_seed = made->lists_seed};
    ran->rank = sluice_world_rank(all->world);
    made->op.rows = ran->rows;
    made->op.what = "random rows";
}

static void apply_rows(rig *all, const random_op *made, int size)
{
    rows_lists lists = rows_lists_create(made->lists_seed, made->op.rows, size);
    char *src[RANKS_MAX], *dst[RANKS_MAX];
    for (int r = 0; r < size; r++) src[r] = all->arenas[r] + made->src_at, dst[r] = all->arenas[r] + made->dst_at;
    rows_op_apply(&made->op, &lists, src, dst);
    all->bytes += rows_op_bytes(&made->op, &lists, sluice_world_rank(all->world));
    rows_lists_destroy(&lists);
}

static void add_block_op(rig *all, round_ops *round, const test_case *test, int place, uint64_t *chance)
{
    int rank = sluice_world_rank(all->world);
    random_op made = random_op_draw(chance, test->size, place, test->place_bytes);
    made.op.src = (char *)all->segment.base + made.src_at;
    made.op.dst = (char *)all->segment.base + made.dst_at;
    const bool rows = made.op.kind == SLC_GATHER_ROWS || made.op.kind == SLC_REDUCE_ROWS;
    if (rows) place_lists(all, round, &made, chance);
    if (add_op(all, round, made.op, chance) || made.op.kind == SLC_BARRIER) return;
    if (rows) {
        apply_rows(all, &made, test->size);
        return;
    }
    all->bytes += random_op_bytes(&made.op, rank, test->size);
    for (uint64_t b = 0; b < made.op.block_count; b++)
        random_op_block(&made, all->arenas, test->size, made.op.first_block + b);
}

static void add_exchange(rig *all, round_ops *round, exchange *x, uint64_t *chance)
{
    memset(x->packets, 0x5a, x->bytes);
    if (add_op(all, round, exchange_op(x), chance)) return;
    exchange_prepare(x, &all->stream, sluice_world_rank(all->world), pick(chance, 1 << 30));
    all->bytes += exchange_formula(&x->group);
}

/* Each rank draws for itself where it dawdles, if at all. */
static void add_delay(rig *all, round_ops *round, uint64_t *own)
{
    if (pick(own, 3)) return;
    const size_t i = round->count;
    slc_op op = {.kind = SLC_CALL, .what = "delay"};
    if (pick(own, 2)) {
        op.call = small_delay, op.context = &round->delay;
        round->ops[round->count++] = op;
        round->ran[i] = (calls){.start = 1, .call = 1, .end = 1};
    } else
        add_op(all, round, op, own);
}

static void check_hooks(const round_ops *round)
{
    for (size_t i = round->late; i < round->count; i++) {
        const calls *ran = &round->ran[i];
        CHECK(ran->start == 1 && ran->end == 1 && ran->call == !round->skip[i]);
    }
}

static int check_arena(const rig *all, const test_case *test, uint64_t seed)
{
    int rank = sluice_world_rank(all->world);
    const char *got = all->segment.base;
    for (uint64_t i = 0; i < PLACES * test->place_bytes; i++) {
        if (got[i] == all->arenas[rank][i]) continue;
        fprintf(stderr, "size %d path %d seed %llu: rank %d differs at byte %llu\n", test->size, (int)test->path,
                (unsigned long long)seed, rank, (unsigned long long)i);
        return 1;
    }
    for (int i = 0; i < EXCHANGES; i++) exchange_check(&all->exchanges[i], rank);
    CHECK(slc_comm_bytes_sent(all->comm) == all->bytes);
    return 0;
}

static int run_round(rig *all, const test_case *test, int number)
{
    int rank = sluice_world_rank(all->world), exchanges = 0;
    uint64_t seed = test->seed * 100 + (uint64_t)number, chance = seed, own = seed * 31 + (uint64_t)rank;
    round_ops round;
    for (int r = 0; r < test->size; r++) random_op_fill(all->arenas[r], test->place_bytes, seed, r);
    memcpy(all->segment.base, all->arenas[rank], PLACES * test->place_bytes);
    begin_round(&round, &chance);
    round.delay = (useconds_t)pick(&own, 3000);
    for (int i = 0; i < OPERATIONS; i++) {
        if (test->delays) add_delay(all, &round, &own);
        add_block_op(all, &round, test, pick(&chance, 3) ? i : 0, &chance);
        if (exchanges < EXCHANGES && pick(&chance, 3) == 0)
            add_exchange(all, &round, &all->exchanges[exchanges++], &chance);
    }
    CHECK(!sluice_world_barrier(all->world)); /* all arenas are filled */
    uint32_t index;
    CHECK(!slc_comm_submit(all->comm, round.ops, round.count, &index) && index == all->submitted);
    all->submitted += (uint32_t)round.count;
    CHECK(!slc_comm_wait(all->comm, all->submitted));
    CHECK(!sluice_world_barrier(all->world)); /* peers may still push into this buffer for a later operation */
    check_hooks(&round);
    return check_arena(all, test, seed);
}

/* Opens the arena: places, scratch, and exchanges of a few tensors. */
static void rig_open(rig *all, const test_case *test, int rank)
{
    sluice_world_config config = path_config(rank, test->size, test->port, test->path);
    config.throttle = test->throttle;
    CHECK(!sluice_world_create(&config, &all->world));
    all->comm = slc_world_comm(all->world);
    CHECK(!slc_device_open("cpu", &all->device) && !slc_stream_create(all->device, 1, &all->stream));
    const uint64_t data = PLACES * test->place_bytes, scratch = slc_comm_scratch_bytes(all->comm, test->place_bytes);
    const uint64_t aside = EXCHANGES * 4 * test->place_bytes;
    const uint64_t lists = LISTS * RANKS_MAX * slc_row_list_bytes(MOST_ROWS);
    CHECK(!slc_segment_create(all->device, data + scratch + lists + aside, &all->segment));
    char *base = all->segment.base, *arena = base + data + scratch + lists;
    all->lists = base + data + scratch;
    CHECK(!slc_comm_attach(all->comm, &all->segment, base + data, scratch));
    uint64_t chance = test->seed;
    for (int i = 0; i < EXCHANGES; i++) {
        slc_compress_shape shapes[8];
        uint32_t count = 1 + (uint32_t)pick(&chance, 8);
        for (uint32_t s = 0; s < count; s++) shapes[s] = draw_shape(&chance, test->size, test->place_bytes / 4);
        all->exchanges[i] = exchange_create(all->comm, count, shapes, &arena);
    }
    CHECK(arena <= base + all->segment.bytes);
    for (int r = 0; r < test->size; r++) CHECK((all->arenas[r] = malloc(data)));
}

static void rig_close(rig *all, int size)
{
    for (int i = 0; i < EXCHANGES; i++) exchange_destroy(&all->exchanges[i]);
    for (int r = 0; r < size; r++) free(all->arenas[r]);
    slc_stream_destroy(&all->stream);
    close_rank(all->world, &all->segment, all->device);
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    int code = 0;
    for (int round = 0; !code && round < test->rounds; round++) code = run_round(&all, test, round);
    rig_close(&all, test->size);
    return code;
}

static void check_case(int size, test_path path, const char *throttle, int rounds, bool delays)
{
    static uint64_t seed = 1;
    test_case test = {.size = size,
                      .port = free_port(),
                      .path = path,
                      .throttle = throttle,
                      .seed = seed++,
                      .rounds = rounds,
                      .delays = delays,
                      .place_bytes = SMALL_PLACE};
    assert_int_equal(run_ranks(size, body, &test), 0);
}

/* Parts have several chunks, and messages do not fit a socket's buffer. */
static void test_large(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MIXED; path++) {
        test_case test = {.size = path == MIXED ? 3 : 2,
                          .port = free_port(),
                          .path = (test_path)path,
                          .throttle = "",
                          .seed = 1000 + (uint64_t)path,
                          .rounds = 1,
                          .place_bytes = test_brief() ? LARGE_PLACE / 4 : LARGE_PLACE};
        assert_int_equal(run_ranks(test.size, body, &test), 0);
    }
}

/* Four ranks have every kind of neighbour that five have; a fifth only draws more sizes of parts. */
static int most_ranks(void)
{
    return test_brief() ? 4 : 5;
}

static void test_direct(void **state)
{
    (void)state;
    for (int size = 1; size <= most_ranks(); size++) check_case(size, DIRECT, "", (int)test_rounds(4), false);
    check_case(3, DIRECT, "", (int)test_rounds(4), true);
}

static void test_messages(void **state)
{
    (void)state;
    for (int size = 2; size <= most_ranks(); size++) check_case(size, MESSAGES, "", (int)test_rounds(4), false);
    check_case(3, MESSAGES, "", (int)test_rounds(4), true);
}

static void test_mixed(void **state)
{
    (void)state;
    for (int size = 3; size <= most_ranks(); size++) check_case(size, MIXED, "", (int)test_rounds(4), false);
    check_case(4, MIXED, "", (int)test_rounds(4), true);
}

/* Each rank in turn goes through skipped operations, of which the others know nothing yet. */
static int skip_alone(int rank, void *argument)
{
    const test_case *test = argument;
    static const bool yes = true;
    rig all = {0};
    rig_open(&all, test, rank);
    slc_op ops[] = {exchange_op(&all.exchanges[0]), {.kind = SLC_BARRIER}, {.kind = SLC_BARRIER}};
    for (int i = 0; i < 2; i++) ops[i].skip = &yes;
    for (int turn = 0; turn < test->size; turn++) {
        for (int i = 0; turn == rank && i < 200; i++) {
            CHECK(!slc_comm_submit(all.comm, &ops[i % 2], 1, NULL));
            CHECK(!slc_comm_wait(all.comm, ++all.submitted));
        }
        CHECK(!sluice_world_barrier(all.world));
    }
    CHECK(!slc_comm_submit(all.comm, &ops[2], 1, NULL) && !slc_comm_wait(all.comm, ++all.submitted));
    CHECK(slc_comm_bytes_sent(all.comm) == 0);
    rig_close(&all, test->size);
    return 0;
}

static void test_skipped_wait_for_nobody(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MIXED; path++) {
        test_case test = {
            .size = 3, .port = free_port(), .path = (test_path)path, .throttle = "", .place_bytes = SMALL_PLACE};
        assert_int_equal(run_ranks(test.size, skip_alone, &test), 0);
    }
}

static void test_throttled(void **state)
{
    (void)state;
    check_case(3, DIRECT, "10gbit,50us", (int)test_rounds(2), false);
    check_case(3, MESSAGES, "10gbit,50us", (int)test_rounds(2), false);
    check_case(3, MIXED, "10gbit,50us", (int)test_rounds(2), true);
}

/* One rank sums in place: nothing is to be done unless the sum is scaled or added to what lies there. */
static int sum_alone(int rank, void *argument)
{
    const test_case *test = argument;
    rig all = {0};
    rig_open(&all, test, rank);
    for (int c = 0; c < 4; c++) {
        random_op made = {.op = {.kind = SLC_REDUCE_SCATTER,
                                 .dtype = SLUICE_FP32,
                                 .elements = 160,
                                 .block_elements = 64,
                                 .block_count = 3,
                                 .scale = c / 2 ? 0.75f : 1.0f,
                                 .accumulate = c % 2,
                                 .src = all.segment.base,
                                 .dst = all.segment.base}};
        random_op_fill(all.arenas[0], test->place_bytes, 7, 0);
        memcpy(all.segment.base, all.arenas[0], PLACES * test->place_bytes);
        for (uint64_t b = 0; b < made.op.block_count; b++) random_op_block(&made, all.arenas, 1, b);
        CHECK(!slc_comm_submit(all.comm, &made.op, 1, NULL) && !slc_comm_wait(all.comm, ++all.submitted));
        if (check_arena(&all, test, 7)) return 1;
    }
    rig_close(&all, test->size);
    return 0;
}

static void test_one_rank_in_place(void **state)
{
    (void)state;
    test_case test = {.size = 1, .port = free_port(), .path = DIRECT, .throttle = "", .place_bytes = SMALL_PLACE};
    assert_int_equal(run_ranks(test.size, sum_alone, &test), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank_in_place),
        cmocka_unit_test(test_direct),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_throttled),
        cmocka_unit_test(test_skipped_wait_for_nobody),
        cmocka_unit_test(test_large),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
