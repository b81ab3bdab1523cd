/* The transforms' kernels, in their form for the host: one-bit exchanges have the bits of the host's compression
 * (compress_test.c holds that to float64), and pieces come back from the staging as they went. */
#include "plugins/nccl/shim/transforms/kernels.h"

#include "lib/base/integer.h"
#include "lib/kernels/compress/compress.h"
#include "lib/kernels/compress/flat.h"
#include "tests/support/kernels/arrays.h"
#include "tests/nccl/bed/hostcuda/hostcuda.h"

enum { MOST_RANKS = 5, MOST_KERNELS = 8, SCALE_ELEMENTS = 2048 };

/* ---- Launching, in the place of tests/nccl/bed/hostcuda ---- */

static struct {
    const char *name;
    hostcuda_kernel *kernel;
    size_t bytes;
} kernels[MOST_KERNELS];
static int kernel_count;

void hostcuda_register_kernel(const char *name, hostcuda_kernel *kernel, const size_t *argument_bytes)
{
    kernels[kernel_count].name = name, kernels[kernel_count].kernel = kernel;
    kernels[kernel_count++].bytes = argument_bytes[0];
}

static void launch(const char *name, uint64_t blocks, uint32_t slices, uint32_t threads, uint32_t shared,
                   void *arguments, size_t bytes)
{
    const hostcuda_launch l = {.name = name,
                               .grid = {(unsigned)blocks, slices, 1},
                               .block = {threads, 1, 1},
                               .shared_bytes = shared,
                               .arguments = &arguments};
    for (int k = 0; k < kernel_count; k++)
        if (!strcmp(kernels[k].name, name)) {
            assert_int_equal(kernels[k].bytes, bytes);
            kernels[k].kernel(&l);
            return;
        }
    fail_msg("no kernel is called %s", name);
}

/* ---- Exchanges ---- */

static void *zeroed(uint64_t bytes)
{
    void *x = aligned_alloc(64, slc_round_up(bytes + 1, 64));
    assert_non_null(x);
    memset(x, 0, slc_round_up(bytes + 1, 64));
    return x;
}

typedef struct {
    slc_residue worker, server;
    unsigned char *packets, *results;
    float *out;
} side; /* what one way of computing has for a rank */

typedef struct {
    slc_compress_shape shape;
    slc_compress_cuda_shape gpu_shape;
    uint64_t all;
    uint32_t shift; /* elements by which x and out are off a multiple of 16 bytes */
    sluice_stream stream;
    float *x[MOST_RANKS];
    side host[MOST_RANKS], gpu[MOST_RANKS];
} exchange;

static side side_create(const exchange *e)
{
    const slc_compress_cuda_shape *s = &e->gpu_shape;
    return (side){{zeroed(e->all * 4), zeroed(s->ranks * s->scales * 4), NULL},
                  {zeroed(s->chunk * 4), zeroed(s->scales * 4), NULL},
                  zeroed(s->ranks * s->stride),
                  zeroed(s->ranks * s->stride),
                  zeroed((s->count + 4) * 4)};
}

static void side_destroy(side *s)
{
    free(s->worker.sum), free(s->worker.scale), free(s->server.sum), free(s->server.scale);
    free(s->packets), free(s->results), free(s->out);
}

static exchange exchange_create(uint32_t ranks, uint64_t count, uint64_t scale_elements, uint32_t shift)
{
    exchange e = {.shape = {count, scale_elements, ranks}, .shift = shift, .stream = test_stream(1)};
    const uint64_t chunk = slc_compress_chunk(&e.shape);
    e.gpu_shape = (slc_compress_cuda_shape){
        count, chunk, slc_compress_scales(&e.shape), slc_compress_stride(&e.shape), (uint32_t)scale_elements, ranks};
    e.all = ranks * chunk;
    for (uint32_t r = 0; r < ranks; r++) {
        e.x[r] = zeroed((count + 4) * 4);
        e.host[r] = side_create(&e), e.gpu[r] = side_create(&e);
    }
    return e;
}

static void exchange_destroy(exchange *e)
{
    for (uint32_t r = 0; r < e->shape.ranks; r++) {
        free(e->x[r]);
        side_destroy(&e->host[r]), side_destroy(&e->gpu[r]);
    }
    slc_stream_destroy(&e->stream);
}

