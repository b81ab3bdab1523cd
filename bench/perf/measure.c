/* Measures a collective. Elements are whole numbers, small enough that their sums are exact, so a result is right or
 * wrong to the bit. tests/command/perf_test.sh covers this file. */
#include "bench/perf/measure.h"

#include "bench/cli/memory_fit.h"
#include "bench/perf/compute_loop.h"
#include "bench/perf/plain_copy.h"
#include "lib/base/clock.h"
#include "lib/base/host/host_identity.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAIN = 16, ROOT = 0, QUEUE = 4096, TURNS = 5 };
static const double ALONE_S = 0.5;

struct slc_perf {
    sluice_world *world;
    slc_comm *comm;
    slc_device *device;
    slc_segment segment;
    slc_perf_config config;
    int rank;
    uint64_t ranks, block_elements;
    uint64_t element_bytes;
    char *whole, *shard;     /* in the segment, most_bytes each */
    sluice_stream stream;    /* of plain copies */
    slc_plain_piece *pieces; /* [ranks] */
    slc_op *ops;             /* operations of `copies` iterations, which are submitted at once */
    uint32_t copies;
    slc_compute_loop *beside; /* NULL: this thread only waits */
    uint64_t steps;           /* steps of the loop so far */
    /* When the last iteration ended, and the shortest and longest since they were set. The communication thread writes
     * them while operations run, and this thread while none does. */
    uint64_t ended_ns, shortest_ns, longest_ns;
    uint32_t draw; /* which values the elements have: each check takes others */
};

/* ---- Set up ---- */

uint64_t slc_perf_size(sluice_dtype dtype, int ranks, uint64_t bytes)
{
    const uint64_t step = GRAIN * (uint64_t)ranks * sluice_dtype_bytes(dtype);
    return !bytes || bytes / step ? bytes / step * step : step;
}

/* The elements of a buffer of `bytes`, at least one grain a rank. */
static uint64_t elements_of(const slc_perf *perf, uint64_t bytes)
{
    return slc_perf_size(perf->config.dtype, (int)perf->ranks, bytes ? bytes : 1) / perf->element_bytes;
}

/* How the segment is used: two buffers and the scratch of messages. */
typedef struct {
    uint64_t stride, scratch, bytes; /* from one buffer to the next; of the scratch; of all */
} layout;

static layout lay_out(const slc_perf *perf)
{
    const uint64_t line = 4096, buffer = elements_of(perf, perf->config.most_bytes) * perf->element_bytes;
    const uint64_t scratch = slc_comm_scratch_bytes(perf->comm, perf->block_elements * perf->element_bytes);
    const uint64_t stride = (buffer + line - 1) / line * line;
    return (layout){.stride = stride, .scratch = scratch, .bytes = 2 * stride + scratch};
}

static sluice_status make_segment(slc_perf *perf)
{
    const layout l = lay_out(perf);
    sluice_status status = slc_segment_create(perf->device, l.bytes, &perf->segment);
    if (!status) status = slc_segment_populate(&perf->segment);
    if (status) return status;
    char *base = perf->segment.base;
    perf->whole = base;
    perf->shard = base + l.stride;
    return slc_comm_attach(perf->comm, &perf->segment, base + 2 * l.stride, l.scratch);
}

static uint64_t count_blocks(const slc_perf *perf, uint64_t elements)
{
    return (elements + perf->block_elements - 1) / perf->block_elements;
}

/* The operations that are submitted at once: those of all iterations if these are short, as in nccl-tests. */
static uint64_t count_operations(const slc_perf *perf, uint32_t *copies)
{
    const slc_perf_config *config = &perf->config;
    const uint64_t blocks = count_blocks(perf, elements_of(perf, config->most_bytes));
    *copies = config->iterations > config->warm_up ? config->iterations : config->warm_up;
    if (config->gather_after || config->beside) *copies = 1;
    return config->gather_after ? 2 * blocks : 1;
}

