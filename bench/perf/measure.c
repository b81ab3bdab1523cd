/* Measures a collective, or a ring of transfers. Elements are whole numbers, small enough that their sums are exact, so
 * a result is right or wrong to the bit. On a GPU operations are timed by events, and elements are written and looked
 * at through the host's copies. tests/command/measure/perf_test.sh covers this file. The GPU's part is in
 * tests/command/gpu/several_gpus_link_test.sh. */
#include "bench/perf/measure.h"

#include "bench/cli/memory_fit.h"
#include "bench/perf/compute_loop.h"
#include "bench/perf/iterations.h"
#include "bench/perf/mirror.h"
#include "bench/perf/plain_copy.h"
#include "bench/perf/ring.h"
#include "lib/base/clock.h"
#include "lib/base/error_line.h"
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
    bool on_gpu;
    char *whole, *shard;               /* in the segment, most_bytes each */
    slc_mirror seen_whole, seen_shard; /* what the host sees of them */
    sluice_stream stream;              /* of copies that are no operations */
    slc_plain_piece *pieces;           /* [ranks] */
    slc_perf_ring ring;
    slc_op *ops; /* operations of `copies` iterations, which are submitted at once */
    uint32_t copies;
    slc_compute_loop *beside; /* NULL: this thread only waits */
    uint64_t steps;           /* steps of the loop so far */
    slc_iterations iterations;
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

/* The layout of the segment: two buffers and the scratch of messages. */
typedef struct {
    uint64_t stride, scratch, bytes; /* from one buffer to the next; of the scratch; of all */
} layout;

