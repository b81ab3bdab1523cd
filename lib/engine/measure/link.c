/* Measures what the link carries for as long as a step lasts. A real link lets a burst pass faster: a token bucket that
 * has filled up, sockets' buffers. So such room is used up first, each figure is that of the second half of a train of
 * operations without a pause, and compute is timed while the link goes steadily too. All ranks' results decide how long
 * to go on. A single rank moves nothing: its communication thread runs updates while it computes.
 * measure_link_test.c covers this file. */
#include "lib/engine/measure/measure.h"

#include "lib/base/clock.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/plan/measured/fit_link.h"
#include "lib/engine/measure/trains.h"
#include "lib/engine/runtime.h"
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
    BURST_RUN = 256 << 10,
    BURST_BYTES = 8 << 20, /* room for a burst on a link: this much is used up at least */
    SIZES_MAX = 16,
    TRAIN_LEAST = 8,
    OVERLAP_MOST = 64 /* operations of a train while ranks compute: each may take very long then */
};

static const double train_s = 0.04;   /* duration of a train, */
static const double kind_s = 0.3;     /* of all trains of RS or of AG, */
static const double overlap_s = 0.05; /* of a train while ranks compute */
static const double compute_alone_s = 0.015;
static const double burst_least_s = 0.03; /* time in which a burst is used up on a fast link, */
static const double burst_most_s = 0.4;   /* and on a slow one */
static const double enough = 0.95;        /* share of the bandwidth */

static const double full_run_s = 10;   /* a run with so much compute left is worth full durations, */
static const double least_share = 0.1; /* any run is worth this share of them */

typedef slc_measure_lab lab;

/* ---- Lines ---- */

static uint64_t whole_grains(const lab *l, uint64_t bytes)
{
    uint64_t rounded = bytes / l->grain * l->grain;
    return rounded ? rounded : l->grain;
}

/* Runs a train. *seconds becomes one operation's steady time, *took_s the train's, both on the slowest rank. */
static sluice_status run_together(lab *l, slc_train *train, double *seconds, double *took_s)
{
    double found[2];
    sluice_status status = slc_train_run(l, train, &found[0]);
    if (status) return status;
    found[1] = slc_train_s(l, 0, train->count);
    status = slc_measure_slowest(l->rt, found, 2);
    *seconds = found[0];
    *took_s = found[1];
    return status;
}

/* Uses up what the link lets pass above its sustained rate. *s_per_byte becomes the time of a run's byte on it, alike
 * on every rank. */
static sluice_status use_up_bursts(lab *l, double *s_per_byte)
{
    uint64_t run = whole_grains(l, l->link_bytes < BURST_RUN ? l->link_bytes : BURST_RUN),
             others = l->rt->job.world - 1;
    slc_train train = {.kind = SLC_TRAIN_BOTH, .bytes = run, .count = 2};
    double spent = 0, sent = 0, seconds = 0;
    while ((spent < burst_least_s || sent < BURST_BYTES) && spent < burst_most_s) {
        double took_s;
        sluice_status status = run_together(l, &train, &seconds, &took_s);
        if (status) return status;
        spent += took_s;
        sent += (double)train.count * (double)run * (double)others / l->rt->job.world;
        train.count = slc_train_length(l->share * train_s, seconds, 2);
    }
    *s_per_byte = seconds / (double)run;
    return SLUICE_OK;
}