static sluice_status make_room_for_operations(slc_perf *perf)
{
    uint64_t length = count_operations(perf, &perf->copies);
    if (perf->config.beside && length > QUEUE)
        return slc_error(SLUICE_ERR_ARGUMENT, "--beside: %llu blocks an iteration; at most %d: use larger blocks",
                         (unsigned long long)length / 2, QUEUE / 2);
    perf->ops = calloc(length * perf->copies, sizeof *perf->ops);
    perf->pieces = calloc(perf->ranks, sizeof *perf->pieces);
    return perf->ops && perf->pieces ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%u iterations", perf->copies);
}

/* Holds what this rank is about to take against its host, before any rank has taken anything. */
static sluice_status look_at_host(const slc_perf *perf, const uint64_t *hosts)
{
    const uint64_t segment = lay_out(perf).bytes;
    slc_host_memory memory;
    slc_memory_need need = {0};
    uint32_t copies;
    for (uint64_t r = 0; r < perf->ranks; r++) need.ranks += hosts[r] == hosts[perf->rank];
    need.bytes = segment + count_operations(perf, &copies) * copies * sizeof *perf->ops;
    need.mapped_bytes = segment * ((uint64_t)sluice_world_local_size(perf->world) - 1);
    slc_host_memory_read("", &memory);
    return slc_memory_fit(&memory, &need, "-e");
}

/* Every rank finds its own answer, and all go on or none does. */
static sluice_status check_memory(const slc_perf *perf)
{
    const uint64_t mine = slc_host_identify();
    uint64_t *hosts = calloc(perf->ranks, sizeof *hosts);
    if (!hosts) return slc_error(SLUICE_ERR_MEMORY, "%llu ranks", (unsigned long long)perf->ranks);
    sluice_status status = sluice_world_all_gather(perf->world, &mine, sizeof mine, hosts), own = SLUICE_OK;
    if (!status) own = look_at_host(perf, hosts);
    double refusals = own != SLUICE_OK;
    free(hosts);
    if (status) return status;
    char line[512];
    snprintf(line, sizeof line, "%s", own ? sluice_last_error() : "another rank could not have the memory of -e");
    status = sluice_world_all_reduce(perf->world, &refusals, 1);
    return status || refusals <= 0 ? status : slc_error(SLUICE_ERR_ARGUMENT, "%s", line);
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
    perf->element_bytes = sluice_dtype_bytes(config->dtype);
    perf->block_elements = elements_of(perf, config->block_bytes);
    sluice_status status = check_memory(perf);
    if (!status) status = make_room_for_operations(perf);
    if (!status) status = slc_device_open("cpu", &perf->device);
    if (!status) status = slc_stream_create(perf->device, 1, &perf->stream);
    if (!status) status = make_segment(perf);
    if (!status && config->beside) status = slc_compute_loop_open(perf->device, &perf->beside);
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
    slc_compute_loop_close(perf->beside);
    if (perf->segment.base) {
        (void)slc_comm_attach(perf->comm, NULL, NULL, 0);
        slc_segment_destroy(&perf->segment);
    }
    slc_stream_destroy(&perf->stream);
    if (perf->device) slc_device_close(perf->device);
    free(perf->ops);
    free(perf->pieces);
    free(perf);
}

/* ---- Running ---- */

static slc_op describe(const slc_perf *perf, uint64_t elements, float scale)
{
    if (!elements) return (slc_op){.kind = SLC_BARRIER, .what = "perf"};
    slc_op op = {.kind = perf->config.kind,
                 .dtype = perf->config.dtype,
                 .elements = elements,
                 .block_elements = perf->block_elements,
                 .block_count = count_blocks(perf, elements),
                 .src = perf->whole,
                 .dst = perf->whole,
                 .scale = scale,
                 .root = ROOT,
                 .what = "perf"};
    if (perf->config.in_place) return op;
    if (op.kind == SLC_REDUCE_SCATTER && !perf->config.gather_after) {
        op.dst = perf->shard;
        op.dst_layout = SLC_SHARD;
    } else if (op.kind == SLC_ALL_GATHER) {
        op.src = perf->shard;
        op.src_layout = SLC_SHARD;
    }
    return op;
}

