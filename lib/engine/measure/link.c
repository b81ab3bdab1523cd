/* Measures the link with operations of the job's own kind. Each figure is that of a train of operations, timed on the
 * communication thread from the end of a barrier to the end of the last one, so that neither waking the caller nor the
 * ranks' different starts count. Operations that touch different bytes overlap, as in a step. All ranks' results decide
 * how long to go on. A single rank moves nothing: its communication thread runs updates while it computes. */
#include "lib/engine/measure/measure.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/engine/measure/fit_link.h"
#include "lib/engine/runtime.h"
#include "lib/kernels/adamw/adamw.h"
#include "lib/kernels/gelu/gelu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALLEST_RUN = 64 << 10,
    LARGEST_RUN = 16 << 20,
    MOST_STRETCH = 2 * LARGEST_RUN,
    COMPUTE_BYTES = 256 << 10, /* of each of two arrays; they fit in a core's cache */
    OVERLAP_RUN = 1 << 20,
    SIZES_MAX = 16,
    TRAIN_MAX = 64,
    REPETITIONS = 5
};

static const double train_s = 4e-3;   /* duration of a train, */
static const double kind_s = 0.3;     /* of all trains of RS or of AG, */
static const double overlap_s = 0.03; /* of a train while ranks compute */
static const double enough = 0.95;    /* share of the bandwidth */

typedef enum { REDUCTIONS, GATHERS, BOTH } train_kind;

typedef struct {
    sluice_runtime *rt;
    uint64_t offset, bytes; /* of the arena, claimed */
    unsigned char *link, *compute;
    uint64_t link_bytes, compute_elements;
    uint64_t grain;     /* bytes */
    sluice_dtype dtype; /* of the gradients of the job's first unit */
    slc_measure *m;     /* holds the times of the train that ran last; it outlives operations that a failure leaves */
} lab;

/* ---- Trains ---- */

static sluice_status note_begin(void *context)
{
    ((slc_measure *)context)->train_began_ns = slc_clock_ns();
    return SLUICE_OK;
}

static sluice_status note_end(void *context)
{
    ((slc_measure *)context)->train_ended_ns = slc_clock_ns();
    return SLUICE_OK;
}

static sluice_status do_nothing(void *context)
{
    (void)context;
    return SLUICE_OK;
}

/* Updates made-up parameters: gradient, value and two states lie one after the other. */
static sluice_status update_piece(void *context)
{
    static const slc_adamw_settings settings = {.learning_rate = 1e-3,
                                                .beta1 = 0.9,
                                                .beta2 = 0.999,
                                                .epsilon = 1e-8,
                                                .gradient_factor = 1,
                                                .bias_correction1 = 1,
                                                .bias_correction2 = 1};
    slc_measure *m = context;
    uint64_t count = m->piece_bytes / (4 * sizeof(float));
    float *at = m->pieces + m->piece++ % m->piece_count * 4 * count;
    return slc_adamw(m->piece_stream, &settings, count, SLUICE_FP32, at, at + count, at + 2 * count, at + 3 * count,
                     NULL);
}

static slc_op make_update(const lab *l, uint64_t bytes)
{
    l->m->pieces = (float *)(void *)l->link;
    l->m->piece_bytes = bytes / 256 * 256;
    l->m->piece_count = l->link_bytes / bytes;
    l->m->piece_stream = &l->rt->updates;
    return (slc_op){.kind = SLC_CALL, .call = update_piece, .context = l->m, .what = "update measurement"};
}

static slc_op make_operation(const lab *l, train_kind kind, uint64_t bytes, uint32_t index)
{
    if (l->rt->size == 1) return make_update(l, bytes);
    bool reduction = kind == REDUCTIONS || (kind == BOTH && index % 2 == 0);
    uint64_t places = l->link_bytes / bytes;
    void *buffer = l->link + index % places * bytes;
    uint64_t elements = bytes / sluice_dtype_bytes(l->dtype), block = l->rt->job.units[0].block_elements;
    slc_op op = {.kind = reduction ? SLC_REDUCE_SCATTER : SLC_ALL_GATHER,
                 .dtype = l->dtype,
                 .elements = elements,
                 .block_elements = block,
                 .block_count = (elements + block - 1) / block,
                 .src = buffer,
                 .dst = buffer,
                 .scale = 1,
                 .context = l->m,
                 .what = "link measurement"};
    return op;
}

