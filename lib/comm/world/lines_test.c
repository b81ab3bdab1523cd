/* Random programs of channels, groups and the world's lane against an oracle that does the same one after another in
 * one process. All ranks draw the same events in one order; each rank submits those that it takes part in, each to its
 * own line, and lets an event wait only for the earlier ones that touch the same place. So lines overtake each other
 * wherever they may, and what comes out must be what the one order gives. */
#include "tests/support/comm/forked_ranks.h"
#include "tests/support/comm/random_op.h"
#include "tests/support/scale.h"
#include "lib/comm/channels.h"
#include "lib/comm/groups.h"
#include "lib/comm/neighbours.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* Lines of a rank: the world, its groups, its channels. */
enum { CHANNELS = 6, GROUPS = 2, LINES = 1 + GROUPS + CHANNELS, EVENTS = 60, CONFLICTS = 2 * LINES + 1 };
enum { WORLD_LINE = 0, GROUP_LINE = 1, CHANNEL_LINE = 1 + GROUPS };

typedef struct {
    int size, port;
    test_path path;
    const char *throttle;
    uint64_t seed;
    int rounds;
} test_case;

/* The groups and channels of all ranks, as every rank knows them. */
typedef struct {
    int of[GROUPS][RANKS_MAX]; /* the part that a rank is in */
    slc_channel_desc channels[CHANNELS];
    int channel_count;
} shape;

typedef struct {
    sluice_world *world;
    slc_device *device;
    slc_segment segment;
    char *base; /* where the places begin */
    char *scratch[1 + GROUPS];
    uint64_t scratch_bytes[1 + GROUPS];
    char *arenas[RANKS_MAX]; /* the oracle's: places of every rank */
    shape shape;
    slc_comm *lanes[1 + GROUPS];
    slc_channel *channels[CHANNELS]; /* NULL: this rank has no end of it */
    uint32_t submitted[LINES];       /* since the lines were opened */
    uint32_t touched[LINES][PLACES]; /* the count of a line at which its events on a place are complete */
    uint64_t bytes[CHANNELS];
    slc_gate gate; /* raised by the program, as slots of compute do */
    uint32_t raised;
    slc_gate_count counts[EVENTS][CONFLICTS];
    useconds_t delay[EVENTS];
} rig;

static int rank_of(const rig *all)
{
    return sluice_world_rank(all->world);
}

/* ---- Shapes ---- */

static shape draw_shape(uint64_t *chance, int size)
{
    shape drawn = {0};
    for (int g = 0; g < GROUPS; g++)
        for (int r = 0; r < size; r++) drawn.of[g][r] = (int)pick(chance, 2);
    static const char *const names[CHANNELS] = {"a", "b", "c", "d", "e", "f"};
    drawn.channel_count = 1 + (int)pick(chance, CHANNELS);
    for (int c = 0; c < drawn.channel_count; c++) {
        const int from = (int)pick(chance, (uint64_t)size), step = 1 + (int)pick(chance, (uint64_t)size - 1);
        const uint32_t number = (uint32_t)(c * 170 + (int)pick(chance, 170));
        drawn.channels[c] = (slc_channel_desc){from, (from + step) % size, number, names[c]};
    }
    return drawn;
}

/* The members of the part of group `g` that `rank` is in. */
static int list_members(const shape *drawn, int g, int rank, int size, int *members)
{
    int count = 0;
    for (int r = 0; r < size; r++)
        if (drawn->of[g][r] == drawn->of[g][rank]) members[count++] = r;
    return count;
}

static bool is_end(const slc_channel_desc *desc, int rank)
{
    return desc->from == rank || desc->to == rank;
}

static void open_lines(rig *all, const test_case *test, uint64_t *chance)
{
    slc_comm *world = slc_world_comm(all->world);
    slc_channel_desc own[CHANNELS];
    slc_channel *opened[CHANNELS];
    int members[RANKS_MAX];
    uint32_t count = 0;
    all->shape = draw_shape(chance, test->size);
    all->lanes[WORLD_LINE] = world;
    for (int g = 0; g < GROUPS; g++) {
        const int member_count = list_members(&all->shape, g, rank_of(all), test->size, members);
        CHECK(!slc_comm_group_create(world, (uint32_t)(1 + g), members, member_count, &all->lanes[GROUP_LINE + g]));
        slc_comm *group = all->lanes[GROUP_LINE + g];
        CHECK(slc_comm_scratch_bytes(group, SMALL_PLACE) <= all->scratch_bytes[1 + g]);
        CHECK(!slc_comm_group_attach(group, all->scratch[1 + g], all->scratch_bytes[1 + g]));
    }
    for (int c = 0; c < all->shape.channel_count; c++)
        if (is_end(&all->shape.channels[c], rank_of(all))) own[count++] = all->shape.channels[c];
    CHECK(!slc_channels_open(world, own, count, opened));
    count = 0;
    for (int c = 0; c < CHANNELS; c++) {
        const bool end = c < all->shape.channel_count && is_end(&all->shape.channels[c], rank_of(all));
        all->channels[c] = end ? opened[count++] : NULL;
    }
    for (int line = 1; line < LINES; line++) all->submitted[line] = 0;
    memset(all->touched, 0, sizeof all->touched);
    memset(all->bytes, 0, sizeof all->bytes);
}