/* Draws gradients whose sizes differ much between blocks; with `bad` one of rank 0's is not finite. */
static void draw(exchange *e, uint64_t seed, bool bad)
{
    for (uint32_t r = 0; r < e->shape.ranks; r++) {
        uint64_t chance = 1000 * seed + r;
        float *x = e->x[r] + e->shift;
        for (uint64_t i = 0; i < e->shape.count; i++)
            x[i] = test_uniform(&chance, -1, 1) * (i / 700 % 3 ? 1e-4f : 3.0f) * (i % 37 ? 1.0f : 0.0f);
    }
    if (bad) e->x[0][e->shift + e->shape.count / 2] = seed % 2 ? INFINITY : NAN;
}

static void exchange_on_host(exchange *e, float factor)
{
    const uint64_t stride = e->gpu_shape.stride;
    for (uint32_t r = 0; r < e->shape.ranks; r++) {
        const slc_compress_input input = {.gradient = e->x[r] + e->shift, .gradient_factor = 1, .factor = 1, .rest = 1};
        assert_int_equal(
            slc_compress_worker(&e->stream, &e->shape, &input, &e->host[r].worker, e->host[r].packets, stride),
            SLUICE_OK);
    }
    for (uint32_t k = 0; k < e->shape.ranks; k++) {
        const void *packets[MOST_RANKS];
        int64_t bins[SLC_NORM_BINS] = {0};
        unsigned char *result = e->host[0].results + k * stride;
        for (uint32_t r = 0; r < e->shape.ranks; r++) packets[r] = e->host[r].packets + k * stride;
        const slc_compress_served chunk = {&e->shape, packets, &e->host[k].server, bins, result, NULL};
        assert_int_equal(slc_compress_server(&e->stream, &chunk, 0, e->gpu_shape.chunk), SLUICE_OK);
        assert_int_equal(slc_compress_server_end(&e->stream, &chunk), SLUICE_OK);
    }
    assert_int_equal(
        slc_flat_read(&e->stream,
                      &(slc_compress_results){
                          .shape = &e->shape, .packets = e->host[0].results, .stride = stride, .count = e->shape.count},
                      NULL, e->host[0].out + e->shift),
        SLUICE_OK);
    for (uint64_t i = 0; i < e->shape.count; i++) e->host[0].out[e->shift + i] *= factor;
}

static void exchange_on_gpu(exchange *e, float factor)
{
    const uint64_t stride = e->gpu_shape.stride;
    const uint32_t n = e->shape.ranks;
    for (uint32_t r = 0; r < n; r++) {
        side *s = &e->gpu[r];
        slc_compress_cuda_worker w = {e->gpu_shape, e->x[r] + e->shift, s->worker.sum, s->worker.scale, s->packets};
        launch(SHIM_KERNEL_WORKER, n * e->gpu_shape.scales, 1, SLC_COMPRESS_CUDA_THREADS, SLC_COMPRESS_CUDA_SHARED, &w,
               sizeof w);
    }
    unsigned char *arrived = zeroed(n * stride);
    for (uint32_t k = 0; k < n; k++) {
        side *s = &e->gpu[k];
        memset(arrived, 0xff, n * stride);
        for (uint32_t r = 0; r < n; r++)
            if (r != k) memcpy(arrived + r * stride, e->gpu[r].packets + k * stride, stride);
        slc_compress_cuda_server v = {e->gpu_shape,
                                      arrived,
                                      s->packets + k * stride,
                                      s->server.sum,
                                      s->server.scale,
                                      e->gpu[0].results + k * stride,
                                      k};
        launch(SHIM_KERNEL_SERVER, e->gpu_shape.scales, 1, SLC_COMPRESS_CUDA_THREADS, SLC_COMPRESS_CUDA_SHARED, &v,
               sizeof v);
    }
    free(arrived);
    slc_compress_cuda_results r = {e->gpu_shape, e->gpu[0].results, e->gpu[0].out + e->shift, factor};
    launch(SHIM_KERNEL_RESULTS, 3, 1, SLC_COMPRESS_CUDA_THREADS, 0, &r, sizeof r);
}

static void same_bytes(const exchange *e, const char *what, uint64_t bytes, const void *host, const void *gpu)
{
    if (memcmp(host, gpu, bytes))
        fail_msg("%s: %u ranks, %llu elements, a scale for %llu: the kernels' bits differ from the host's", what,
                 e->shape.ranks, (unsigned long long)e->shape.count, (unsigned long long)e->shape.scale_elements);
}