static sluice_status measure_line(lab *l, slc_train_kind kind, double s_per_byte, double operation_s,
                                  slc_link_line *out)
{
    slc_link_sample samples[SIZES_MAX];
    size_t count = 0;
    uint64_t largest = whole_grains(l, l->link_bytes < LARGEST_RUN ? l->link_bytes : LARGEST_RUN);
    uint64_t bytes = whole_grains(l, largest >= 4 * SMALLEST_RUN ? SMALLEST_RUN : largest / 8);
    double spent = 0, seconds = s_per_byte * (double)bytes / 2;
    for (; bytes <= largest && count < SIZES_MAX; bytes *= 2) {
        double expected = 2 * seconds;
        if (count >= 3 && spent + TRAIN_LEAST * expected > l->share * kind_s) break;
        slc_train train = {
            .kind = kind, .bytes = bytes, .count = slc_train_length(l->share * train_s, expected, TRAIN_LEAST)};
        double took_s;
        sluice_status status = run_together(l, &train, &seconds, &took_s);
        if (status) return status;
        spent += took_s;
        /* A disturbance lengthens a short train by a larger share. */
        samples[count++] = (slc_link_sample){bytes, fmax(seconds - operation_s, 0.01 * seconds), took_s};
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
    while (!status && slc_seconds(now - start) < l->share * compute_alone_s) {
        status = compute_piece(l);
        pieces++;
        now = slc_clock_ns();
    }
    *piece_s = pieces ? slc_seconds(now - start) / (double)pieces : 0;
    return status;
}

/* Only the second half of each train counts. */
static sluice_status overlap_once(lab *l, slc_train *train, slc_overlap_sample *sample)
{
    double piece_s = 0, steady_s;
    uint64_t pieces = 0;
    uint32_t half = train->count / 2;
    sluice_status status = slc_train_run(l, train, &steady_s);
    sample->link_alone_s = slc_train_s(l, half, train->count);
    if (!status) status = compute_alone(l, &piece_s);
    if (!status) status = slc_train_submit(l, train);
    const uint32_t middle = train->first + half + 1, end = train->first + train->count + 1;
    bool counts = false;
    while (!status && !slc_gate_passed(slc_comm_completed(l->rt->comm), end)) {
        if (!counts && slc_gate_passed(slc_comm_completed(l->rt->comm), middle)) {
            counts = true;
            pieces = 0;
        }
        status = compute_piece(l);
        pieces++;
    }
    if (!status) status = slc_comm_wait(l->rt->comm, end);
    sample->link_beside_s = slc_train_s(l, half, train->count);
    sample->compute_alone_s = piece_s * (double)pieces;
    return status;
}

/* The length of a run that does not take too long on a slow link. */
static uint64_t overlap_run(const lab *l, const slc_link *link)
{
    const slc_times times = {.link = *link};
    uint64_t bytes = whole_grains(l, l->link_bytes < OVERLAP_RUN ? l->link_bytes : OVERLAP_RUN);
    while (bytes > SMALLEST_RUN &&
           slc_transfer_s(&l->rt->job, &times, SLC_ITEM_REDUCE_SCATTER, bytes) >= overlap_s / TRAIN_LEAST)
        bytes = whole_grains(l, bytes / 2);
    return bytes;
}

/* Measures kappa and sigma of trains of one kind next to compute, on the slowest rank. */
static sluice_status measure_overlap(lab *l, slc_train_kind kind, uint64_t bytes, double *out_kappa, double *out_sigma)
{
    enum { ROUNDS = 3 };
    double kappa[ROUNDS], sigma[ROUNDS], one_s, spent;
    slc_train train = {.kind = kind, .bytes = bytes, .count = TRAIN_LEAST};
    memset(l->compute, 0, 8 * l->compute_elements);
    sluice_status status = run_together(l, &train, &one_s, &spent);
    if (status) return status;
    uint32_t most = kind == SLC_TRAIN_UPDATES ? SLC_TRAIN_MAX : OVERLAP_MOST;
    train.count = (uint32_t)slc_least(slc_train_length(l->share * overlap_s, one_s, TRAIN_LEAST), most);
    size_t rounds = 0;
    /* Where threads block each other, one round can take very long. */
    while (rounds < ROUNDS && (!rounds || spent < l->share * kind_s)) {
        slc_overlap_sample sample;
        status = overlap_once(l, &train, &sample);
        if (status) return status;
        slc_fit_overlap(&sample, &kappa[rounds], &sigma[rounds]);
        rounds++;
        spent += sample.link_beside_s;
        status = slc_measure_slowest(l->rt, &spent, 1);
        if (status) return status;
    }
    double worst[2] = {slc_fit_median(kappa, rounds), slc_fit_median(sigma, rounds)};
    status = slc_measure_slowest(l->rt, worst, 2);
    *out_kappa = worst[0];
    *out_sigma = worst[1];
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
    double s_per_byte;
    status = use_up_bursts(l, &s_per_byte);
    if (!status) status = measure_line(l, SLC_TRAIN_REDUCTIONS, s_per_byte, out->operation_s, &out->reduce_scatter);
    if (!status) status = measure_line(l, SLC_TRAIN_GATHERS, s_per_byte, out->operation_s, &out->all_gather);
    uint64_t bytes = overlap_run(l, out);
    double update_sigma;
    if (!status) status = measure_overlap(l, SLC_TRAIN_BOTH, bytes, &out->kappa, &out->sigma);
    if (!status && !out->thread_moves)
        status = measure_overlap(l, SLC_TRAIN_UPDATES, bytes, &out->update_kappa, &update_sigma);
    sluice_status released = slc_arena_release(l->rt->memory.arena, l->offset, l->bytes);
    return status ? status : released;
}

static sluice_status measure_passes(lab *l, slc_link *out)
{
    if (l->bytes < 8 * l->grain) return SLUICE_OK;
    sluice_status status = claim_stretch(l);
    if (status) return status;
    status = slc_measure_passes(&l->rt->updates, (uint32_t)l->rt->size, l->link, l->link_bytes, l->m->passes_s);
    if (!status && l->rt->size == 1 && l->link_bytes >= SMALLEST_RUN)
        status = measure_overlap(l, SLC_TRAIN_UPDATES, whole_grains(l, slc_least(l->link_bytes, OVERLAP_RUN)),
                                 &out->kappa, &out->sigma);
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

/* A short run cannot win back what long measurements cost, so they take a share of their usual time. */
static sluice_status choose_share(lab *l)
{
    const sluice_runtime *rt = l->rt;
    double compute_s = slc_measured_compute_s(rt->measure, &rt->job) * (double)slc_runtime_steps_left(rt);
    sluice_status status = slc_measure_slowest(l->rt, &compute_s, 1);
    l->share = compute_s > 0 ? fmin(fmax(compute_s / full_run_s, least_share), 1) : 1;
    return status;
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

    status = choose_share(&l);
    if (!status) status = slc_train_operation_s(&l, &out->operation_s);
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
