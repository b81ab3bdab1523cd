/* Block collectives against a plain oracle, bit for bit: sums in rank order, over memory, messages and both, random
 * lengths, blocks, ranges and layouts, with random delays. */
#include "lib/comm/comm_test.h"

#include <setjmp.h>
#include <sluice/dtype.h>
#include <stdint.h>
#include <cmocka.h>

typedef enum { DIRECT, MESSAGES, MIXED } test_path;

typedef struct {
    int size, port;
    test_path path;
    const char *throttle;
    uint64_t seed;
    int rounds;
    bool delays;
    uint64_t place_bytes;
} test_case;

/* One operation, made from the seed alone, so that every rank makes the same. */
typedef struct {
    slc_op op;
    uint64_t src_at, dst_at; /* bytes in the arena */
} random_op;

/* The arena is cut in places for operations to work in, the last ones for integers, whose sums must not overflow, and
 * for bfloat16, of which other numbers' bytes are no finite ones. */
enum { OPERATIONS = 6, INTEGERS = OPERATIONS, NARROW, PLACES, SMALL_PLACE = 128 << 10, LARGE_PLACE = 4 << 20 };

typedef struct {
    uint64_t state;
} source_of_chance;

static uint64_t pick(source_of_chance *chance, uint64_t below)
{
    chance->state += 0x9e3779b97f4a7c15u;
    uint64_t z = chance->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static float value_of(uint64_t seed, int rank, uint64_t index)
{
    source_of_chance chance = {seed * 1000003 + (uint64_t)rank * 7919 + index * 31};
    return (float)((double)pick(&chance, 1 << 24) / (1 << 20) - 7.5) * (index % 7 == 0 ? 1e-6f : 1.0f);
}

static random_op make_op(source_of_chance *chance, int size, int place, uint64_t place_bytes)
{
    uint64_t grain = 16 * (uint64_t)size;
    random_op made = {0};
    slc_op *op = &made.op;
    static const slc_op_kind kinds[] = {SLC_REDUCE_SCATTER, SLC_ALL_GATHER,     SLC_ALL_REDUCE, SLC_BROADCAST,
                                        SLC_BARRIER,        SLC_REDUCE_SCATTER, SLC_ALL_GATHER, SLC_ALL_REDUCE};
    op->kind = kinds[pick(chance, 8)];
    op->dtype = SLC_FLOAT32;
    uint64_t dtype = pick(chance, 6);
    if (op->kind == SLC_ALL_REDUCE && dtype == 0) op->dtype = SLC_INT64;
    if (op->kind == SLC_ALL_REDUCE && dtype == 1) op->dtype = SLC_FLOAT64;
    if (op->kind != SLC_BROADCAST && dtype > 3) op->dtype = SLC_BFLOAT16;
    bool narrow = op->dtype == SLC_BFLOAT16;
    op->block_elements = grain * (1 + pick(chance, pick(chance, 2) ? 8 : 120));
    uint64_t begin = (uint64_t)(op->dtype == SLC_INT64 ? INTEGERS : narrow ? NARROW : place) * place_bytes;
    uint64_t room = place_bytes / (narrow ? 4 : 2), most = (room - 4096) / slc_dtype_size(op->dtype);
    op->elements = grain * (1 + pick(chance, most / grain / (1 + pick(chance, 20))));
    if (pick(chance, 4) == 0) op->block_elements = grain * (1 + pick(chance, op->elements / grain)); /* long ones too */
    uint64_t blocks = (op->elements + op->block_elements - 1) / op->block_elements;
    op->first_block = pick(chance, blocks);
    op->block_count = 1 + pick(chance, blocks - op->first_block);
    op->scale = (float)(1 + pick(chance, 5)) / 3;
    op->root = (int)pick(chance, (uint64_t)size);
    made.src_at = made.dst_at = begin;
    if (op->kind == SLC_REDUCE_SCATTER) {
        op->accumulate = pick(chance, 2);
        op->dst_layout = pick(chance, 2) ? SLC_SHARD : SLC_WHOLE;
        if (op->dst_layout == SLC_SHARD || pick(chance, 2)) made.dst_at = begin + room;
        op->widen = narrow && pick(chance, 2);
        if (op->widen) made.dst_at = begin + 2 * room; /* fp32 among themselves */
    } else if (op->kind == SLC_ALL_GATHER) {
        op->src_layout = pick(chance, 2) ? SLC_SHARD : SLC_WHOLE;
        if (op->src_layout == SLC_SHARD || pick(chance, 2)) made.dst_at = begin + room;
    }
    op->what = "a random operation";
    return made;
}

/* ---- The oracle: all ranks' arenas in one process ---- */

static uint64_t part_at(const slc_op *op, slc_layout layout, uint64_t block, int rank, int size)
{
    uint64_t begin = block * op->block_elements, left = op->elements - begin;
    uint64_t length = left < op->block_elements ? left : op->block_elements;
    return layout == SLC_SHARD ? begin / (uint64_t)size : begin + (uint64_t)rank * (length / (uint64_t)size);
}

static uint64_t part_length(const slc_op *op, uint64_t block, int size)
{
    uint64_t left = op->elements - block * op->block_elements;
    return (left < op->block_elements ? left : op->block_elements) / (uint64_t)size;
}

static void sum_element(const random_op *made, char **arenas, int size, int owner, uint64_t read, uint64_t write)
{
    const slc_op *op = &made->op;
    char *to = arenas[owner] + made->dst_at;
    if (op->dtype == SLC_FLOAT32) {
        float sum = 0;
        for (int rank = 0; rank < size; rank++) {
            float value = ((const float *)(void *)(arenas[rank] + made->src_at))[read];
            sum = rank ? sum + value : value;
        }
        float *place = (float *)(void *)to + write;
        *place = op->accumulate ? *place + op->scale * sum : op->scale * sum;
    } else if (op->dtype == SLC_BFLOAT16) {
        float sum = 0;
        for (int rank = 0; rank < size; rank++) {
            float value = sluice_bf16_to_float(((const uint16_t *)(void *)(arenas[rank] + made->src_at))[read]);
            sum = rank ? sum + value : value;
        }
        float *wide = (float *)(void *)to + write, value = op->scale * sum;
        uint16_t *narrow = (uint16_t *)(void *)to + write;
        if (op->accumulate) value = (op->widen ? *wide : sluice_bf16_to_float(*narrow)) + value;
        if (op->widen)
            *wide = value;
        else
            *narrow = sluice_bf16_from_float(value);
    } else if (op->dtype == SLC_INT64) {
        int64_t sum = 0;
        for (int rank = 0; rank < size; rank++) sum += ((const int64_t *)(void *)(arenas[rank] + made->src_at))[read];
        ((int64_t *)(void *)to)[write] = sum;
    } else {
        double sum = ((const double *)(void *)(arenas[0] + made->src_at))[read];
        for (int rank = 1; rank < size; rank++) sum += ((const double *)(void *)(arenas[rank] + made->src_at))[read];
        ((double *)(void *)to)[write] = sum;
    }
}

static void oracle_block(const random_op *made, char **arenas, int size, uint64_t block)
{
    const slc_op *op = &made->op;
    uint64_t bytes = slc_dtype_size(op->dtype), length = part_length(op, block, size);
    for (int owner = 0; owner < size; owner++) {
        uint64_t whole = part_at(op, SLC_WHOLE, block, owner, size);
        uint64_t from = part_at(op, op->src_layout, block, owner, size);
        uint64_t to = part_at(op, op->dst_layout, block, owner, size);
        if (op->kind == SLC_REDUCE_SCATTER || op->kind == SLC_ALL_REDUCE)
            for (uint64_t i = 0; i < length; i++) sum_element(made, arenas, size, owner, whole + i, to + i);
        for (int rank = 0; rank < size; rank++) {
            if (op->kind == SLC_ALL_GATHER)
                memmove(arenas[rank] + made->dst_at + whole * bytes, arenas[owner] + made->src_at + from * bytes,
                        length * bytes);
            else if (op->kind == SLC_BROADCAST && rank != op->root)
                memcpy(arenas[rank] + made->dst_at + whole * bytes, arenas[op->root] + made->src_at + whole * bytes,
                       length * bytes);
        }
    }
    for (int owner = 0; op->kind == SLC_ALL_REDUCE && owner < size; owner++)
        for (int rank = 0; rank < size; rank++) {
            uint64_t at = made->dst_at + part_at(op, SLC_WHOLE, block, owner, size) * bytes;
            if (rank != owner) memcpy(arenas[rank] + at, arenas[owner] + at, length * bytes);
        }
}

static uint64_t formula_bytes(const slc_op *op, int rank, int size)
{
    uint64_t length = 0;
    for (uint64_t b = op->first_block; b < op->first_block + op->block_count; b++) length += part_length(op, b, size);
    uint64_t one = length * slc_dtype_size(op->dtype) * (uint64_t)(size - 1);
    switch (op->kind) {
    case SLC_REDUCE_SCATTER:
    case SLC_ALL_GATHER: return one;
    case SLC_ALL_REDUCE: return 2 * one;
    case SLC_BROADCAST: return rank == op->root ? one * (uint64_t)size : 0;
    default: return 0;
    }
}

/* ---- A rank ---- */

static void fill(char *arena, uint64_t place_bytes, uint64_t seed, int rank)
{
    float *values = (float *)(void *)arena;
    int64_t *integers = (int64_t *)(void *)(arena + INTEGERS * place_bytes);
    uint16_t *narrow = (uint16_t *)(void *)(arena + NARROW * place_bytes);
    for (uint64_t i = 0; i < place_bytes / sizeof *narrow; i++)
        narrow[i] = sluice_bf16_from_float(value_of(seed + 5, rank, i));
    for (uint64_t i = 0; i < OPERATIONS * place_bytes / sizeof *values; i++) values[i] = value_of(seed, rank, i);
    for (uint64_t i = 0; i < place_bytes / sizeof *integers; i++)
        integers[i] = (int64_t)(i * 2654435761u + (uint64_t)rank * 97 + seed) % 1000003 - 500000;
}

static sluice_status small_delay(void *context)
{
    usleep(*(useconds_t *)context);
    return SLUICE_OK;
}

static int run_round(const test_case *test, sluice_world *world, slc_segment *segment, char **arenas, int round,
                     uint64_t *bytes)
{
    int size = test->size, rank = sluice_world_rank(world);
    slc_comm *comm = slc_world_comm(world);
    uint64_t seed = test->seed * 100 + (uint64_t)round;
    source_of_chance chance = {seed}, own = {seed * 31 + (uint64_t)rank};
    slc_op ops[2 * OPERATIONS];
    size_t count = 0;
    useconds_t delay = (useconds_t)pick(&own, 3000);

    for (int r = 0; r < size; r++) fill(arenas[r], test->place_bytes, seed, r);
    memcpy(segment->base, arenas[rank], PLACES * test->place_bytes);
    CHECK(!sluice_world_barrier(world));
    for (int i = 0; i < OPERATIONS; i++) {
        random_op made = make_op(&chance, size, pick(&chance, 3) ? i : 0, test->place_bytes);
        made.op.src = (char *)segment->base + made.src_at;
        made.op.dst = (char *)segment->base + made.dst_at;
        if (test->delays && pick(&own, 3) == 0)
            ops[count++] = (slc_op){.kind = SLC_CALL, .call = small_delay, .context = &delay, .what = "delay"};
        ops[count++] = made.op;
        if (made.op.kind == SLC_BARRIER) continue;
        *bytes += formula_bytes(&made.op, rank, size);
        for (uint64_t b = 0; b < made.op.block_count; b++) oracle_block(&made, arenas, size, made.op.first_block + b);
    }
    uint32_t index;
    CHECK(!slc_comm_submit(comm, ops, count, &index));
    CHECK(!slc_comm_wait(comm, index + (uint32_t)count));
    CHECK(!sluice_world_barrier(world)); /* peers may still push into this buffer for a later operation */
    for (uint64_t i = 0; i < PLACES * test->place_bytes; i++) {
        if (((const char *)segment->base)[i] == arenas[rank][i]) continue;
        fprintf(stderr, "size %d path %d seed %llu: rank %d differs at byte %llu\n", size, (int)test->path,
                (unsigned long long)seed, rank, (unsigned long long)i);
        return 1;
    }
    CHECK(slc_comm_bytes_sent(comm) == *bytes);
    return 0;
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = test_config(rank, test->size, test->port);
    config.direct = test->path != MESSAGES;
    config.throttle = test->throttle;
    if (test->path == MIXED) setenv("SLUICE_COMM_HOST_ID", rank % 2 ? "odd" : "even", 1);
    sluice_world *world;
    CHECK(!sluice_world_create(&config, &world));

    slc_device *device;
    slc_segment segment;
    CHECK(!slc_device_open("cpu", &device));
    uint64_t data = PLACES * test->place_bytes,
             scratch = slc_comm_scratch_bytes(slc_world_comm(world), test->place_bytes);
    CHECK(!slc_segment_create(device, data + scratch, &segment));
    CHECK(!slc_comm_attach(slc_world_comm(world), &segment, (char *)segment.base + data, scratch));
    char *arenas[RANKS_MAX];
    for (int r = 0; r < test->size; r++) CHECK((arenas[r] = malloc(data)));
    int code = 0;
    uint64_t bytes = 0;
    for (int round = 0; !code && round < test->rounds; round++)
        code = run_round(test, world, &segment, arenas, round, &bytes);
    for (int r = 0; r < test->size; r++) free(arenas[r]);
    CHECK(!slc_comm_attach(slc_world_comm(world), NULL, NULL, 0));
    slc_segment_destroy(&segment);
    slc_device_close(device);
    sluice_world_destroy(world);
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

/* Parts of several chunks, and messages that do not fit a socket's buffer. */
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
                          .place_bytes = LARGE_PLACE};
        assert_int_equal(run_ranks(test.size, body, &test), 0);
    }
}

static void test_direct(void **state)
{
    (void)state;
    for (int size = 1; size <= 5; size++) check_case(size, DIRECT, "", 4, false);
    check_case(3, DIRECT, "", 4, true);
}

static void test_messages(void **state)
{
    (void)state;
    for (int size = 2; size <= 5; size++) check_case(size, MESSAGES, "", 4, false);
    check_case(3, MESSAGES, "", 4, true);
}

static void test_mixed(void **state)
{
    (void)state;
    for (int size = 3; size <= 5; size++) check_case(size, MIXED, "", 4, false);
    check_case(4, MIXED, "", 4, true);
}

static void test_throttled(void **state)
{
    (void)state;
    check_case(3, DIRECT, "10gbit,50us", 2, false);
    check_case(3, MESSAGES, "10gbit,50us", 2, false);
    check_case(3, MIXED, "10gbit,50us", 2, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct),    cmocka_unit_test(test_messages), cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_throttled), cmocka_unit_test(test_large),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