/* The barrier of a train is operation number *first, its last operation is *last - 1. */
static sluice_status submit_train(lab *l, train_kind kind, uint64_t bytes, uint32_t count, uint32_t *first,
                                  uint32_t *last)
{
    slc_op ops[TRAIN_MAX + 1] = {
        {.kind = SLC_BARRIER, .call = note_begin, .context = l->m, .what = "link measurement"}};
    uint64_t places = l->link_bytes / bytes;
    /* This core writes the bytes, as it does gradients before a reduction; they are zero, so that no sum is slow. */
    memset(l->link, 0, (places < count ? places : count) * bytes);
    for (uint32_t i = 0; i < count; i++) ops[i + 1] = make_operation(l, kind, bytes, i);
    ops[1].wait[0] = slc_comm_completed(l->rt->comm);
    ops[1].wait_value[0] = l->rt->lanes.next_operation + 1; /* the barrier is over */
    ops[count].call = note_end;
    sluice_status status = slc_comm_submit(l->rt->comm, ops, count + 1, first);
    if (status) return status;
    *last = *first + count + 1;
    l->rt->lanes.next_operation = *last;
    return SLUICE_OK;
}

static sluice_status run_train(lab *l, train_kind kind, uint64_t bytes, uint32_t count, double *seconds)
{
    uint32_t first, last;
    sluice_status status = submit_train(l, kind, bytes, count, &first, &last);
    if (!status) status = slc_comm_wait(l->rt->comm, last);
    *seconds = slc_seconds(l->m->train_ended_ns - l->m->train_began_ns);
    return status;
}

/* How many operations last about `seconds` together, when one lasts `one_s`. */
static uint32_t train_length(double seconds, double one_s, uint32_t least, uint32_t most)
{
    double count = one_s > 0 ? seconds / one_s : most;
    return count < least ? least : count > most ? most : (uint32_t)count;
}

/* ---- Starting and ending an operation ---- */

static sluice_status measure_operation(lab *l, double *operation_s)
{
    double values[REPETITIONS];
    for (int r = 0; r < REPETITIONS; r++) {
        slc_op ops[TRAIN_MAX];
        uint32_t first;
        for (int i = 0; i < TRAIN_MAX; i++)
            ops[i] = (slc_op){.kind = SLC_CALL, .call = do_nothing, .context = l->m, .what = "link measurement"};
        ops[0].call = note_begin;
        ops[TRAIN_MAX - 1].call = note_end;
        sluice_status status = slc_comm_submit(l->rt->comm, ops, TRAIN_MAX, &first);
        if (status) return status;
        l->rt->lanes.next_operation = first + TRAIN_MAX;
        status = slc_comm_wait(l->rt->comm, first + TRAIN_MAX);
        if (status) return status;
        values[r] = slc_seconds(l->m->train_ended_ns - l->m->train_began_ns) / (TRAIN_MAX - 1);
    }
    *operation_s = slc_fit_median(values, REPETITIONS);
    return slc_measure_slowest(l->rt, operation_s, 1);
}

/* ---- Lines ---- */

/* Seconds of one operation in a train, on the slowest rank. *spent grows by the time of this measurement, alike on
 * every rank. */
static sluice_status measure_size(lab *l, train_kind kind, uint64_t bytes, double *seconds, double *spent)
{
    double probe, values[REPETITIONS];
    sluice_status status = run_train(l, kind, bytes, 2, &probe);
    if (!status) status = slc_measure_slowest(l->rt, &probe, 1);
    if (status) return status;
    uint32_t count = train_length(train_s, probe / 2, 2, TRAIN_MAX / 2);
    int trains = probe > 4 * train_s ? 3 : REPETITIONS;
    for (int i = 0; !status && i < trains; i++) {
        status = run_train(l, kind, bytes, count, &values[i]);
        values[i] /= count;
    }
    *seconds = slc_fit_median(values, (size_t)trains);
    *spent += probe / 2 * (2 + trains * count);
    return status ? status : slc_measure_slowest(l->rt, seconds, 1);
}

static uint64_t whole_grains(const lab *l, uint64_t bytes)
{
    uint64_t rounded = bytes / l->grain * l->grain;
    return rounded ? rounded : l->grain;
}

static sluice_status measure_line(lab *l, train_kind kind, double operation_s, slc_link_line *out)
{
    slc_link_sample samples[SIZES_MAX];
    size_t count = 0;
    double spent = 0, seconds = 0;
    uint64_t largest = whole_grains(l, l->link_bytes < LARGEST_RUN ? l->link_bytes : LARGEST_RUN);
    uint64_t bytes = whole_grains(l, largest >= 4 * SMALLEST_RUN ? SMALLEST_RUN : largest / 8);
    for (; bytes <= largest && count < SIZES_MAX; bytes *= 2) {
        if (count >= 3 && spent + 16 * seconds > kind_s)
            break; /* eight operations of the next size, each twice as long */
        sluice_status status = measure_size(l, kind, bytes, &seconds, &spent);
        if (status) return status;
        samples[count++] = (slc_link_sample){bytes, fmax(seconds - operation_s, 0.01 * seconds)};
    }
    *out = slc_fit_line(l->rt->job.world, samples, count);
    return SLUICE_OK;
}