static layout lay_out(const slc_perf *perf)
{
    const uint64_t line = 4096, buffer = elements_of(perf, perf->config.most_bytes) * perf->element_bytes;
    /* A GPU's blocks are long, and operations often shorter. */
    const uint64_t longest = elements_of(perf, perf->config.most_bytes);
    const uint64_t block = perf->on_gpu && longest < perf->block_elements ? longest : perf->block_elements;
    const uint64_t scratch = slc_comm_scratch_bytes(perf->comm, block * perf->element_bytes);
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
    status = slc_mirror_init(&perf->stream, perf->whole, l.stride, &perf->seen_whole);
    if (!status) status = slc_mirror_init(&perf->stream, perf->shard, l.stride, &perf->seen_shard);
    if (!status) status = slc_comm_attach(perf->comm, &perf->segment, base + 2 * l.stride, l.scratch);
    if (status) return status;
    const uint32_t most =
        perf->config.iterations > perf->config.warm_up ? perf->config.iterations : perf->config.warm_up;
    return slc_iterations_init(slc_comm_stream(perf->comm), most, &perf->iterations);
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

/* The GPU's memory that is left, of which nobody else takes any. */
static sluice_status look_at_gpu(const slc_perf *perf)
{
    slc_device_facts facts;
    const uint64_t segment = lay_out(perf).bytes;
    sluice_status status = slc_device_get_facts(perf->device, &facts);
    if (status || segment <= facts.free_bytes) return status;
    return slc_error(SLUICE_ERR_ARGUMENT, "-e: needs %llu bytes of the GPU's memory, but %llu of %llu are free (%s)",
                     (unsigned long long)segment, (unsigned long long)facts.free_bytes,
                     (unsigned long long)facts.memory_bytes, facts.name);
}

/* Checks that this rank's host has room for what the rank is about to take, before any rank has taken anything. If a
 * GPU has the buffers, the host has copies of them, and the GPU is checked too. */
static sluice_status look_at_host(const slc_perf *perf, const uint64_t *hosts)
{
    const layout l = lay_out(perf);
    const uint64_t segment = perf->on_gpu ? 2 * l.stride : l.bytes;
    slc_host_memory memory;
    slc_memory_need need = {0};
    uint32_t copies;
    for (uint64_t r = 0; r < perf->ranks; r++) need.ranks += hosts[r] == hosts[perf->rank];
    need.bytes = segment + count_operations(perf, &copies) * copies * sizeof *perf->ops;
    need.mapped_bytes = perf->on_gpu ? 0 : segment * ((uint64_t)sluice_world_local_size(perf->world) - 1);
    slc_host_memory_read("", &memory);
    sluice_status status = slc_memory_fit(&memory, &need, "-e");
    return status || !perf->on_gpu ? status : look_at_gpu(perf);
}

/* Checks that the memory is enough. Every rank finds its own answer, and then all go on or none does. */
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
    char line[SLC_ERROR_BYTES];
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
    sluice_status status = slc_device_open(config->device, &perf->device);
    if (!status) status = slc_comm_choose(perf->comm, perf->device);
    perf->on_gpu = !status && slc_device_runs_ahead(perf->device);
    if (!status) status = check_memory(perf);
    if (!status) status = make_room_for_operations(perf);
    if (!status) status = slc_stream_create(perf->device, 1, &perf->stream);
    if (!status && config->beside) status = slc_compute_loop_open(perf->device, &perf->beside);
    if (!status) status = make_segment(perf);
    if (!status && config->ring) status = slc_perf_ring_open(world, &perf->ring);
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
    slc_perf_ring_close(&perf->ring);
    slc_mirror_fini(&perf->seen_whole);
    slc_mirror_fini(&perf->seen_shard);
    if (perf->segment.base) {
        (void)slc_comm_attach(perf->comm, NULL, NULL, 0);
        slc_iterations_fini(&perf->iterations);
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
                 .any_order = perf->config.any_order,
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

/* Runs on the communication thread when an iteration is complete, or on a GPU, issued. */
static sluice_status note_end(void *context)
{
    return slc_iterations_note(&((slc_perf *)context)->iterations);
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

static bool is_over(const slc_perf *perf, uint32_t index)
{
    if (!slc_gate_passed(slc_comm_completed(perf->comm), index)) return false;
    return !perf->on_gpu || slc_iterations_done(&perf->iterations);
}

/* Waits until operations before number `index`, the last that were submitted, are done. */
static sluice_status wait_until_done(slc_perf *perf, uint32_t index)
{
    sluice_status status = SLUICE_OK;
    while (!status && perf->beside && !is_over(perf, index)) status = compute_once(perf);
    if (!status) status = slc_comm_wait(perf->comm, index);
    return status || !perf->on_gpu ? status : slc_comm_synchronize(perf->comm, index);
}

/* Waits for free places in the queue, and computes meanwhile. Submission would wait for them too, but without
 * computing. A GPU computes on by itself. */
static sluice_status wait_for_places(slc_perf *perf, uint32_t index)
{
    sluice_status status = SLUICE_OK;
    if (!perf->beside || perf->on_gpu) return SLUICE_OK;
    while (!status && !slc_gate_passed(slc_comm_completed(perf->comm), index)) status = compute_once(perf);
    return status ? status : slc_comm_wait(perf->comm, index);
}

static sluice_status run_operations(slc_perf *perf, const slc_op *op, uint32_t iterations)
{
    sluice_status status = slc_iterations_begin(&perf->iterations);
    uint32_t index = 0, length = describe_iteration(perf, op, perf->ops);
    uint32_t copies = perf->copies < iterations ? perf->copies : iterations;
    for (uint32_t i = 1; i < copies; i++) memcpy(perf->ops + i * length, perf->ops, length * sizeof *perf->ops);
    for (uint32_t left = iterations, count; !status && left; left -= count) {
        count = left < copies ? left : copies;
        if (left < iterations) status = wait_for_places(perf, index + length - QUEUE);
        if (!status) status = slc_comm_submit(perf->comm, perf->ops, (size_t)count * length, &index);
        index += count * length;
    }
    return status || !iterations ? status : wait_until_done(perf, index);
}

/* Runs turns of the ring; the queue of a channel holds 1024. */
static sluice_status run_ring(slc_perf *perf, uint64_t bytes, uint32_t iterations)
{
    enum { AHEAD = 1000 };
    slc_perf_ring *ring = &perf->ring;
    sluice_status status = slc_iterations_begin(&perf->iterations);
    for (uint32_t i = 0; !status && i < iterations; i++) {
        while (!status && perf->beside && i >= AHEAD && !slc_perf_ring_is_over(ring, ring->submitted - AHEAD))
            status = compute_once(perf);
        if (!status) status = slc_perf_ring_turn(ring, perf->whole, perf->shard, bytes, note_end, perf);
    }
    while (!status && perf->beside && !slc_perf_ring_is_over(ring, ring->submitted)) status = compute_once(perf);
    return status ? status : slc_perf_ring_wait(ring, ring->submitted);
}

/* Runs the collective, or what is measured in its place. */
static sluice_status run_iterations(slc_perf *perf, const slc_op *op, uint32_t iterations)
{
    if (perf->config.ring && op->kind != SLC_BARRIER)
        return run_ring(perf, op->elements * perf->element_bytes, iterations);
    return run_operations(perf, op, iterations);
}

/* Measures compute while no rank communicates. */
static sluice_status compute_alone(slc_perf *perf, double *flop_per_s)
{
    *flop_per_s = 0;
    sluice_status status = perf->beside ? sluice_world_barrier(perf->world) : SLUICE_OK;
    if (!status && perf->beside) status = slc_compute_loop_begin(perf->beside);
    if (status || !perf->beside) return status;
    uint64_t start = slc_clock_ns(), before = perf->steps;
    while (!status && slc_seconds(slc_clock_ns() - start) < ALONE_S) status = compute_once(perf);
    double step_s = slc_seconds(slc_clock_ns() - start) / (double)(perf->steps - before);
    if (!status) status = slc_compute_loop_end(perf->beside);
    if (perf->on_gpu) step_s = slc_compute_loop_step_s(perf->beside);
    *flop_per_s = step_s > 0 ? slc_compute_loop_step_flop(perf->beside) / step_s : 0;
    return status ? status : sluice_world_barrier(perf->world);
}

/* Runs the iterations that count. *seconds is the time of all of them, *steps those of compute meanwhile. */
static sluice_status run_timed(slc_perf *perf, const slc_op *op, double *seconds, double *steps)
{
    const uint64_t before = perf->steps;
    sluice_status status = perf->beside ? slc_compute_loop_begin(perf->beside) : SLUICE_OK;
    if (!status) status = run_iterations(perf, op, perf->config.iterations);
    if (!status) status = slc_iterations_end(&perf->iterations, seconds);
    *steps = (double)(perf->steps - before);
    if (status || !perf->beside || !perf->on_gpu) return status;
    status = slc_compute_loop_end(perf->beside);
    const slc_event *events = perf->iterations.events;
    return status ? status : slc_compute_loop_between(perf->beside, &events[0], &events[perf->iterations.noted], steps);
}

static sluice_status time_operations(slc_perf *perf, const slc_op *op, slc_perf_row *row)
{
    double alone[2], seconds = 0, steps = 0;
    sluice_status status = compute_alone(perf, &alone[0]);
    const uint64_t shortest = perf->iterations.shortest_ns, longest = perf->iterations.longest_ns;
    if (!status) status = run_iterations(perf, op, perf->config.warm_up);
    if (!status) status = sluice_world_barrier(perf->world);
    perf->iterations.shortest_ns = shortest; /* the warm-up does not count */
    perf->iterations.longest_ns = longest;
    if (!status) status = run_timed(perf, op, &seconds, &steps);
    if (!status) status = compute_alone(perf, &alone[1]);
    const double flop = perf->beside ? slc_compute_loop_step_flop(perf->beside) : 0;
    double sums[] = {seconds / perf->config.iterations, (alone[0] + alone[1]) / 2, steps * flop / seconds};
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

/* True if an element of a buffer is `value`, rounded to the type. */
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

/* Returns the buffer in which this rank's part lies; *at becomes the place there of element `k` of the part. */
static char *own_part(const slc_perf *perf, uint64_t elements, uint64_t k, uint64_t *at)
{
    *at = perf->config.in_place ? owned_element(perf, elements, k) : k;
    return perf->config.in_place ? perf->seen_whole.seen : perf->seen_shard.seen;
}

static uint64_t whole_bytes(const slc_perf *perf, uint64_t elements)
{
    return elements * perf->element_bytes;
}

static sluice_status fill_sources(slc_perf *perf, uint64_t elements)
{
    slc_op_kind kind = perf->config.kind;
    char *whole = perf->seen_whole.seen, *shard = perf->seen_shard.seen;
    bool gives = kind != SLC_BROADCAST || perf->rank == ROOT, gathers = kind == SLC_ALL_GATHER;
    for (uint64_t i = 0; i < elements; i++)
        store(perf, whole, i, gathers || !gives ? NAN : value_of(perf, (uint64_t)perf->rank, i));
    for (uint64_t i = 0; perf->config.ring && i < elements; i++) store(perf, shard, i, NAN);
    if (perf->config.ring) return SLUICE_OK; /* it is of the host's memory alone */
    for (uint64_t k = 0; k < elements / perf->ranks; k++) {
        uint64_t at;
        char *part = own_part(perf, elements, k, &at);
        if (gathers)
            store(perf, part, at, value_of(perf, ROOT, owned_element(perf, elements, k)));
        else if (part == shard)
            store(perf, part, at, NAN);
    }
    sluice_status status = slc_mirror_give(&perf->seen_whole, whole_bytes(perf, elements));
    return status ? status : slc_mirror_give(&perf->seen_shard, whole_bytes(perf, elements) / perf->ranks);
}

static sluice_status take_results(slc_perf *perf, uint64_t elements)
{
    sluice_status status = slc_mirror_take(&perf->seen_whole, whole_bytes(perf, elements));
    return status ? status : slc_mirror_take(&perf->seen_shard, whole_bytes(perf, elements) / perf->ranks);
}

/* The collective that has the same result as this configuration. */
static slc_op_kind result_of(const slc_perf_config *config)
{
    return config->gather_after ? SLC_ALL_REDUCE : config->kind;
}

static uint64_t count_wrong(const slc_perf *perf, uint64_t elements)
{
    uint64_t wrong = 0, at;
    const uint64_t before = (uint64_t)perf->ring.before;
    switch (result_of(&perf->config)) {
    case SLC_REDUCE_SCATTER:
        for (uint64_t k = 0; k < elements / perf->ranks; k++) {
            const char *part = own_part(perf, elements, k, &at);
            wrong += !holds(perf, part, at, sum_of(perf, owned_element(perf, elements, k)));
        }
        break;
    case SLC_ALL_REDUCE:
        for (uint64_t i = 0; i < elements; i++) wrong += !holds(perf, perf->seen_whole.seen, i, sum_of(perf, i));
        break;
    case SLC_CALL: /* the ring */
        for (uint64_t i = 0; i < elements; i++)
            wrong += !holds(perf, perf->seen_shard.seen, i, value_of(perf, before, i));
        break;
    default: /* gather and broadcast: every rank has the root's values */
        for (uint64_t i = 0; i < elements; i++)
            wrong += !holds(perf, perf->seen_whole.seen, i, value_of(perf, ROOT, i));
    }
    return wrong;
}

static sluice_status check_once(slc_perf *perf, uint64_t elements, uint64_t *wrong)
{
    slc_op op = describe(perf, elements, scale_of_check(perf));
    sluice_status status = fill_sources(perf, elements);
    if (!status) status = run_iterations(perf, &op, 1);
    if (!status) status = take_results(perf, elements);
    double sum = status ? 0 : (double)count_wrong(perf, elements);
    if (!status) status = sluice_world_all_reduce(perf->world, &sum, 1);
    *wrong += (uint64_t)sum;
    return status;
}

/* Checks the results as often as asked, as nccl-tests does: only while all is right. */
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

/* Lists the pieces of a plain copy that reads and writes as many bytes as the operation, and each cache line as often.
 * The copy for a gather is the gather itself, but ranks do not wait for each other. The copy for a sum reads equal
 * shares of what all ranks hold, in other lines than the other ranks read. Returns the number of pieces. */
static uint64_t list_pieces(const slc_perf *perf, uint64_t bytes)
{
    const uint64_t n = perf->ranks, rank = (uint64_t)perf->rank, part = bytes / n;
    const slc_op_kind kind = result_of(&perf->config);
    if (kind == SLC_BROADCAST) {
        perf->pieces[0] = (slc_plain_piece){perf->whole, slc_comm_place_at(perf->comm, ROOT, perf->whole), bytes};
        return perf->rank != ROOT;
    }
    if (perf->config.ring) {
        const void *from = slc_comm_place_at(perf->comm, perf->ring.before, perf->whole);
        perf->pieces[0] = (slc_plain_piece){perf->shard, from, bytes};
        return 1;
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

/* Returns the bytes that cross the busiest link for each byte of the buffer. */
static double bus_factor(slc_op_kind kind, double ranks)
{
    if (kind == SLC_ALL_REDUCE) return 2 * (ranks - 1) / ranks;
    if (kind == SLC_BROADCAST || kind == SLC_CALL) return 1;
    return (ranks - 1) / ranks;
}

/* Gives the shortest and the longest iteration of all ranks. */
static sluice_status compare_iterations(const slc_perf *perf, slc_perf_row *row)
{
    const double mine[2] = {slc_seconds(perf->iterations.shortest_ns), slc_seconds(perf->iterations.longest_ns)};
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

/* A GPU's first operation of a size launches and makes things that may wait for all that is under way, so nothing else
 * is under way here. */
static sluice_status run_first(slc_perf *perf, const slc_op *op)
{
    slc_op first = *op;
    first.alone = true;
    sluice_status status = sluice_world_barrier(perf->world);
    return status ? status : run_operations(perf, &first, 1);
}

sluice_status slc_perf_measure(slc_perf *perf, uint64_t bytes, slc_perf_row *row)
{
    uint64_t elements = bytes / perf->element_bytes;
    slc_op_kind kind = result_of(&perf->config);
    /* The sum is scaled, so that in place it does not grow from one iteration to the next. */
    const slc_op op = describe(perf, elements, 1 / (float)perf->ranks);
    bool parts = kind == SLC_ALL_GATHER || kind == SLC_REDUCE_SCATTER;
    *row = (slc_perf_row){.bytes = bytes, .count = parts ? elements / perf->ranks : elements};
    bool copies = bytes && perf->config.copy && can_copy(perf);
    sluice_status status = fill_sources(perf, elements);
    if (!status && kind == SLC_BROADCAST && perf->rank != ROOT)
        status = slc_fill_zero(&perf->stream, perf->whole, bytes);
    if (!status) status = slc_stream_synchronize(&perf->stream);
    if (!status && perf->on_gpu) status = run_first(perf, &op);
    slc_iterations_clear(&perf->iterations);
    if (!status) status = copies ? time_by_turns(perf, &op, row) : time_operations(perf, &op, row);
    if (!status) status = compare_iterations(perf, row);
    if (!status) status = count_wrong_elements(perf, elements, &row->wrong);
    row->algorithm_bytes_per_s = (double)bytes / row->time_s;
    row->bus_bytes_per_s = row->algorithm_bytes_per_s * bus_factor(kind, (double)perf->ranks);
    return status;
}
