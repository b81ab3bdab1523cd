/* Measuring a collective. Elements are whole numbers small enough that their sums are exact, so a result is right or
 * wrong to the bit. */
#include "bench/perf_measure.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>

enum { GRAIN = 16, ROOT = 0 };

struct slc_perf {
    sluice_world *world;
    slc_comm *comm;
    slc_device *device;
    slc_segment segment;
    slc_perf_config config;
    int rank;
    uint64_t ranks, block_elements;
    float *whole, *shard; /* in the segment, of most_bytes each */
    slc_op *ops;          /* as many as are submitted at once */
};

/* ---- Set up ---- */

static uint64_t round_elements(const slc_perf *perf, uint64_t bytes)
{
    uint64_t step = GRAIN * perf->ranks, elements = bytes / sizeof(float) / step * step;
    return elements ? elements : step;
}

static sluice_status make_segment(slc_perf *perf)
{
    uint64_t buffer = round_elements(perf, perf->config.most_bytes) * sizeof(float);
    uint64_t scratch = slc_comm_scratch_bytes(perf->comm, perf->block_elements * sizeof(float));
    uint64_t line = 4096, stride = (buffer + line - 1) / line * line;
    sluice_status status = slc_segment_create(perf->device, 2 * stride + scratch, &perf->segment);
    if (status) return status;
    slc_segment_populate(&perf->segment);
    char *base = perf->segment.base;
    perf->whole = (float *)base;
    perf->shard = (float *)(base + stride);
    return slc_comm_attach(perf->comm, &perf->segment, base + 2 * stride, scratch);
}

sluice_status slc_perf_open(sluice_world *world, const slc_perf_config *config, slc_perf **out)
{
    slc_perf *perf = calloc(1, sizeof *perf);
    if (!perf) return slc_error(SLUICE_ERR_MEMORY, "perf");
    perf->world = world;
    perf->comm = slc_world_comm(world);
    perf->config = *config;
    perf->rank = sluice_world_rank(world);
    perf->ranks = (uint64_t)sluice_world_size(world);
    perf->block_elements = round_elements(perf, config->block_bytes);
    uint32_t most = config->iterations > config->warm_up ? config->iterations : config->warm_up;
    perf->ops = calloc((size_t)most + 1, sizeof *perf->ops);
    sluice_status status = perf->ops ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%u operations", most);
    if (!status) status = slc_device_open("cpu", &perf->device);
    if (!status) status = make_segment(perf);
    if (status) {
        slc_perf_close(perf);
        return status;
    }
    *out = perf;
    return SLUICE_OK;
}

void slc_perf_close(slc_perf *perf)
{
    if (!perf) return;
    if (perf->segment.base) {
        (void)slc_comm_attach(perf->comm, NULL, NULL, 0);
        slc_segment_destroy(&perf->segment);
    }
    if (perf->device) slc_device_close(perf->device);
    free(perf->ops);
    free(perf);
}

/* ---- Running ---- */

static slc_op describe(const slc_perf *perf, uint64_t elements, float scale)
{
    slc_op op = {.kind = perf->config.kind,
                 .dtype = SLC_FLOAT32,
                 .elements = elements,
                 .block_elements = perf->block_elements,
                 .block_count = (elements + perf->block_elements - 1) / perf->block_elements,
                 .src = perf->whole,
                 .dst = perf->whole,
                 .scale = scale,
                 .root = ROOT,
                 .what = "perf"};
    if (op.kind == SLC_REDUCE_SCATTER) {
        op.dst = perf->shard;
        op.dst_layout = SLC_SHARD;
    } else if (op.kind == SLC_ALL_GATHER) {
        op.src = perf->shard;
        op.src_layout = SLC_SHARD;
    }
    return op;
}

static sluice_status run_operations(slc_perf *perf, const slc_op *op, uint32_t count)
{
    uint32_t index;
    if (!count) return SLUICE_OK;
    for (uint32_t i = 0; i < count; i++) perf->ops[i] = *op;
    sluice_status status = slc_comm_submit(perf->comm, perf->ops, count, &index);
    return status ? status : slc_comm_wait(perf->comm, index + count);
}

static sluice_status time_operations(slc_perf *perf, const slc_op *op, double *mean_s)
{
    sluice_status status = run_operations(perf, op, perf->config.warm_up);
    if (!status) status = sluice_world_barrier(perf->world);
    uint64_t start = slc_clock_ns();
    if (!status) status = run_operations(perf, op, perf->config.iterations);
    *mean_s = slc_seconds(slc_clock_ns() - start) / perf->config.iterations;
    if (!status) status = sluice_world_all_reduce(perf->world, mean_s, 1);
    *mean_s /= (double)perf->ranks;
    return status;
}

