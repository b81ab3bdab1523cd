/* Two lists of samples, of reduce-scatters and of all-gathers; an empty one takes the other's line. */
#include "bench/nccl/link_fit.h"

#include "lib/base/status.h"
#include "lib/engine/measure/fit_link.h"

#include <math.h>
#include <stdlib.h>

static const double enough = 0.95; /* share of the bandwidth that a block reaches */
static const double least_s = 1e-9;

typedef struct {
    slc_link_sample *samples;
    size_t count;
} sample_list;

static void add_sample(sample_list *list, uint64_t bytes, double seconds)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->samples[i].bytes == bytes) {
            list->samples[i].seconds = fmin(list->samples[i].seconds, seconds);
            return;
        }
    list->samples[list->count++] = (slc_link_sample){bytes, seconds};
}

/* The least time that the step's nth operation took; infinite where no step has its time. */
static double least_time_s(const slc_job_steps *steps, size_t operation)
{
    double least = INFINITY;
    for (size_t r = 0; r < steps->rank_count; r++)
        for (size_t s = 0; s < steps->ranks[r].step_count; s++) {
            const slc_step_time *time = &steps->ranks[r].times[s * steps->operation_count + operation];
            if (time->begin_ns && time->end_ns >= time->begin_ns)
                least = fmin(least, (double)(time->end_ns - time->begin_ns) * 1e-9);
        }
    return isfinite(least) ? fmax(least, least_s) : least;
}

static void collect_samples(const slc_job_steps *steps, sample_list *reductions, sample_list *gathers)
{
    for (size_t i = 0; i < steps->operation_count; i++) {
        const slc_step_operation *operation = &steps->operations[i];
        double seconds = least_time_s(steps, i);
        if (!isfinite(seconds)) continue;
        bool both = operation->operation == SLC_RECORD_ALL_REDUCE;
        if (both) seconds /= 2;
        if (slc_step_reduces(operation)) add_sample(reductions, operation->bytes, seconds);
        if (both || !slc_step_reduces(operation)) add_sample(gathers, operation->bytes, seconds);
    }
}

/* Sizes that are nearly equal say nothing about the latency: their mean speed counts then. */
static slc_link_line fit_list(uint32_t world, const sample_list *list, bool *latency_seen)
{
    uint64_t least = UINT64_MAX, most = 0, bytes = 0;
    double seconds = 0;
    for (size_t i = 0; i < list->count; i++) {
        uint64_t size = list->samples[i].bytes;
        if (size < least) least = size;
        if (size > most) most = size;
        bytes += size;
        seconds += list->samples[i].seconds;
    }
    *latency_seen = list->count && most / 2 >= least;
    if (*latency_seen) return slc_fit_line(world, list->samples, list->count);
    return slc_fit_line(world, &(slc_link_sample){bytes, seconds}, 1);
}

sluice_status slc_link_figures_fit(const slc_job_steps *steps, slc_link_figures *out)
{
    sample_list reductions = {calloc(steps->operation_count + 1, sizeof *reductions.samples), 0};
    sample_list gathers = {calloc(steps->operation_count + 1, sizeof *gathers.samples), 0};
    sluice_status status = SLUICE_OK;
    *out = (slc_link_figures){.link = {.kappa = 0, .sigma = 1}};
    if (!reductions.samples || !gathers.samples) {
        status = slc_error(SLUICE_ERR_MEMORY, "%zu operations", steps->operation_count);
        goto free_samples;
    }
    collect_samples(steps, &reductions, &gathers);
    if (steps->world < 2 || !reductions.count) {
        status = steps->world < 2
                     ? slc_error(SLUICE_ERR_ARGUMENT, "the largest communicator has one rank, which says nothing of a "
                                                      "link; record a run on two ranks or more, and give this one as "
                                                      "--compute")
                     : slc_error(SLUICE_ERR_ARGUMENT, "no reduction has a time; record with SLUICE_SHIM_TIME=1");
        goto free_samples;
    }
    bool gathers_latency = true;
    out->link.reduce_scatter = fit_list(steps->world, &reductions, &out->latency_seen);
    out->link.all_gather =
        gathers.count ? fit_list(steps->world, &gathers, &gathers_latency) : out->link.reduce_scatter;
    out->latency_seen &= gathers_latency;
    out->sizes = reductions.count > gathers.count ? reductions.count : gathers.count;
    uint64_t reduce = slc_fit_run_bytes(steps->world, &out->link.reduce_scatter, 0, enough);
    uint64_t gather = slc_fit_run_bytes(steps->world, &out->link.all_gather, 0, enough);
    out->link.block_bytes = reduce > gather ? reduce : gather;
free_samples:
    free(reductions.samples);
    free(gathers.samples);
    return status;
}
