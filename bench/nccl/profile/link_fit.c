/* Two lists of samples, of reduce-scatters and of all-gathers; an empty one takes the other's line.
 * nccl_profile_test.c covers this file. */
#include "bench/nccl/profile/link_fit.h"

#include "lib/base/bisect.h"
#include "lib/base/integer.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"
#include "lib/plan/measured/fit_link.h"

#include <math.h>
#include <stdlib.h>

static const double enough = 0.95; /* share of the bandwidth that a block reaches */
static const double least_s = 1e-9;

typedef struct {
    slc_link_sample *samples;
    size_t count;
} sample_list;

/* Operations of a communicator run one after another, whatever their streams: an operation's time counts from the end
 * of the one before it. */
static int64_t time_alone_ns(const slc_step_time *times, size_t count, size_t operation)
{
    int64_t begin = times[operation].begin_ns, end = times[operation].end_ns;
    for (size_t i = 0; i < count; i++)
        if (i != operation && times[i].end_ns > begin && times[i].end_ns < end) begin = times[i].end_ns;
    return end - begin;
}

/* Returns the step of a rank that begins with a call of this number; NULL: it is not recorded. */
static const slc_step_time *step_of(const slc_job_steps *steps, const slc_rank_steps *rank, uint64_t number)
{
    SLC_BISECT(size_t, low, 0, rank->step_count, rank->numbers[low] < number);
    bool found = low < rank->step_count && rank->numbers[low] == number;
    return found ? rank->times + low * steps->operation_count : NULL;
}

/* Returns how long an operation took on the rank that came to it last, which waited for nobody, in step number `step`
 * of the first rank. Negative if a rank's time is not known. */
static double last_rank_s(const slc_job_steps *steps, size_t step, size_t operation)
{
    int64_t least = INT64_MAX;
    for (size_t r = 0; r < steps->rank_count; r++) {
        const slc_step_time *times = step_of(steps, &steps->ranks[r], steps->ranks[0].numbers[step]);
        if (!times || times[operation].begin_ns <= 0 || times[operation].end_ns < times[operation].begin_ns) return -1;
        int64_t took = time_alone_ns(times, steps->operation_count, operation);
        if (took < least) least = took;
    }
    return fmax((double)least * 1e-9, least_s);
}

/* The median over steps; if ranks are missing, the least time. `room` is for a time of each step. Infinite if no
 * step has its time. */
static double operation_time_s(const slc_job_steps *steps, size_t operation, double *room)
{
    size_t count = 0;
    for (size_t s = 0; s < steps->ranks[0].step_count; s++) {
        double seconds = last_rank_s(steps, s, operation);
        if (seconds > 0) room[count++] = seconds;
    }
    if (!count) return INFINITY;
    double median = slc_median(room, count); /* sorts */
    return steps->rank_count == steps->world ? median : room[0];
}

static void add_sample(sample_list *list, uint64_t bytes, double seconds)
{
    list->samples[list->count++] = (slc_link_sample){bytes, seconds, 0};
}

static sluice_status collect_samples(const slc_job_steps *steps, sample_list *reductions, sample_list *gathers)
{
    double *room = calloc(steps->ranks[0].step_count + 1, sizeof *room);
    if (!room) return slc_error(SLUICE_ERR_MEMORY, "%zu steps", steps->ranks[0].step_count);
    for (size_t i = 0; i < steps->operation_count; i++) {
        const slc_step_operation *operation = &steps->operations[i];
        double seconds = operation_time_s(steps, i, room);
        if (!isfinite(seconds)) continue;
        bool both = operation->operation == SLC_RECORD_ALL_REDUCE;
        if (both) seconds /= 2;
        if (slc_step_reduces(operation)) add_sample(reductions, operation->bytes, seconds);
        if (both || !slc_step_reduces(operation)) add_sample(gathers, operation->bytes, seconds);
    }
    free(room);
    return SLUICE_OK;
}

static size_t count_sizes(const sample_list *list)
{
    size_t sizes = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) seen = list->samples[k].bytes == list->samples[i].bytes;
        sizes += !seen;
    }
    return sizes;
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
    return slc_fit_line(world, &(slc_link_sample){bytes, seconds, 0}, 1);
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
    status = collect_samples(steps, &reductions, &gathers);
    if (status) goto free_samples;
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
    out->sizes = slc_most(count_sizes(&reductions), count_sizes(&gathers));
    uint64_t reduce = slc_fit_run_bytes(steps->world, &out->link.reduce_scatter, 0, enough);
    uint64_t gather = slc_fit_run_bytes(steps->world, &out->link.all_gather, 0, enough);
    out->link.block_bytes = slc_most(reduce, gather);
free_samples:
    free(reductions.samples);
    free(gathers.samples);
    return status;
}