/* ---- Compute and communication at the same time ---- */

static sluice_status compute_piece(lab *l)
{
    const float *in = (const float *)(void *)l->compute;
    return slc_gelu_forward(&l->rt->compute, SLC_GELU_TANH, SLUICE_FP32, l->compute_elements, in,
                            (float *)(void *)l->compute + l->compute_elements);
}

/* Seconds of one piece while every rank computes and none communicates. */
static sluice_status compute_alone(lab *l, double *piece_s)
{
    sluice_status status = sluice_world_barrier(l->rt->world);
    uint64_t start = slc_clock_ns(), now = start, pieces = 0;
    while (!status && slc_seconds(now - start) < overlap_s / 2) {
        status = compute_piece(l);
        pieces++;
        now = slc_clock_ns();
    }
    *piece_s = pieces ? slc_seconds(now - start) / (double)pieces : 0;
    return status;
}

static sluice_status overlap_once(lab *l, uint64_t bytes, uint32_t count, slc_overlap_sample *sample)
{
    double piece_s = 0;
    uint64_t pieces = 0;
    uint32_t first, last;
    sluice_status status = run_train(l, BOTH, bytes, count, &sample->link_alone_s);
    if (!status) status = compute_alone(l, &piece_s);
    if (!status) status = submit_train(l, BOTH, bytes, count, &first, &last);
    if (!status) status = slc_comm_wait(l->rt->comm, first + 1);
    while (!status && !slc_gate_passed(slc_comm_completed(l->rt->comm), last)) {
        status = compute_piece(l);
        pieces++;
    }
    if (!status) status = slc_comm_wait(l->rt->comm, last);
    sample->link_beside_s = slc_seconds(l->m->train_ended_ns - l->m->train_began_ns);
    sample->compute_alone_s = piece_s * (double)pieces;
    return status;
}

static sluice_status measure_overlap(lab *l, slc_link *out)
{
    enum { ROUNDS = 3 };
    double kappa[ROUNDS], sigma[ROUNDS], one_s = 0;
    uint64_t bytes = whole_grains(l, l->link_bytes < OVERLAP_RUN ? l->link_bytes : OVERLAP_RUN);
    memset(l->compute, 0, 8 * l->compute_elements);
    for (;; bytes = whole_grains(l, bytes / 2)) {
        one_s = slc_transfer_s(&l->rt->job, &(slc_times){.link = *out}, SLC_ITEM_REDUCE_SCATTER, bytes);
        if (one_s < overlap_s / 4 || bytes <= SMALLEST_RUN) break;
    }
    uint32_t count = train_length(overlap_s, one_s, 4, TRAIN_MAX);
    size_t rounds = 0;
    double spent = 0;
    /* Where threads block each other, one round can take very long. */
    while (rounds < ROUNDS && spent < kind_s) {
        slc_overlap_sample sample;
        sluice_status status = overlap_once(l, bytes, count, &sample);
        if (status) return status;
        slc_fit_overlap(&sample, &kappa[rounds], &sigma[rounds]);
        rounds++;
        spent += sample.link_beside_s;
        status = slc_measure_slowest(l->rt, &spent, 1);
        if (status) return status;
    }
    double worst[2] = {slc_fit_median(kappa, rounds), slc_fit_median(sigma, rounds)};
    sluice_status status = slc_measure_slowest(l->rt, worst, 2);
    out->kappa = worst[0];
    out->sigma = worst[1];
    return status;
}

/* ---- Where ---- */

typedef struct {
    uint64_t begin, end;
} span;

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Finds the largest stretch of the plan's arena that no static claim covers, the same on every rank. */
static sluice_status find_stretch(lab *l)
{
    const slc_plan *plan = l->rt->current.plan;
    span *taken = calloc(plan->static_count + 1, sizeof *taken);
    if (!taken) return slc_runtime_fail(l->rt, slc_error(SLUICE_ERR_MEMORY, "link measurement"));
    for (uint32_t i = 0; i < plan->static_count; i++) {
        const slc_claim *claim = &plan->statics[i];
        uint64_t offset = plan->buffers[claim->buffer].offset;
        taken[i] = (span){offset + claim->first_byte, offset + claim->end_byte};
    }
    taken[plan->static_count] = (span){plan->arena_bytes, plan->arena_bytes};
    qsort(taken, plan->static_count + 1, sizeof *taken, by_begin);
    uint64_t end = 0;
    for (uint32_t i = 0; i <= plan->static_count; i++) {
        uint64_t begin = (end + 63) / 64 * 64;
        if (taken[i].begin > begin && taken[i].begin - begin > l->bytes) {
            l->offset = begin;
            l->bytes = taken[i].begin - begin;
        }
        if (taken[i].end > end) end = taken[i].end;
    }
    if (l->bytes > MOST_STRETCH + 2 * COMPUTE_BYTES) l->bytes = MOST_STRETCH + 2 * COMPUTE_BYTES;
    free(taken);
    return SLUICE_OK;
}

