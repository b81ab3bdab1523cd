/* Large float sums of several buffers over several steps, in place and not, in a group, alone, and on two streams. With
 * SLUICE_SHIM_COMPRESS each result must be, to the bit, what the rules of lib/kernels/compress/compress.h make of all
 * ranks' inputs and of what was lost in earlier steps; without it, nearly the exact sum. */
#include "lib/kernels/norm/norm_result.h"
#include "tests/nccl/programs/shared/ranks.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 4, STEPS = 4, SCALE_ELEMENTS = 2048, MOST_RANKS = 8 };
static const size_t counts[BUFFERS] = {1 << 20, 1003, 30000, 8192};

/* The errors that compression leaves of a buffer: those of each worker, and those of all servers, padding included. */
typedef struct {
    float *worker[MOST_RANKS], *server;
} losses;

typedef struct {
    slc_rank *rank;
    ncclComm_t communicator;
    cudaStream_t streams[2];
    float *input[BUFFERS], *output[BUFFERS], *host;
    losses lost[BUFFERS];
} exchange;

static float drawn(uint64_t *state, size_t i)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return ((float)((z ^ z >> 31) >> 40) * 0x1p-23f - 1.0f) * (i / 5000 % 2 ? 0.001f : 1.0f);
}

static void give(float *x, int step, int buffer, int rank)
{
    uint64_t state = (uint64_t)((step * BUFFERS + buffer) * MOST_RANKS + rank) << 32;
    for (size_t i = 0; i < counts[buffer]; i++) x[i] = drawn(&state, i);
}

/* ---- The rules, one element after the other ---- */

/* Returns the scale of up to SCALE_ELEMENTS sums, and leaves in them what it loses; `sign` gets +1 and -1. */
static float compress_block(float *sum, float *sign, size_t count)
{
    int64_t bins[SLC_NORM_BINS] = {0};
    for (size_t four = 0; four < count; four += 64) {
        double squares = 0;
        for (size_t grain = four; grain < four + 64 && grain < count; grain += 16) {
            double v[16];
            for (size_t i = 0; i < 16; i++)
                v[i] = grain + i < count ? (double)sum[grain + i] * (double)sum[grain + i] : 0;
            for (int width = 8; width; width /= 2)
                for (int i = 0; i < width; i++) v[i] += v[i + width];
            squares += v[0];
        }
        norm_bins_add(bins, squares);
    }
    const float scale = (float)(norm_result(bins) / sqrt((double)count));
    for (size_t i = 0; i < count; i++) {
        sign[i] = sum[i] < 0 ? -1.0f : 1.0f;
        sum[i] -= sign[i] * scale;
    }
    return scale;
}

/* Adds to each element its rank's share, in rank order, and replaces the sums by the result. */
static void reduce_by_rules(losses *lost, int ranks, int step, int buffer, float factor, float *out)
{
    const size_t n = (size_t)ranks, even = n & -n, unit = n * (even >= 8 ? n : n * 8 / even); /* n * lcm(n, 8) */
    const size_t count = counts[buffer];
    const size_t all = (count + unit - 1) / unit * unit, chunk = all / n;
    float *x = calloc(all, sizeof *x), *mean = calloc(all, sizeof *mean), *sign = calloc(all, sizeof *sign);
    CHECK(x && mean && sign, "no memory");
    if (!lost->server) lost->server = calloc(all, sizeof(float));
    for (int r = 0; r < ranks; r++) {
        if (!lost->worker[r]) lost->worker[r] = calloc(all, sizeof(float));
        CHECK(lost->server && lost->worker[r], "no memory");
        give(x, step, buffer, r);
        for (size_t i = 0; i < all; i++) lost->worker[r][i] += x[i];
        for (size_t at = 0, size; at < all; at += size) {
            const size_t left = chunk - at % chunk;
            size = left < SCALE_ELEMENTS ? left : SCALE_ELEMENTS;
            const float share = compress_block(lost->worker[r] + at, sign + at, size) * (float)(1.0 / ranks);
            for (size_t i = at; i < at + size; i++) mean[i] = r ? mean[i] + sign[i] * share : sign[i] * share;
        }
    }
    for (size_t i = 0; i < all; i++) lost->server[i] = mean[i] + lost->server[i];
    for (size_t at = 0, size; at < all; at += size) {
        const size_t left = chunk - at % chunk;
        size = left < SCALE_ELEMENTS ? left : SCALE_ELEMENTS;
        const float scale = compress_block(lost->server + at, sign + at, size) * factor;
        for (size_t i = at; i < at + size && i < count; i++) out[i] = sign[i] * scale;
    }
    free(x), free(mean), free(sign);
}