/* Runs on the communication thread when an iteration is complete. */
static sluice_status note_end(void *context)
{
    slc_perf *perf = context;
    const uint64_t now = slc_clock_ns(), took = now - perf->ended_ns;
    if (took < perf->shortest_ns) perf->shortest_ns = took;
    if (took > perf->longest_ns) perf->longest_ns = took;
    perf->ended_ns = now;
    return SLUICE_OK;
}

/* Writes the operations of one iteration into `ops` and returns their number. */
static uint32_t list_operations(const slc_perf *perf, const slc_op *op, slc_op *ops)
{
    uint32_t count = 0;
    if (!perf->config.gather_after || op->kind == SLC_BARRIER) {
        ops[count++] = *op;
        return count;
    }
    uint64_t blocks = op->block_count, ahead = perf->config.ahead;
    for (uint64_t i = 0; i < blocks + ahead; i++) {
        slc_op one = *op;
        one.block_count = 1;
        one.first_block = i;
        if (i < blocks) ops[count++] = one;
        if (i < ahead) continue;
        one.kind = SLC_ALL_GATHER;
        one.first_block = i - ahead;
        ops[count++] = one;
    }
    return count;
}

static uint32_t describe_iteration(slc_perf *perf, const slc_op *op, slc_op *ops)
{
    const uint32_t count = list_operations(perf, op, ops);
    ops[count - 1].end = note_end;
    ops[count - 1].context = perf;
    return count;
}

static sluice_status compute_once(slc_perf *perf)
{
    perf->steps++;
    return slc_compute_loop_step(perf->beside);
}

static sluice_status wait_until(slc_perf *perf, uint32_t index)
{
    sluice_status status = SLUICE_OK;
    const slc_gate *completed = slc_comm_completed(perf->comm);
    while (!status && perf->beside && !slc_gate_passed(completed, index)) status = compute_once(perf);
    return status ? status : slc_comm_wait(perf->comm, index);
}

static sluice_status run_operations(slc_perf *perf, const slc_op *op, uint32_t iterations)
{
    sluice_status status = SLUICE_OK;
    uint32_t index = 0, length = describe_iteration(perf, op, perf->ops);
    uint32_t copies = perf->copies < iterations ? perf->copies : iterations;
    for (uint32_t i = 1; i < copies; i++) memcpy(perf->ops + i * length, perf->ops, length * sizeof *perf->ops);
    for (uint32_t left = iterations, count; !status && left; left -= count) {
        count = left < copies ? left : copies;
        /* Submission would wait for a free place too, but without computing meanwhile. */
        if (perf->beside && left < iterations) status = wait_until(perf, index + length - QUEUE);
        if (!status) status = slc_comm_submit(perf->comm, perf->ops, (size_t)count * length, &index);
        index += count * length;
    }
    return status || !iterations ? status : wait_until(perf, index);
}

/* Measures compute while no rank communicates. */
static sluice_status compute_alone(slc_perf *perf, double *flop_per_s)
{
    *flop_per_s = 0;
    sluice_status status = perf->beside ? sluice_world_barrier(perf->world) : SLUICE_OK;
    if (status || !perf->beside) return status;
    uint64_t start = slc_clock_ns(), before = perf->steps;
    while (!status && slc_seconds(slc_clock_ns() - start) < ALONE_S) status = compute_once(perf);
    *flop_per_s = (double)(perf->steps - before) * slc_compute_loop_step_flop() / slc_seconds(slc_clock_ns() - start);
    return status ? status : sluice_world_barrier(perf->world);
}