/* ---- Checking ---- */

static float value_of(uint64_t rank, uint64_t element)
{
    return (float)((int)((element * 31 + rank * 17) % 251) - 100);
}

static float sum_of(const slc_perf *perf, uint64_t element)
{
    float sum = 0;
    for (uint64_t r = 0; r < perf->ranks; r++) sum += value_of(r, element);
    return sum;
}

/* Element `k` of this rank's shard layout is this element of the whole one. */
static uint64_t owned_element(const slc_perf *perf, uint64_t elements, uint64_t k)
{
    uint64_t block = k / (perf->block_elements / perf->ranks), begin = block * perf->block_elements;
    uint64_t length = elements - begin < perf->block_elements ? elements - begin : perf->block_elements;
    return begin + (uint64_t)perf->rank * (length / perf->ranks) + (k - begin / perf->ranks);
}

static void fill_sources(slc_perf *perf, uint64_t elements)
{
    slc_op_kind kind = perf->config.kind;
    bool gives = kind != SLC_BROADCAST || perf->rank == ROOT;
    for (uint64_t i = 0; i < elements; i++)
        perf->whole[i] = kind == SLC_ALL_GATHER || !gives ? NAN : value_of((uint64_t)perf->rank, i);
    for (uint64_t k = 0; k < elements / perf->ranks; k++)
        perf->shard[k] = kind == SLC_ALL_GATHER ? value_of(ROOT, owned_element(perf, elements, k)) : NAN;
}

static uint64_t count_wrong(const slc_perf *perf, uint64_t elements)
{
    uint64_t wrong = 0;
    switch (perf->config.kind) {
    case SLC_REDUCE_SCATTER:
        for (uint64_t k = 0; k < elements / perf->ranks; k++)
            wrong += !(perf->shard[k] == sum_of(perf, owned_element(perf, elements, k)));
        break;
    case SLC_ALL_REDUCE:
        for (uint64_t i = 0; i < elements; i++) wrong += !(perf->whole[i] == sum_of(perf, i));
        break;
    default: /* gather and broadcast: everyone has the root's values */
        for (uint64_t i = 0; i < elements; i++) wrong += !(perf->whole[i] == value_of(ROOT, i));
    }
    return wrong;
}

static sluice_status check(slc_perf *perf, uint64_t elements, uint64_t *wrong)
{
    slc_op op = describe(perf, elements, 1);
    fill_sources(perf, elements);
    sluice_status status = run_operations(perf, &op, 1);
    double sum = status ? 0 : (double)count_wrong(perf, elements);
    if (!status) status = sluice_world_all_reduce(perf->world, &sum, 1);
    *wrong = (uint64_t)sum;
    return status;
}

/* ---- One row ---- */

/* Bytes over the busiest link for each byte of the buffer. */
static double bus_factor(slc_op_kind kind, double ranks)
{
    if (kind == SLC_ALL_REDUCE) return 2 * (ranks - 1) / ranks;
    if (kind == SLC_BROADCAST) return 1;
    return (ranks - 1) / ranks;
}

sluice_status slc_perf_measure(slc_perf *perf, uint64_t bytes, slc_perf_row *row)
{
    uint64_t elements = round_elements(perf, bytes);
    slc_op_kind kind = perf->config.kind;
    /* Scaled, so that a sum in place does not grow from one iteration to the next. */
    const slc_op op = describe(perf, elements, 1 / (float)perf->ranks);
    bool parts = kind == SLC_ALL_GATHER || kind == SLC_REDUCE_SCATTER;
    *row = (slc_perf_row){.bytes = elements * sizeof(float), .count = parts ? elements / perf->ranks : elements};
    fill_sources(perf, elements);
    if (kind == SLC_BROADCAST && perf->rank != ROOT)
        for (uint64_t i = 0; i < elements; i++) perf->whole[i] = 0;
    sluice_status status = time_operations(perf, &op, &row->time_s);
    if (!status && perf->config.check) status = check(perf, elements, &row->wrong);
    row->algorithm_bytes_per_s = (double)row->bytes / row->time_s;
    row->bus_bytes_per_s = row->algorithm_bytes_per_s * bus_factor(kind, (double)perf->ranks);
    return status;
}