static void reduce_exactly(int ranks, int step, int buffer, float factor, float *out)
{
    const size_t count = counts[buffer];
    float *x = malloc(count * sizeof *x);
    CHECK(x, "no memory");
    memset(out, 0, count * sizeof *out);
    for (int r = 0; r < ranks; r++) {
        give(x, step, buffer, r);
        for (size_t i = 0; i < count; i++) out[i] += x[i] * (factor / (float)ranks);
    }
    free(x);
}

/* ---- The program ---- */

static float factor_of(const exchange *e, int buffer)
{
    return buffer % 2 ? 1.0f : (float)e->rank->size;
}

static void reduce_buffer(exchange *e, int buffer)
{
    NCCL(ncclAllReduce(e->input[buffer], e->output[buffer], counts[buffer], ncclFloat32, buffer % 2 ? ncclAvg : ncclSum,
                       e->communicator, e->streams[buffer / 2]));
    e->rank->calls++;
}

static void check_buffer(exchange *e, int step, int buffer, bool compressed)
{
    const size_t count = counts[buffer];
    float *expected = malloc(count * sizeof *expected);
    CHECK(expected, "no memory");
    if (compressed)
        reduce_by_rules(&e->lost[buffer], e->rank->size, step, buffer, factor_of(e, buffer), expected);
    else
        reduce_exactly(e->rank->size, step, buffer, factor_of(e, buffer), expected);
    CUDA(cudaMemcpy(e->host, e->output[buffer], count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) {
        const double off = fabs((double)e->host[i] - (double)expected[i]);
        CHECK(compressed ? !memcmp(&e->host[i], &expected[i], sizeof(float)) : off <= 1e-5,
              "rank %d, step %d, buffer %d: element %zu is %.9g, not %.9g", e->rank->rank, step, buffer, i,
              (double)e->host[i], (double)expected[i]);
    }
    free(expected);
}

static void run_step(exchange *e, int step, bool compressed)
{
    for (int b = 0; b < BUFFERS; b++) {
        give(e->host, step, b, e->rank->rank);
        CUDA(cudaMemcpy(e->input[b], e->host, counts[b] * sizeof(float), cudaMemcpyHostToDevice));
    }
    CUDA(cudaStreamSynchronize(NULL)); /* a copy from memory that is not pinned may return before it has arrived */
    if (step % 2) NCCL(ncclGroupStart());
    for (int b = 0; b < BUFFERS; b++) reduce_buffer(e, b);
    if (step % 2) NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(e->streams[0]));
    CUDA(cudaStreamSynchronize(e->streams[1]));
    for (int b = 0; b < BUFFERS; b++) check_buffer(e, step, b, compressed);
}

static void run(slc_rank *rank)
{
    exchange e = {.rank = rank};
    NCCL(ncclCommInitRank(&e.communicator, rank->size, rank->ids[0], rank->rank));
    for (int s = 0; s < 2; s++) CUDA(cudaStreamCreateWithFlags(&e.streams[s], cudaStreamNonBlocking));
    e.host = malloc(counts[0] * sizeof(float));
    CHECK(e.host, "no memory");
    for (int b = 0; b < BUFFERS; b++) {
        CUDA(cudaMalloc((void **)&e.input[b], counts[b] * sizeof(float)));
        e.output[b] = e.input[b];
        if (b == 2) CUDA(cudaMalloc((void **)&e.output[b], counts[b] * sizeof(float)));
    }
    for (int step = 0; step < STEPS; step++) run_step(&e, step, getenv("SLUICE_SHIM_COMPRESS") != NULL);
    for (int b = 0; b < BUFFERS; b++) {
        CUDA(cudaFree(e.input[b]));
        if (b == 2) CUDA(cudaFree(e.output[b]));
        for (int r = 0; r < MOST_RANKS; r++) free(e.lost[b].worker[r]);
        free(e.lost[b].server);
    }
    for (int s = 0; s < 2; s++) CUDA(cudaStreamDestroy(e.streams[s]));
    NCCL(ncclCommDestroy(e.communicator));
    free(e.host);
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, run);
}