static sluice_status time_operations(slc_perf *perf, const slc_op *op, slc_perf_row *row)
{
    double alone[2];
    sluice_status status = compute_alone(perf, &alone[0]);
    uint64_t shortest = perf->shortest_ns, longest = perf->longest_ns;
    if (!status) status = run_operations(perf, op, perf->config.warm_up);
    if (!status) status = sluice_world_barrier(perf->world);
    perf->shortest_ns = shortest; /* the warm-up does not count */
    perf->longest_ns = longest;
    uint64_t start = slc_clock_ns(), before = perf->steps;
    perf->ended_ns = start;
    if (!status) status = run_operations(perf, op, perf->config.iterations);
    double seconds = slc_seconds(slc_clock_ns() - start);
    double beside = (double)(perf->steps - before) * slc_compute_loop_step_flop() / seconds;
    if (!status) status = compute_alone(perf, &alone[1]);
    double sums[] = {seconds / perf->config.iterations, (alone[0] + alone[1]) / 2, beside};
    if (!status) status = sluice_world_all_reduce(perf->world, sums, 3);
    row->time_s = sums[0] / (double)perf->ranks;
    row->compute_alone = sums[1] / (double)perf->ranks;
    row->compute_beside = sums[2] / (double)perf->ranks;
    return status;
}

/* ---- Checking ---- */

static float value_of(const slc_perf *perf, uint64_t rank, uint64_t element)
{
    return (float)((int)((element * 31 + rank * 17 + (uint64_t)perf->draw * 7) % 251) - 100);
}

static void store(const slc_perf *perf, char *buffer, uint64_t element, float value)
{
    const uint16_t narrow = sluice_bf16_from_float(value);
    const void *from = perf->config.dtype == SLUICE_BF16 ? (const void *)&narrow : &value;
    memcpy(buffer + element * perf->element_bytes, from, perf->element_bytes);
}

/* Whether an element of a buffer is `value`, rounded to the type. */
static bool holds(const slc_perf *perf, const char *buffer, uint64_t element, float value)
{
    float wanted;
    store(perf, (char *)&wanted, 0, value);
    return !memcmp(buffer + element * perf->element_bytes, &wanted, perf->element_bytes);
}

/* A sum is scaled once and rounded once, so this gives its bits too. */
static float scale_of_check(const slc_perf *perf)
{
    return perf->config.average ? 1 / (float)perf->ranks : 1;
}

static float sum_of(const slc_perf *perf, uint64_t element)
{
    float sum = 0;
    for (uint64_t r = 0; r < perf->ranks; r++) sum += value_of(perf, r, element);
    return sum * scale_of_check(perf);
}

/* Returns the place in the whole layout of element `k` of this rank's shard layout. */
static uint64_t owned_element(const slc_perf *perf, uint64_t elements, uint64_t k)
{
    uint64_t block = k / (perf->block_elements / perf->ranks), begin = block * perf->block_elements;
    uint64_t length = elements - begin < perf->block_elements ? elements - begin : perf->block_elements;
    return begin + (uint64_t)perf->rank * (length / perf->ranks) + (k - begin / perf->ranks);
}

/* Where this rank's part lies, of which `k` is an element: the buffer, and *at the element there. */
static char *own_part(const slc_perf *perf, uint64_t elements, uint64_t k, uint64_t *at)
{
    *at = perf->config.in_place ? owned_element(perf, elements, k) : k;
    return perf->config.in_place ? perf->whole : perf->shard;
}

static void fill_sources(slc_perf *perf, uint64_t elements)
{
    slc_op_kind kind = perf->config.kind;
    bool gives = kind != SLC_BROADCAST || perf->rank == ROOT, gathers = kind == SLC_ALL_GATHER;
    for (uint64_t i = 0; i < elements; i++)
        store(perf, perf->whole, i, gathers || !gives ? NAN : value_of(perf, (uint64_t)perf->rank, i));
    for (uint64_t k = 0; k < elements / perf->ranks; k++) {
        uint64_t at;
        char *part = own_part(perf, elements, k, &at);
        if (gathers)
            store(perf, part, at, value_of(perf, ROOT, owned_element(perf, elements, k)));
        else if (part == perf->shard)
            store(perf, part, at, NAN);
    }
}