/* Compute gets an eighth of a short stretch, of a long one no more than a cache holds; the link gets the rest. */
static sluice_status claim_stretch(lab *l)
{
    void *address = NULL;
    uint64_t compute = l->bytes / 8 < 2 * COMPUTE_BYTES ? l->bytes / 8 : 2 * COMPUTE_BYTES;
    compute = (compute + 127) / 128 * 128;
    sluice_status status =
        slc_arena_claim(l->rt->memory.arena, SLC_MEMORY_REPLANNING, "link measurement", l->offset, l->bytes, &address);
    l->compute = address;
    l->compute_elements = compute / 8;
    l->link = l->compute + compute;
    l->link_bytes = l->bytes - compute;
    return status;
}

/* ---- All of it ---- */

static sluice_status measure_wire(lab *l, slc_link *out)
{
    sluice_status status = claim_stretch(l);
    if (status) return status;
    status = measure_line(l, REDUCTIONS, out->operation_s, &out->reduce_scatter);
    if (!status) status = measure_line(l, GATHERS, out->operation_s, &out->all_gather);
    if (!status) status = measure_overlap(l, out);
    sluice_status released = slc_arena_release(l->rt->memory.arena, l->offset, l->bytes);
    return status ? status : released;
}

static sluice_status measure_passes(lab *l, slc_link *out)
{
    if (l->bytes < 8 * l->grain) return SLUICE_OK;
    sluice_status status = claim_stretch(l);
    if (status) return status;
    status = slc_measure_passes(&l->rt->updates, (uint32_t)l->rt->size, l->link, l->link_bytes, l->m->passes_s);
    if (!status && l->rt->size == 1 && l->link_bytes >= SMALLEST_RUN) status = measure_overlap(l, out);
    sluice_status released = slc_arena_release(l->rt->memory.arena, l->offset, l->bytes);
    return status ? status : released;
}

static uint64_t enough_bytes(const lab *l, const slc_link *link)
{
    uint64_t block = sluice_dtype_bytes(l->dtype) * l->rt->job.units[0].block_elements;
    uint64_t reduce = slc_fit_run_bytes(l->rt->job.world, &link->reduce_scatter, link->operation_s, enough);
    uint64_t gather = slc_fit_run_bytes(l->rt->job.world, &link->all_gather, link->operation_s, enough);
    uint64_t longer = reduce > gather ? reduce : gather;
    return longer <= block ? block : longer < 1ull << 40 ? (longer + block - 1) / block * block : 1ull << 40;
}

sluice_status slc_engine_measure_link(sluice_runtime *rt, slc_link *out)
{
    slc_times estimate;
    lab l = {.rt = rt, .dtype = slc_gradient_dtype(&rt->job, rt->job.units), .m = rt->measure};
    l.grain = sluice_dtype_bytes(l.dtype) * SLC_GRAIN * (uint64_t)rt->size;
    sluice_status status = slc_times_estimate(&rt->job, &estimate);
    if (status) return status;
    *out = estimate.link;
    slc_times_fini(&estimate);
    out->block_bytes = sluice_dtype_bytes(l.dtype) * rt->job.units[0].block_elements;
    /* A throttled network holds completions on a timer, whatever path the bytes take, so no thread moves bytes. */
    out->thread_moves =
        !strcmp(sluice_world_path(rt->world), "direct") && strncmp(sluice_world_transport(rt->world), "throttle", 8);

    status = measure_operation(&l, &out->operation_s);
    if (!status) status = find_stretch(&l);
    if (rt->size == 1) {
        out->kappa = 0;
        out->sigma = 1;
    }
    /* The measurements below work on the host's memory and by the host's clock. */
    if (slc_device_runs_ahead(rt->device)) return status;
    if (!status) status = measure_passes(&l, out);
    if (status || rt->size == 1 || l.bytes < 8 * l.grain) return status;
    status = measure_wire(&l, out);
    out->block_bytes = enough_bytes(&l, out);
    return status;
}

sluice_status slc_engine_measure(sluice_runtime *rt, slc_times *out)
{
    if (!rt->measure->link_known) {
        sluice_status status = slc_engine_measure_link(rt, &rt->measure->link);
        if (status) return status;
        rt->measure->link_known = true;
    }
    sluice_status status = slc_engine_measure_times(rt, out);
    if (!status) out->link = rt->measure->link;
    return status;
}