static void close_lines(rig *all)
{
    for (int c = 0; c < CHANNELS; c++)
        if (all->channels[c]) CHECK(slc_channel_bytes(all->channels[c]) == all->bytes[c]);
    slc_channels_close(all->channels, CHANNELS);
    for (int g = 0; g < GROUPS; g++) slc_comm_group_destroy(all->lanes[GROUP_LINE + g]);
}

/* ---- Events ---- */

static slc_gate *gate_of(rig *all, int line)
{
    return line < CHANNEL_LINE ? slc_comm_completed(all->lanes[line])
                               : slc_channel_completed(all->channels[line - CHANNEL_LINE]);
}

static sluice_status dawdle(void *context)
{
    const useconds_t *delay = context;
    if (*delay) usleep(*delay);
    return SLUICE_OK;
}

/* Lists what event `number`, on `line`, waits for: all earlier events on its place, and now and then the program. */
static uint32_t list_counts(rig *all, int number, int line, int place, uint64_t *own)
{
    slc_gate_count *counts = all->counts[number];
    uint32_t count = 0;
    for (int other = 0; other < LINES; other++)
        if (all->touched[other][place])
            counts[count++] = (slc_gate_count){gate_of(all, other), all->touched[other][place]};
    if (pick(own, 3) == 0) counts[count++] = (slc_gate_count){&all->gate, ++all->raised};
    all->touched[line][place] = ++all->submitted[line];
    all->delay[number] = pick(own, 6) ? 0 : (useconds_t)pick(own, 2000);
    return count;
}

static int draw_place(uint64_t *chance)
{
    return pick(chance, 2) ? 0 : (int)pick(chance, OPERATIONS);
}

/* A transfer goes between places of float32, so that sums stay finite. */
static void add_transfer(rig *all, int number, uint64_t *chance, uint64_t *own)
{
    const int c = (int)pick(chance, (uint64_t)all->shape.channel_count);
    const slc_channel_desc *desc = &all->shape.channels[c];
    const int from_place = draw_place(chance), to_place = draw_place(chance);
    const uint64_t most = pick(chance, 2) ? 1000 : SMALL_PLACE / 2, bytes = 4 * (1 + pick(chance, most / 4));
    const uint64_t room = (SMALL_PLACE - bytes) / 4;
    const uint64_t from = (uint64_t)from_place * SMALL_PLACE + 4 * pick(chance, room);
    const uint64_t to = (uint64_t)to_place * SMALL_PLACE + 4 * pick(chance, room);
    memcpy(all->arenas[desc->to] + to, all->arenas[desc->from] + from, bytes);
    if (!is_end(desc, rank_of(all))) return;
    const bool sends = desc->from == rank_of(all);
    slc_channel_transfer transfer = {.data = all->base + (sends ? from : to),
                                     .bytes = bytes,
                                     .label = (uint64_t)number,
                                     .counts = all->counts[number],
                                     .start = dawdle,
                                     .context = &all->delay[number],
                                     .what = "a random transfer"};
    transfer.count_count = list_counts(all, number, CHANNEL_LINE + c, sends ? from_place : to_place, own);
    all->bytes[c] += bytes;
    CHECK(!slc_channel_submit(all->channels[c], &transfer, 1, NULL));
}

