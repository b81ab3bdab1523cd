/* Compressed exchanges over memory, messages and both: every rank simulates all ranks in its own process, with the
 * kernels that are tested against float64, and gets the same packets bit for bit, in random pieces, over many steps. */
#include "lib/comm/comm_test.h"

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

typedef enum { DIRECT, MESSAGES, MIXED } test_path;

enum { TENSORS = 3 };

typedef struct {
    int size, port, steps;
    test_path path;
    uint64_t seed, most; /* elements */
} test_case;

static uint64_t pick(uint64_t *state, uint64_t below)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static void *zeroed(uint64_t bytes)
{
    void *x = aligned_alloc(64, (bytes + 127) / 64 * 64);
    CHECK(x);
    return memset(x, 0, (bytes + 127) / 64 * 64);
}

/* One tensor: what this rank has in the arena, and all ranks in the simulation. */
typedef struct {
    slc_compress_shape shape;
    uint64_t bytes; /* of all packets */
    char *packets, *results;
    slc_residue server, workers[RANKS_MAX], servers[RANKS_MAX];
    char *simulated[RANKS_MAX], *expected;
    float *gradient, *momentum;
} tensor;

static tensor tensor_create(const slc_comm *comm, uint64_t *chance, const test_case *test, char **arena)
{
    tensor t = {.shape = {1 + pick(chance, test->most), pick(chance, 3) ? 0 : 16 * (1 + pick(chance, 40)),
                          (uint32_t)test->size}};
    uint64_t chunk = slc_compress_chunk(&t.shape), scales = slc_compress_scales(&t.shape), n = t.shape.ranks;
    t.bytes = n * slc_compress_stride(&t.shape);
    t.packets = *arena, *arena += t.bytes;
    t.results = *arena, *arena += slc_comm_exchange_bytes(comm, &t.shape);
    t.server = (slc_residue){zeroed(chunk * 4), zeroed(scales * 4)};
    for (uint64_t r = 0; r < n; r++) {
        t.workers[r] = (slc_residue){zeroed(n * chunk * 4), zeroed(n * scales * 4)};
        t.servers[r] = (slc_residue){zeroed(chunk * 4), zeroed(scales * 4)};
        t.simulated[r] = zeroed(t.bytes);
    }
    t.expected = zeroed(t.bytes);
    t.gradient = zeroed(t.shape.count * 4), t.momentum = zeroed(t.shape.count * 4);
    return t;
}

static void tensor_destroy(tensor *t)
{
    free(t->server.sum), free(t->server.scale), free(t->expected), free(t->gradient), free(t->momentum);
    for (uint32_t r = 0; r < t->shape.ranks; r++) {
        free(t->workers[r].sum), free(t->workers[r].scale), free(t->servers[r].sum), free(t->servers[r].scale);
        free(t->simulated[r]);
    }
}

/* Packets of all ranks, and what the servers make of them. */
static void simulate(tensor *t, slc_stream *stream, int rank, uint64_t seed)
{
    uint64_t stride = slc_compress_stride(&t->shape), chunk = slc_compress_chunk(&t->shape);
    for (uint32_t r = 0; r < t->shape.ranks; r++) {
        uint64_t chance = seed * 1000 + r;
        for (uint64_t i = 0; i < t->shape.count; i++)
            t->gradient[i] = (float)pick(&chance, 1 << 20) * 0x1p-19f - 1 + (i % 16 ? 0.0f : 0.5f);
        const slc_compress_input input = {SLUICE_FP32, SLUICE_FP32, t->gradient, t->momentum, 1, 0.9, 0.1};
        CHECK(!slc_compress_worker(stream, &t->shape, &input, &t->workers[r], t->simulated[r]));
    }
    memcpy(t->packets, t->simulated[rank], t->bytes);
    for (uint32_t k = 0; k < t->shape.ranks; k++) {
        const void *packets[RANKS_MAX];
        int64_t bins[SLC_NORM_BINS] = {0};
        for (uint32_t r = 0; r < t->shape.ranks; r++) packets[r] = t->simulated[r] + k * stride;
        CHECK(
            !slc_compress_server(stream, &t->shape, packets, 0, chunk, &t->servers[k], bins, t->expected + k * stride));
        slc_compress_server_end(&t->shape, &t->servers[k], bins, t->expected + k * stride);
    }
}

/* The results, and what this rank keeps; the gaps between packets belong to nobody. */
static void check_results(const tensor *t, int rank)
{
    uint64_t stride = slc_compress_stride(&t->shape), packet = slc_compress_packet_bytes(&t->shape);
    for (uint32_t k = 0; k < t->shape.ranks; k++)
        CHECK(!memcmp(t->results + k * stride, t->expected + k * stride, packet));
    CHECK(!memcmp(t->server.sum, t->servers[rank].sum, slc_compress_chunk(&t->shape) * 4));
    CHECK(!memcmp(t->server.scale, t->servers[rank].scale, slc_compress_scales(&t->shape) * 4));
}

