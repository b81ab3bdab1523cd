/* Exchanges of groups whose ranks all live in this process, and whose packets are carried by copies: every rank's
 * results and servers must be those of a plain exchange, on the host and on a GPU to the same bits. */
#include "lib/comm/lane/serve.h"

#include "lib/comm/lane/geometry.h"

#include "tests/support/kernels/arrays.h"

enum { MOST_RANKS = 4, TENSORS = 5, STEPS = 3 };

typedef struct {
    char *worker_memory, *server_memory, *packets, *results; /* results, and behind them what arrives */
    slc_residue workers[TENSORS], servers[TENSORS];
} one_rank;

typedef struct {
    slc_compress_group group;
    sluice_stream stream;
    uint64_t all; /* bytes of all packets */
    one_rank ranks[MOST_RANKS];
    sluice_step_words *words;
} world;

static world world_create(uint32_t ranks)
{
    const uint64_t counts[TENSORS] = {700, 0, 1, 4099, 65};
    slc_compress_shape shapes[TENSORS];
    world w = {.stream = test_stream(1), .words = test_zeros(sizeof *w.words)};
    for (int i = 0; i < TENSORS; i++) shapes[i] = (slc_compress_shape){counts[i], 0, ranks};
    assert_int_equal(slc_compress_group_init(&w.group, TENSORS, shapes), SLUICE_OK);
    w.all = ranks * w.group.stride;
    for (uint32_t r = 0; r < ranks; r++) {
        one_rank *one = &w.ranks[r];
        one->worker_memory = test_zeros(slc_compress_group_worker_bytes(&w.group));
        one->server_memory = test_zeros(slc_compress_group_server_bytes(&w.group));
        one->packets = test_zeros(w.all), one->results = test_zeros(2 * w.all);
        slc_compress_group_residues(&w.group, one->worker_memory, one->server_memory, one->workers, one->servers);
    }
    return w;
}

static void world_destroy(world *w)
{
    for (uint32_t r = 0; r < w->group.shapes[0].ranks; r++) {
        test_release(w->ranks[r].worker_memory), test_release(w->ranks[r].server_memory);
        test_release(w->ranks[r].packets), test_release(w->ranks[r].results);
    }
    test_release(w->words);
    slc_compress_group_fini(&w->group);
    slc_stream_destroy(&w->stream);
}

static void compress_all(world *w, uint64_t step)
{
    for (uint32_t r = 0; r < w->group.shapes[0].ranks; r++)
        for (uint32_t i = 0; i < TENSORS; i++) {
            const slc_compress_shape *shape = &w->group.shapes[i];
            float *x = test_uniform_floats(shape->count, -1, 1, 100 * step + 10 * r + i);
            const slc_compress_input input = {.gradient = x, .gradient_factor = 1, .rest = 1};
            assert_int_equal(slc_compress_worker(&w->stream, shape, &input, &w->ranks[r].workers[i],
                                                 w->ranks[r].packets + w->group.offsets[i], w->group.stride),
                             SLUICE_OK);
            test_release(x);
        }
}

static slc_op op_of(const world *w, uint32_t rank)
{
    const one_rank *one = &w->ranks[rank];
    slc_op op = slc_exchange_op(&w->group, one->packets, one->results, one->servers);
    op.words = w->words;
    return op;
}

/* Carries packets and results as the groups of a transport do. */
static void exchange_all(world *w)
{
    const uint32_t ranks = w->group.shapes[0].ranks;
    const uint64_t stride = w->group.stride;
    for (uint32_t r = 0; r < ranks; r++) {
        const slc_op op = op_of(w, r);
        for (uint32_t from = 0; from < ranks; from++)
            if (from != r)
                memcpy(slc_exchange_arrival(&op, (int)from), w->ranks[from].packets + r * stride,
                       w->group.packet_bytes);
        assert_int_equal(slc_exchange_serve(&w->stream, &op, (int)r), SLUICE_OK);
    }
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t from = 0; from < ranks; from++)
            memcpy(w->ranks[r].results + from * stride, w->ranks[from].results + from * stride, stride);
}