/* Draws a collective of the ranks `members`, does it to their arenas, and submits it if this rank is one of them. */
static void add_collective(rig *all, int number, int line, const int *members, int count, uint64_t *chance,
                           uint64_t *own)
{
    random_op made;
    char *arenas[RANKS_MAX];
    bool member = false;
    do made = random_op_draw(chance, count, draw_place(chance), SMALL_PLACE);
    while (made.op.kind == SLC_GATHER_ROWS || made.op.kind == SLC_REDUCE_ROWS || made.op.kind == SLC_BARRIER);
    for (int i = 0; i < count; i++) {
        arenas[i] = all->arenas[members[i]];
        member |= members[i] == rank_of(all);
    }
    for (uint64_t b = 0; b < made.op.block_count; b++) random_op_block(&made, arenas, count, made.op.first_block + b);
    if (!member) return;
    slc_op op = made.op;
    op.src = all->base + made.src_at;
    op.dst = all->base + made.dst_at;
    op.start = dawdle;
    op.context = &all->delay[number];
    op.counts = all->counts[number];
    op.count_count = list_counts(all, number, line, (int)(made.src_at / SMALL_PLACE), own);
    CHECK(!slc_comm_submit(all->lanes[line], &op, 1, NULL));
}

static void add_event(rig *all, const test_case *test, int number, uint64_t *chance, uint64_t *own)
{
    const uint64_t kind = pick(chance, 8);
    int members[RANKS_MAX];
    if (kind < 5) {
        add_transfer(all, number, chance, own);
        return;
    }
    if (kind == 7) {
        for (int r = 0; r < test->size; r++) members[r] = r;
        add_collective(all, number, WORLD_LINE, members, test->size, chance, own);
        return;
    }
    const int g = (int)pick(chance, GROUPS), first = (int)pick(chance, (uint64_t)test->size);
    const int count = list_members(&all->shape, g, first, test->size, members);
    add_collective(all, number, GROUP_LINE + g, members, count, chance, own);
}

/* ---- Rounds ---- */

/* Raises the program's gate step by step, as compute that goes on, and then waits for every line. */
static void go_through(rig *all, uint64_t *own, uint32_t before)
{
    for (uint32_t value = before + 1; value <= all->raised; value++) {
        if (pick(own, 4) == 0) usleep((useconds_t)pick(own, 1500));
        slc_gate_post(&all->gate, value);
        slc_comm_notify(all->lanes[WORLD_LINE]);
    }
    for (int line = 0; line < CHANNEL_LINE; line++) CHECK(!slc_comm_wait(all->lanes[line], all->submitted[line]));
    for (int c = 0; c < CHANNELS; c++)
        if (all->channels[c]) CHECK(!slc_channel_wait(all->channels[c], all->submitted[CHANNEL_LINE + c]));
}

static int check_places(const rig *all, const test_case *test, uint64_t seed)
{
    const char *wanted = all->arenas[rank_of(all)];
    for (uint64_t i = 0; i < PLACES * SMALL_PLACE; i++) {
        if (all->base[i] == wanted[i]) continue;
        fprintf(stderr, "size %d path %d throttle \"%s\" seed %llu: rank %d differs at byte %llu of place %llu\n",
                test->size, (int)test->path, test->throttle, (unsigned long long)seed, rank_of(all),
                (unsigned long long)(i % SMALL_PLACE), (unsigned long long)(i / SMALL_PLACE));
        return 1;
    }
    return 0;
}

static int run_round(rig *all, const test_case *test, int number)
{
    const uint64_t seed = test->seed * 100 + (uint64_t)number;
    uint64_t chance = seed, own = seed * 31 + (uint64_t)rank_of(all);
    const uint32_t before = all->raised;
    for (int r = 0; r < test->size; r++) random_op_fill(all->arenas[r], SMALL_PLACE, seed, r);
    memcpy(all->base, all->arenas[rank_of(all)], PLACES * SMALL_PLACE);
    open_lines(all, test, &chance);
    CHECK(!sluice_world_barrier(all->world)); /* all places are filled */
    for (int i = 0; i < EVENTS; i++) add_event(all, test, i, &chance, &own);
    go_through(all, &own, before);
    CHECK(!sluice_world_barrier(all->world)); /* peers may still read from these places */
    const int code = check_places(all, test, seed);
    close_lines(all);
    return code;
}

/* Arenas differ in size, and the scratch of each lane lies elsewhere on each rank. */
static void rig_open(rig *all, const test_case *test, int rank)
{
    sluice_world_config config = path_config(rank, test->size, test->port, test->path);
    config.throttle = test->throttle;
    CHECK(!sluice_world_create(&config, &all->world));
    CHECK(!slc_device_open("cpu", &all->device));
    slc_comm *comm = slc_world_comm(all->world);
    const uint64_t each = (slc_comm_scratch_bytes(comm, SMALL_PLACE) + 127) / 64 * 64, before = (uint64_t)rank * 4096;
    const uint64_t data = PLACES * SMALL_PLACE;
    CHECK(!slc_segment_create(all->device, data + before + (1 + GROUPS) * each, &all->segment));
    all->base = all->segment.base;
    for (int i = 0; i <= GROUPS; i++) {
        all->scratch[i] = all->base + data + before + (uint64_t)i * each;
        all->scratch_bytes[i] = each;
    }
    const uint64_t needed = slc_comm_scratch_bytes(comm, SMALL_PLACE);
    CHECK(!slc_comm_attach_apart(comm, &all->segment, all->scratch[0], needed));
    slc_gate_init(&all->gate);
    for (int r = 0; r < test->size; r++) CHECK((all->arenas[r] = malloc(data)));
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    static rig all;
    int code = 0;
    rig_open(&all, test, rank);
    for (int round = 0; !code && round < test->rounds; round++) code = run_round(&all, test, round);
    for (int r = 0; r < test->size; r++) free(all.arenas[r]);
    close_rank(all.world, &all.segment, all.device);
    return code;
}