static void check_exchange(uint32_t ranks, uint64_t count, uint64_t scale_elements, uint32_t shift)
{
    exchange e = exchange_create(ranks, count, scale_elements, shift);
    const slc_compress_cuda_shape *s = &e.gpu_shape;
    for (uint64_t step = 0; step < 4; step++) { /* the third one fails, and the fourth is whole again */
        const float factor = step % 2 ? 1.0f : (float)ranks;
        draw(&e, step, step == 2);
        exchange_on_host(&e, factor), exchange_on_gpu(&e, factor);
        for (uint32_t r = 0; r < ranks; r++) {
            const side *host = &e.host[r], *gpu = &e.gpu[r];
            same_bytes(&e, "packets", ranks * s->stride, host->packets, gpu->packets);
            same_bytes(&e, "a worker's scales", ranks * s->scales * 4, host->worker.scale, gpu->worker.scale);
            same_bytes(&e, "a server's scales", s->scales * 4, host->server.scale, gpu->server.scale);
            if (step == 2) continue; /* sums under a failed scale are NaN of any sign */
            same_bytes(&e, "a worker's sums", e.all * 4, host->worker.sum, gpu->worker.sum);
            same_bytes(&e, "a server's sums", s->chunk * 4, host->server.sum, gpu->server.sum);
        }
        same_bytes(&e, "results", ranks * s->stride, e.host[0].results, e.gpu[0].results);
        same_bytes(&e, "the sum", count * 4, e.host[0].out + shift, e.gpu[0].out + shift);
    }
    exchange_destroy(&e);
}

static void exchanges_have_the_hosts_bits(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 15, 64, 1003, 20011};
    const uint64_t scale_elements[] = {16, 80, SCALE_ELEMENTS};
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (size_t i = 0; i < TEST_COUNT_OF(counts); i++)
            for (size_t j = 0; j < TEST_COUNT_OF(scale_elements); j++)
                if (counts[i] / scale_elements[j] < 300)
                    check_exchange(ranks, counts[i], scale_elements[j], (ranks + (uint32_t)i) % 4);
}

/* ---- Pieces ---- */

static void pieces_come_back(void **state)
{
    (void)state;
    uint64_t chance = 3;
    unsigned char *memory = zeroed(SHIM_PIECES * 40000ull), *copy = zeroed(SHIM_PIECES * 40000ull);
    unsigned char *staging = zeroed(SHIM_PIECES * 40000ull);
    slc_shim_pieces pieces = {.staging = staging};
    uint64_t at = 0, place = 0;
    for (uint32_t i = 0; i < SHIM_PIECES; i++) {
        const uint32_t unit = 1u << test_random(&chance) % 5, slices = test_random(&chance) % 8 ? 1 : 4;
        at = slc_round_up(at + 1, unit);
        const uint32_t bytes = unit * (1 + (uint32_t)(test_random(&chance) % (9000 * slices / unit)));
        pieces.piece[i] = (slc_shim_piece){memory + at, bytes, (uint32_t)place};
        at += bytes, place += slc_round_up(bytes, SHIM_PIECE_UNIT) / SHIM_PIECE_UNIT;
    }
    for (uint64_t i = 0; i < at; i++) memory[i] = (unsigned char)test_random(&chance);
    memcpy(copy, memory, at);
    launch(SHIM_KERNEL_GATHER, SHIM_PIECES, 5, SHIM_PIECE_THREADS, 0, &pieces, sizeof pieces);
    for (uint32_t i = 0; i < SHIM_PIECES; i++) {
        const slc_shim_piece *p = &pieces.piece[i];
        assert_memory_equal(staging + (uint64_t)p->place * SHIM_PIECE_UNIT, p->at, p->bytes);
        memset(p->at, 0, p->bytes);
    }
    launch(SHIM_KERNEL_SCATTER, SHIM_PIECES, 2, SHIM_PIECE_THREADS, 0, &pieces, sizeof pieces);
    assert_memory_equal(memory, copy, at); /* what lies between pieces too */
    free(memory), free(copy), free(staging);
}

/* A grid has at most 65535 blocks along y; SLUICE_SHIM_FUSE takes calls of up to 1 GiB. */
static void a_grid_is_never_too_large(void **state)
{
    (void)state;
    assert_int_equal(slc_shim_slices(1), 1);
    assert_int_equal(slc_shim_slices(SHIM_PIECE_SLICE), 1);
    assert_int_equal(slc_shim_slices(SHIM_PIECE_SLICE + 1), 2);
    assert_int_equal(slc_shim_slices(65535u * SHIM_PIECE_SLICE), 65535);
    assert_int_equal(slc_shim_slices(65535u * SHIM_PIECE_SLICE + 1), 65535);
    assert_int_equal(slc_shim_slices(1u << 30), 65535);
    assert_int_equal(slc_shim_slices(UINT32_MAX), 65535);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grid_is_never_too_large),
        cmocka_unit_test(exchanges_have_the_hosts_bits),
        cmocka_unit_test(pieces_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