/* Compares with a chunk served by the kernels on the host, from residues as they were. */
static void check_chunk(const world *w, uint32_t rank, uint32_t i, const float *sum, float scale)
{
    const slc_compress_shape *shape = &w->group.shapes[i];
    const uint64_t chunk = slc_compress_chunk(shape), bytes = slc_compress_packet_bytes(shape);
    const uint64_t at = rank * w->group.stride + w->group.offsets[i];
    const void *packets[MOST_RANKS];
    int64_t bins[SLC_NORM_BINS] = {0};
    float *own = test_copy(chunk, sum), *packet = test_floats(bytes);
    slc_device *device;
    sluice_stream stream;
    for (uint32_t r = 0; r < shape->ranks; r++) packets[r] = w->ranks[r].packets + at;
    const slc_residue server = {own, &scale, NULL};
    const slc_compress_served served = {shape, packets, &server, bins, packet, NULL};
    assert_int_equal(slc_device_open("cpu", &device), SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
    assert_int_equal(slc_compress_server(&stream, &served, 0, chunk), SLUICE_OK);
    assert_int_equal(slc_compress_server_end(&stream, &served), SLUICE_OK);
    for (uint32_t r = 0; r < shape->ranks; r++) assert_memory_equal(w->ranks[r].results + at, packet, bytes);
    assert_memory_equal(w->ranks[rank].servers[i].sum, own, chunk * sizeof *own);
    assert_memory_equal(w->ranks[rank].servers[i].scale, &scale, sizeof scale);
    slc_stream_destroy(&stream), slc_device_close(device);
    test_release(own), test_release(packet);
}

static void servers_are_as_on_the_host(void **state)
{
    (void)state;
    TEST_EACH_WAY(way)
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++) {
        world w = world_create(ranks);
        for (uint64_t step = 0; step < STEPS; step++) {
            float *sum[MOST_RANKS][TENSORS], scale[MOST_RANKS][TENSORS];
            compress_all(&w, step);
            for (uint32_t r = 0; r < ranks; r++)
                for (uint32_t i = 0; i < TENSORS; i++) {
                    const slc_residue *server = &w.ranks[r].servers[i];
                    sum[r][i] = test_copy(slc_compress_chunk(&w.group.shapes[i]), server->sum);
                    scale[r][i] = w.group.shapes[i].count ? *server->scale : 0;
                }
            exchange_all(&w);
            for (uint32_t r = 0; r < ranks; r++)
                for (uint32_t i = 0; i < TENSORS; i++) {
                    if (w.group.shapes[i].count) check_chunk(&w, r, i, sum[r][i], scale[r][i]);
                    test_release(sum[r][i]);
                }
        }
        world_destroy(&w);
    }
}

static void skipped_steps_change_no_server(void **state)
{
    (void)state;
    TEST_EACH_WAY(way)
    {
        world w = world_create(2);
        const uint64_t bytes = slc_compress_group_server_bytes(&w.group);
        compress_all(&w, 1), exchange_all(&w);
        float *before = test_bytes(bytes);
        memcpy(before, w.ranks[0].server_memory, bytes);
        compress_all(&w, 2);
        w.words->skip = 1;
        exchange_all(&w);
        for (uint32_t i = 0; i < TENSORS; i++) {
            const slc_residue *server = &w.ranks[0].servers[i];
            const char *was = (const char *)before + ((const char *)server->sum - w.ranks[0].server_memory);
            assert_memory_equal(server->sum, was, slc_compress_chunk(&w.group.shapes[i]) * sizeof(float));
        }
        test_release(before);
        world_destroy(&w);
    }
}

static void refuses_what_it_cannot_serve(void **state)
{
    (void)state;
    world w = world_create(2);
    slc_compress_group many = {0};
    const slc_compress_shape shape = {100, 0, SLC_COMPRESS_CUDA_MOST + 1};
    assert_int_equal(slc_compress_group_init(&many, 1, &shape), SLUICE_OK);
    const slc_op wide = slc_exchange_op(&many, w.ranks[0].packets, w.ranks[0].results, w.ranks[0].servers);
    assert_int_equal(slc_exchange_serve(&w.stream, &wide, 0), SLUICE_ERR_UNSUPPORTED);
    slc_compress_group_fini(&many);
    world_destroy(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_are_as_on_the_host),
        cmocka_unit_test(skipped_steps_change_no_server),
        cmocka_unit_test(refuses_what_it_cannot_serve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