static void check_case(int size, test_path path, const char *throttle, int rounds)
{
    static uint64_t seed = 1;
    test_case test = {
        .size = size, .port = free_port(), .path = path, .throttle = throttle, .seed = seed++, .rounds = rounds};
    assert_int_equal(run_ranks(size, body, &test), 0);
}

static void test_direct(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size++) check_case(size, DIRECT, "", (int)test_rounds(8));
}

static void test_messages(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size++) check_case(size, MESSAGES, "", (int)test_rounds(6));
}

static void test_mixed(void **state)
{
    (void)state;
    for (int size = 3; size <= 4; size++) check_case(size, MIXED, "", (int)test_rounds(6));
}

static void test_throttled(void **state)
{
    (void)state;
    check_case(3, DIRECT, "4gbit,50us", (int)test_rounds(2));
    check_case(2, MESSAGES, "4gbit,50us", (int)test_rounds(2));
    check_case(4, MIXED, "4gbit,50us", (int)test_rounds(2));
}

/* ---- Calls that are refused ---- */

static void expect(sluice_status status, sluice_status wanted, const char *part)
{
    if (status == wanted && strstr(sluice_last_error(), part)) return;
    fprintf(stderr, "%s: \"%s\" should be %s and say \"%s\"\n", sluice_status_name(status), sluice_last_error(),
            sluice_status_name(wanted), part);
    _exit(1);
}

/* All ranks hear that one of them named something else, and the world goes on. */
static void refuse_channels(slc_comm *comm, int rank)
{
    slc_channel *opened[2];
    slc_channel_desc descs[2] = {{0, 1, 5, "right"}, {1, 0, 5, "twice"}};
    expect(slc_channels_open(comm, descs, rank == 0 ? 2 : 0, opened),
           rank == 0 ? SLUICE_ERR_ARGUMENT : SLUICE_ERR_MISMATCH, rank == 0 ? "number 5" : "rank 0 cannot open");
    descs[0].number = SLC_CHANNELS_MOST;
    expect(slc_channels_open(comm, descs, rank < 2, opened), rank < 2 ? SLUICE_ERR_ARGUMENT : SLUICE_ERR_MISMATCH,
           rank < 2 ? "below 1024" : "rank 0 cannot open");
    descs[0] = (slc_channel_desc){2, 2, 1, "to itself"};
    expect(slc_channels_open(comm, descs, rank == 2, opened), rank == 2 ? SLUICE_ERR_ARGUMENT : SLUICE_ERR_MISMATCH,
           rank == 2 ? "from rank 2 to rank 2" : "rank 2 cannot open");
    descs[0] = (slc_channel_desc){0, rank == 0 ? 1 : 2, 3, "another end"};
    expect(slc_channels_open(comm, descs, rank == 0 || rank == 2, opened), SLUICE_ERR_MISMATCH, "no other end");
}

static void refuse_groups(slc_comm *comm, int rank)
{
    slc_comm *group;
    const int pair[2] = {0, 1}, wrong[2] = {1, 0}, others[2] = {1, 2}, own[1] = {rank};
    expect(slc_comm_group_create(comm, 0, own, 1, &group), SLUICE_ERR_ARGUMENT, "from 1 to 7");
    expect(slc_comm_group_create(comm, 2, wrong, rank < 2 ? 2 : 0, &group),
           rank < 2 ? SLUICE_ERR_ARGUMENT : SLUICE_ERR_MISMATCH, rank < 2 ? "ascending" : "rank 0 cannot make");
    expect(slc_comm_group_create(comm, 2, pair, 2, &group), rank < 2 ? SLUICE_ERR_MISMATCH : SLUICE_ERR_ARGUMENT,
           rank < 2 ? "rank 2 cannot make" : "not among its members");
    expect(slc_comm_group_create(comm, 2, rank == 0 ? pair : others, 2, &group), SLUICE_ERR_MISMATCH,
           "rank 0 names 2 members, and 1 ranks");
    expect(slc_comm_group_create(comm, rank == 1 ? 3 : 2, own, 1, &group), SLUICE_ERR_MISMATCH, "makes group");
    CHECK(!slc_comm_group_create(comm, 2, pair, rank < 2 ? 2 : 0, &group) && (group != NULL) == (rank < 2));
    if (group) expect(slc_comm_group_attach(group, NULL, 0), SLUICE_ERR_ORDER, "nothing attached");
    slc_comm_group_destroy(group);
}