/* The collective that has the same result as this configuration. */
static slc_op_kind result_of(const slc_perf_config *config)
{
    return config->gather_after ? SLC_ALL_REDUCE : config->kind;
}

static uint64_t count_wrong(const slc_perf *perf, uint64_t elements)
{
    uint64_t wrong = 0, at;
    switch (result_of(&perf->config)) {
    case SLC_REDUCE_SCATTER:
        for (uint64_t k = 0; k < elements / perf->ranks; k++) {
            const char *part = own_part(perf, elements, k, &at);
            wrong += !holds(perf, part, at, sum_of(perf, owned_element(perf, elements, k)));
        }
        break;
    case SLC_ALL_REDUCE:
        for (uint64_t i = 0; i < elements; i++) wrong += !holds(perf, perf->whole, i, sum_of(perf, i));
        break;
    default: /* gather and broadcast: every rank has the root's values */
        for (uint64_t i = 0; i < elements; i++) wrong += !holds(perf, perf->whole, i, value_of(perf, ROOT, i));
    }
    return wrong;
}

static sluice_status check_once(slc_perf *perf, uint64_t elements, uint64_t *wrong)
{
    slc_op op = describe(perf, elements, scale_of_check(perf));
    fill_sources(perf, elements);
    sluice_status status = run_operations(perf, &op, 1);
    double sum = status ? 0 : (double)count_wrong(perf, elements);
    if (!status) status = sluice_world_all_reduce(perf->world, &sum, 1);
    *wrong += (uint64_t)sum;
    return status;
}

/* As nccl-tests does: one more check only while all is right. */
static sluice_status count_wrong_elements(slc_perf *perf, uint64_t elements, uint64_t *wrong)
{
    sluice_status status = SLUICE_OK;
    *wrong = 0;
    for (uint32_t i = 0; !status && elements && !*wrong && i < perf->config.checks; i++) {
        perf->draw = i;
        status = check_once(perf, elements, wrong);
    }
    perf->draw = 0;
    return status;
}

/* ---- Plain copies ---- */

/* Lists the pieces that a plain copy moves to read and write as many bytes as the operation, each line as often: a
 * gather's copy is the gather itself, without a word between ranks; a sum's copy reads equal shares of what all ranks
 * hold, in other lines than its peers. Returns the number of pieces. */
static uint64_t list_pieces(const slc_perf *perf, uint64_t bytes)
{
    const uint64_t n = perf->ranks, rank = (uint64_t)perf->rank, part = bytes / n;
    const slc_op_kind kind = result_of(&perf->config);
    if (kind == SLC_BROADCAST) {
        perf->pieces[0] = (slc_plain_piece){perf->whole, slc_comm_place_at(perf->comm, ROOT, perf->whole), bytes};
        return perf->rank != ROOT;
    }
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t peer = (rank + i) % n, share = kind == SLC_ALL_REDUCE ? part : part * (n + 1) / (2 * n);
        const char *from = perf->whole + rank * share;
        if (kind == SLC_ALL_GATHER) from = perf->config.in_place ? perf->whole + peer * part : perf->shard;
        char *to = kind == SLC_ALL_GATHER ? perf->whole + peer * part : perf->shard + peer * share;
        if (peer != rank || from != to)
            perf->pieces[count++] = (slc_plain_piece){to, slc_comm_place_at(perf->comm, (int)peer, from),
                                                      kind == SLC_ALL_GATHER ? part : share};
    }
    return count;
}