/* The momenta of the next step are what this one gave. */
static void decompress(tensor *t)
{
    uint64_t chunk = slc_compress_chunk(&t->shape), stride = slc_compress_stride(&t->shape);
    for (uint64_t i = 0; i < t->shape.count; i++) {
        const char *packet = t->results + i / chunk * stride;
        uint64_t at = i % chunk, block = t->shape.scale_elements ? at / t->shape.scale_elements : 0;
        float scale;
        memcpy(&scale, packet + block * 4, sizeof scale);
        uint8_t byte = (uint8_t)packet[slc_compress_scales(&t->shape) * 4 + at / 8];
        t->momentum[i] = byte >> (7 - at % 8) & 1 ? scale : -scale;
    }
}

static int body(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = test_config(rank, test->size, test->port);
    config.direct = test->path != MESSAGES;
    if (test->path == MIXED) setenv("SLUICE_COMM_HOST_ID", rank % 2 ? "odd" : "even", 1);
    sluice_world *world;
    CHECK(!sluice_world_create(&config, &world));
    slc_comm *comm = slc_world_comm(world);
    slc_device *device;
    slc_segment segment;
    slc_stream stream;
    uint64_t chance = test->seed, sent = 0;
    CHECK(!slc_device_open("cpu", &device) && !slc_stream_create(device, 1, &stream));
    CHECK(!slc_segment_create(device, TENSORS * (test->most * 4 + 65536), &segment));
    CHECK(!slc_comm_attach(comm, &segment, NULL, 0));

    tensor tensors[TENSORS];
    char *arena = segment.base;
    for (int i = 0; i < TENSORS; i++) tensors[i] = tensor_create(comm, &chance, test, &arena);
    for (int step = 0; step < test->steps; step++) {
        slc_op ops[TENSORS];
        uint32_t index;
        for (int i = 0; i < TENSORS; i++) {
            tensor *t = &tensors[i];
            simulate(t, &stream, rank, test->seed + (uint64_t)step * TENSORS + (uint64_t)i);
            ops[i] = slc_exchange_op(&t->shape, t->packets, t->results, t->server);
            uint64_t peers = (uint64_t)test->size - 1, all = slc_compress_chunk(&t->shape) * t->shape.ranks;
            uint64_t bits = all * 4 / 32 * 2 * peers / t->shape.ranks; /* (V/32) 2 (N-1)/N, and the scales */
            sent += bits + 2 * peers * 4 * slc_compress_scales(&t->shape);
        }
        CHECK(!slc_comm_submit(comm, ops, TENSORS, &index) && !slc_comm_wait(comm, index + TENSORS));
        for (int i = 0; i < TENSORS; i++) check_results(&tensors[i], rank), decompress(&tensors[i]);
        CHECK(slc_comm_bytes_sent(comm) == sent);
    }
    CHECK(!sluice_world_barrier(world));
    slc_op wrong = slc_exchange_op(&tensors[0].shape, tensors[0].packets, tensors[0].packets, tensors[0].server);
    CHECK(slc_comm_submit(comm, &wrong, 1, NULL) == SLUICE_ERR_ARGUMENT); /* overlap */
    wrong.dst = tensors[0].results, wrong.shape.ranks++;
    CHECK(slc_comm_submit(comm, &wrong, 1, NULL) == SLUICE_ERR_ARGUMENT); /* not of this world */

    for (int i = 0; i < TENSORS; i++) tensor_destroy(&tensors[i]);
    CHECK(!slc_comm_attach(comm, NULL, NULL, 0));
    slc_segment_destroy(&segment);
    slc_stream_destroy(&stream);
    slc_device_close(device);
    sluice_world_destroy(world);
    return 0;
}

static void check_case(int size, test_path path, int steps, uint64_t most)
{
    static uint64_t seed = 1;
    test_case test = {
        .size = size, .port = free_port(), .steps = steps, .path = path, .seed = 1000000 * seed++, .most = most};
    assert_int_equal(run_ranks(size, body, &test), 0);
}

static void test_direct(void **state)
{
    (void)state;
    for (int size = 1; size <= 4; size++) check_case(size, DIRECT, 10, 30000);
}

static void test_messages(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size++) check_case(size, MESSAGES, 10, 30000);
}

static void test_mixed(void **state)
{
    (void)state;
    for (int size = 3; size <= 4; size++) check_case(size, MIXED, 10, 30000);
}

static void test_tiny(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MIXED; path++) check_case(3, (test_path)path, 20, 40);
}

/* Pieces of a chunk; messages beyond a socket's buffer. */
static void test_large(void **state)
{
    (void)state;
    for (int path = DIRECT; path <= MESSAGES; path++) check_case(2, (test_path)path, 2, 3000000);
}

static void test_thousand_steps(void **state)
{
    (void)state;
    check_case(4, DIRECT, 1000, 1500);
    check_case(2, MESSAGES, 1000, 1500);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct), cmocka_unit_test(test_messages), cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_tiny),   cmocka_unit_test(test_large),    cmocka_unit_test(test_thousand_steps),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