static int be_refused(int rank, void *argument)
{
    const test_case *test = argument;
    const sluice_world_config config = path_config(rank, test->size, test->port, test->path);
    slc_device *device;
    slc_segment segment;
    sluice_world *world;
    CHECK(!sluice_world_create(&config, &world));
    slc_comm *comm = slc_world_comm(world);
    refuse_channels(comm, rank);
    refuse_groups(comm, rank);
    CHECK(!slc_device_open("cpu", &device) && !slc_segment_create(device, 4096 * (size_t)(rank + 1), &segment));
    slc_channel *channel = NULL;
    const slc_channel_desc desc = {0, 1, 1023, "the last one"};
    CHECK(!slc_channels_open(comm, &desc, rank < 2, &channel));
    const slc_channel_transfer transfer = {.data = segment.base, .bytes = 64};
    if (channel) expect(slc_channel_submit(channel, &transfer, 1, NULL), SLUICE_ERR_ORDER, "attach memory first");
    expect(slc_comm_attach(comm, &segment, NULL, 0), SLUICE_ERR_MISMATCH, "another size");
    CHECK(!slc_comm_attach_apart(comm, &segment, NULL, 0));
    if (channel) CHECK(!slc_channel_submit(channel, &transfer, 1, NULL) && !slc_channel_wait(channel, 1));
    slc_channels_close(&channel, 1);
    close_rank(world, &segment, device);
    return 0;
}

static void test_refused(void **state)
{
    (void)state;
    test_case test = {.size = 3, .port = free_port(), .path = DIRECT, .throttle = ""};
    assert_int_equal(run_ranks(test.size, be_refused, &test), 0);
}

/* More transfers than the queue holds, each way between each pair of three ranks. */
static int send_many(int rank, void *argument)
{
    enum { MANY = 1500, PAIRS = 6 };
    const test_case *test = argument;
    const sluice_world_config config = path_config(rank, test->size, test->port, test->path);
    slc_device *device;
    slc_segment segment;
    sluice_world *world;
    slc_channel_desc descs[PAIRS];
    slc_channel *channels[PAIRS];
    uint32_t count = 0;
    CHECK(!sluice_world_create(&config, &world));
    slc_comm *comm = slc_world_comm(world);
    CHECK(!slc_device_open("cpu", &device) && !slc_segment_create(device, 65536, &segment));
    CHECK(!slc_comm_attach(comm, &segment, NULL, 0));
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++)
            if (from != to && (from == rank || to == rank))
                descs[count++] = (slc_channel_desc){from, to, (uint32_t)(from * 3 + to), "many"};
    CHECK(!slc_channels_open(comm, descs, count, channels));
    uint32_t *words = segment.base;
    for (uint32_t i = 0; i < count; i++) words[16 * i] = descs[i].from == rank ? 77 + descs[i].number : 0;
    CHECK(!sluice_world_barrier(world));
    for (uint32_t n = 0; n < MANY; n++)
        for (uint32_t i = 0; i < count; i++) {
            const slc_channel_transfer transfer = {.data = &words[16 * i], .bytes = 4, .label = n};
            CHECK(!slc_channel_submit(channels[i], &transfer, 1, NULL));
        }
    for (uint32_t i = 0; i < count; i++) {
        CHECK(!slc_channel_wait(channels[i], MANY));
        CHECK(words[16 * i] == 77 + descs[i].number && slc_channel_bytes(channels[i]) == 4 * MANY);
    }
    slc_channels_close(channels, count);
    close_rank(world, &segment, device);
    return 0;
}

static void test_many(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MIXED; path++) {
        test_case test = {.size = 3, .port = free_port(), .path = (test_path)path, .throttle = ""};
        assert_int_equal(run_ranks(test.size, send_many, &test), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_direct),  cmocka_unit_test(test_messages),
                                       cmocka_unit_test(test_mixed),   cmocka_unit_test(test_throttled),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_many)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
