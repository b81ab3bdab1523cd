/* Measures what the link carries for as long as a step lasts (lines.h), and how compute and communication slow each
 * other down while it goes steadily (overlap.h). A single rank moves nothing: its communication thread runs updates
 * while it computes. measure_link_test.c covers this file. */
#include "lib/engine/measure/measure.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/engine/measure/lines.h"
#include "lib/engine/measure/overlap.h"
#include "lib/engine/runtime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMPUTE_BYTES = 256 << 10, /* of each of two arrays; they fit in a core's cache */
    COMPUTE_BYTES_AHEAD = 32 << 20,
    UPDATES_LEAST = 64 << 10 /* bytes in which updates can be measured */
};

static const double full_run_s = 10;   /* a run with so much compute left is worth full durations, */
static const double least_share = 0.1; /* any run is worth this share of them */

typedef slc_measure_lab lab;

/* ---- Where ---- */

/* The most bytes of each of the arrays that compute works on. */
static uint64_t compute_bytes(const lab *l)
{
    return l->ahead ? COMPUTE_BYTES_AHEAD : COMPUTE_BYTES;
}

/* Claims the stretch of memory that the measurement uses, and divides it. Compute gets an eighth of a short stretch, or
 * a third on a device that runs ahead, which a short array does not fill; of a long one it gets no more than is enough.
 * The link gets the rest. */
static sluice_status claim_stretch(lab *l)
{
    void *address = NULL;
    uint64_t compute = slc_least(l->bytes / (l->ahead ? 3 : 8), 2 * compute_bytes(l));
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

/* Warms up what slc_lines_warm_up does, and compute and updates too. */
static sluice_status warm_up(lab *l)
{
    slc_train updates = {.kind = SLC_TRAIN_UPDATES, .count = 1, .alone = true};
    double seconds;
    sluice_status status = slc_overlap_prepare(l);
    if (status || !l->ahead) return status;
    updates.bytes = slc_lab_grains(l, slc_least(l->link_bytes, SLC_RUN_AHEAD_LEAST));
    status = slc_train_run(l, &updates, &seconds);
    return status || l->rt->size == 1 ? status : slc_lines_warm_up(l);
}

static sluice_status measure_wire(lab *l, slc_link *out)
{
    sluice_status status = claim_stretch(l);
    if (status) return status;
    status = warm_up(l);
    if (!status) status = slc_lines_measure(l, out->operation_s, &out->reduce_scatter, &out->all_gather);
    double update_sigma;
    if (!status) status = slc_overlap_measure(l, SLC_TRAIN_BOTH, out, &out->kappa, &out->sigma);
    if (!status && !out->thread_moves)
        status = slc_overlap_measure(l, SLC_TRAIN_UPDATES, out, &out->update_kappa, &update_sigma);
    sluice_status released = slc_arena_release(l->rt->memory.arena, l->offset, l->bytes);
    return status ? status : released;
}

static sluice_status measure_passes(lab *l, slc_link *out)
{
    if (l->bytes < 8 * l->grain) return SLUICE_OK;
    sluice_status status = claim_stretch(l);
    if (status) return status;
    status = slc_measure_passes(&l->rt->updates, (uint32_t)l->rt->size, l->link, l->link_bytes, l->m->passes_s);
    if (!status && l->rt->size == 1 && l->link_bytes >= UPDATES_LEAST) {
        status = warm_up(l);
        if (!status) status = slc_overlap_measure(l, SLC_TRAIN_UPDATES, out, &out->kappa, &out->sigma);
    }
    sluice_status released = slc_arena_release(l->rt->memory.arena, l->offset, l->bytes);
    return status ? status : released;
}

/* Returns the bytes of a run that is long enough, in whole base blocks. */
static uint64_t enough_bytes(const lab *l, const slc_link *link)
{
    const uint64_t block = sluice_dtype_bytes(l->dtype) * l->rt->job.units[0].block_elements;
    const uint64_t bytes = slc_lines_enough_bytes(l, link), most = (uint64_t)1 << 40;
    return bytes <= block ? block : bytes < most ? (bytes + block - 1) / block * block : most;
}

/* Shortens the measured blocks until they fit the scratch, which has room for blocks of the job's units: runs that are
 * measured may be longer than any of these. */
static void fit_scratch(lab *l)
{
    const uint64_t grain = SLC_GRAIN * (uint64_t)l->rt->size, each = sluice_dtype_bytes(l->dtype);
    while (l->block_elements > grain &&
           slc_comm_scratch_bytes(l->rt->comm, l->block_elements * each) > l->rt->job.scratch_bytes)
        l->block_elements = slc_most(l->block_elements / 2 / grain * grain, grain);
}

/* Chooses which share of their usual time measurements take: a short run cannot win back what long ones cost. */
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
    lab l = {.rt = rt,
             .dtype = slc_gradient_dtype(&rt->job, rt->job.units),
             .block_elements = rt->job.units[0].block_elements,
             .ahead = slc_device_runs_ahead(rt->device),
             .m = rt->measure};
    l.grain = sluice_dtype_bytes(l.dtype) * SLC_GRAIN * (uint64_t)rt->size;
    sluice_status status = slc_times_estimate(&rt->job, &estimate);
    if (status) return status;
    *out = estimate.link;
    slc_times_fini(&estimate);
    out->block_bytes = sluice_dtype_bytes(l.dtype) * rt->job.units[0].block_elements;
    /* A throttled network holds completions on a timer, whatever path the bytes take, so no thread moves bytes. */
    out->thread_moves =
        !strcmp(sluice_world_path(rt->world), "direct") && strncmp(sluice_world_transport(rt->world), "throttle", 8);

    fit_scratch(&l);
    status = choose_share(&l);
    if (!status) status = slc_trains_begin(&l);
    if (!status) status = slc_train_operation_s(&l, &out->operation_s);
    if (!status) status = slc_measure_find_stretch(rt, &l.offset, &l.bytes);
    l.bytes = slc_least(l.bytes, 2 * (l.ahead ? SLC_RUN_AHEAD_MOST : SLC_RUN_MOST) + 2 * compute_bytes(&l));
    if (rt->size == 1) {
        out->kappa = 0;
        out->sigma = 1;
    }
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