/* Times the operation and the copies by turns, so that a machine which is now fast and now slow is so for both. */
static sluice_status time_by_turns(slc_perf *perf, const slc_op *op, slc_perf_row *row)
{
    const uint32_t turns = perf->config.iterations < TURNS ? perf->config.iterations : TURNS;
    const uint64_t pieces = list_pieces(perf, row->bytes);
    const double copiers = (double)(perf->config.kind == SLC_BROADCAST ? perf->ranks - 1 : perf->ranks);
    const slc_perf_config config = perf->config;
    double seconds[SLC_PLAIN_WAYS] = {0}, unused[SLC_PLAIN_WAYS] = {0}, time_s = 0, fastest = 0;
    sluice_status status = slc_plain_copy(perf->world, &perf->stream, perf->pieces, pieces, config.warm_up, unused);
    for (uint32_t turn = 0; !status && turn < turns; turn++) {
        perf->config.iterations = config.iterations / turns + (turn < config.iterations % turns);
        status = time_operations(perf, op, row);
        time_s += row->time_s * perf->config.iterations;
        if (!status)
            status = slc_plain_copy(perf->world, &perf->stream, perf->pieces, pieces, perf->config.iterations, seconds);
    }
    perf->config = config;
    if (!status) status = slc_plain_copy_fastest(perf->world, seconds, &fastest);
    row->time_s = time_s / config.iterations;
    row->copy_time_s = fastest / copiers / config.iterations;
    return status;
}

static bool can_copy(const slc_perf *perf)
{
    return perf->ranks > 1 && !strcmp(sluice_world_path(perf->world), "direct");
}

/* ---- One row ---- */

/* Bytes that cross the busiest link for each byte of the buffer. */
static double bus_factor(slc_op_kind kind, double ranks)
{
    if (kind == SLC_ALL_REDUCE) return 2 * (ranks - 1) / ranks;
    if (kind == SLC_BROADCAST) return 1;
    return (ranks - 1) / ranks;
}

/* Gives the shortest and the longest iteration of all ranks. */
static sluice_status compare_iterations(const slc_perf *perf, slc_perf_row *row)
{
    const double mine[2] = {slc_seconds(perf->shortest_ns), slc_seconds(perf->longest_ns)};
    double *all = calloc(perf->ranks, sizeof mine);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "%llu ranks", (unsigned long long)perf->ranks);
    sluice_status status = sluice_world_all_gather(perf->world, mine, sizeof mine, all);
    row->time_min_s = all[0];
    row->time_max_s = all[1];
    for (uint64_t r = 1; r < perf->ranks; r++) {
        if (all[2 * r] < row->time_min_s) row->time_min_s = all[2 * r];
        if (all[2 * r + 1] > row->time_max_s) row->time_max_s = all[2 * r + 1];
    }
    free(all);
    return status;
}

sluice_status slc_perf_measure(slc_perf *perf, uint64_t bytes, slc_perf_row *row)
{
    uint64_t elements = bytes / perf->element_bytes;
    slc_op_kind kind = result_of(&perf->config);
    /* The sum is scaled, so that in place it does not grow from one iteration to the next. */
    const slc_op op = describe(perf, elements, 1 / (float)perf->ranks);
    bool parts = kind == SLC_ALL_GATHER || kind == SLC_REDUCE_SCATTER;
    *row = (slc_perf_row){.bytes = bytes, .count = parts ? elements / perf->ranks : elements};
    fill_sources(perf, elements);
    if (kind == SLC_BROADCAST && perf->rank != ROOT) memset(perf->whole, 0, bytes);
    perf->shortest_ns = UINT64_MAX;
    perf->longest_ns = 0;
    bool copies = bytes && perf->config.copy && can_copy(perf);
    sluice_status status = copies ? time_by_turns(perf, &op, row) : time_operations(perf, &op, row);
    if (!status) status = compare_iterations(perf, row);
    if (!status) status = count_wrong_elements(perf, elements, &row->wrong);
    row->algorithm_bytes_per_s = (double)bytes / row->time_s;
    row->bus_bytes_per_s = row->algorithm_bytes_per_s * bus_factor(kind, (double)perf->ranks);
    return status;
}
