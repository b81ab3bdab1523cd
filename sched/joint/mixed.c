/* "mixed": sdp for as many units as fit, fsdp for the others. The numbers of sdp units are tried from the largest down
 * by packing the real lifetimes; most of them are refused at once by their lower bound, without packing.
 * joint_test.c covers this file. */
#include "sched/joint/mixed.h"

#include "lib/base/status.h"
#include "sched/layout/make_plan.h"

#include <stdlib.h>
#include <string.h>

bool slc_strategies_free(const slc_job *job, const slc_strategy *strategies)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (slc_unit_is_free(&job->units[u], strategies[u])) return true;
    return false;
}

typedef struct {
    uint32_t unit;
    uint64_t gathers; /* gathers of whole values that sdp saves in a step */
    uint64_t elements;
} candidate;

/* Both the gathers saved and the bytes kept grow with a unit's size, so the number of gathers alone is the gain per
 * byte. Of two units with equal gain the smaller goes first, because more of them fit. */
static int by_gain(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->gathers != y->gathers) return x->gathers > y->gathers ? -1 : 1;
    if (x->elements != y->elements) return x->elements < y->elements ? -1 : 1;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

static uint32_t rank_free_units(const slc_job *job, const slc_strategy *free_units, candidate *out)
{
    uint32_t count = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        if (!slc_unit_is_free(&job->units[u], free_units[u])) continue;
        uint64_t windows = slc_unit_window_count(job, &job->units[u], true);
        uint64_t gathers = windows * job->micro_batches - (job->units[u].trainable ? 1 : 0);
        out[count++] = (candidate){u, gathers, job->units[u].elements};
    }
    if (count > 1) qsort(out, count, sizeof *out, by_gain);
    return count;
}

typedef struct {
    const slc_scheduling *in; /* free units are SLC_STRATEGIES in its strategies */
    const slc_scheduler *scheduler;
    candidate *ranked;
    uint32_t count;
    double until_s; /* nominal seconds of in->work */
} mixture;

static sluice_status mixture_init(mixture *m)
{
    m->ranked = calloc((size_t)m->in->job->unit_count + 1, sizeof *m->ranked);
    if (!m->ranked) return slc_error(SLUICE_ERR_MEMORY, "plan: no memory for %u units", m->in->job->unit_count);
    m->count = rank_free_units(m->in->job, m->in->strategies, m->ranked);
    return SLUICE_OK;
}

static bool is_over(const mixture *m)
{
    return slc_work_is_over(m->in->work, m->until_s);
}

static void fill_mixture(const mixture *m, uint32_t sdp, slc_strategy *out)
{
    const slc_job *job = m->in->job;
    for (uint32_t u = 0; u < job->unit_count; u++)
        out[u] = slc_unit_strategy(job, &job->units[u], m->in->strategies[u]);
    for (uint32_t i = 0; i < m->count; i++) out[m->ranked[i].unit] = i < sdp ? SLC_SDP : SLC_FSDP;
}

/* *bytes is UINT64_MAX if the arena is above `limit`. */
static sluice_status measure_mixture(const mixture *m, uint32_t sdp, uint64_t limit, slc_strategy *out, uint64_t *bytes)
{
    slc_scheduling in = *m->in;
    fill_mixture(m, sdp, out);
    in.strategies = out;
    sluice_status status = slc_plan_measure(&in, m->scheduler, limit, bytes);
    if (!status && *bytes > limit) *bytes = UINT64_MAX;
    return status;
}

/* Goes up from all fsdp, which is near the smallest, so that the lower bound refuses most of the others. */
static sluice_status find_smallest(const mixture *m, uint64_t limit, slc_strategy *out, uint64_t *arena_bytes)
{
    uint32_t smallest = 0;
    *arena_bytes = UINT64_MAX;
    for (uint32_t sdp = 0; sdp <= m->count && limit && (!sdp || !is_over(m)); sdp++) {
        uint64_t bytes;
        sluice_status status = measure_mixture(m, sdp, limit, out, &bytes);
        if (status) return status;
        if (bytes == UINT64_MAX) continue;
        smallest = sdp;
        *arena_bytes = bytes;
        limit = bytes - 1;
    }
    fill_mixture(m, smallest, out);
    return SLUICE_OK;
}

static sluice_status find_largest_mixture(const mixture *m, uint64_t limit, slc_strategy *out, uint64_t *arena_bytes)
{
    *arena_bytes = UINT64_MAX;
    for (uint32_t sdp = m->count + 1; sdp-- > 0;) {
        if (is_over(m)) return SLUICE_OK;
        sluice_status status = measure_mixture(m, sdp, limit, out, arena_bytes);
        if (status || *arena_bytes != UINT64_MAX) return status;
    }
    return find_smallest(m, UINT64_MAX - 1, out, arena_bytes);
}

sluice_status slc_mixed_choose(const slc_scheduling *in, const slc_scheduler *scheduler, uint64_t limit, double until_s,
                               slc_strategy *out, uint64_t *arena_bytes)
{
    mixture m = {.in = in, .scheduler = scheduler, .until_s = until_s};
    sluice_status status = mixture_init(&m);
    if (!status) status = find_largest_mixture(&m, limit, out, arena_bytes);
    free(m.ranked);
    return status;
}

sluice_status slc_mixed_smallest(const slc_scheduling *in, const slc_scheduler *scheduler, uint64_t limit,
                                 double until_s, slc_strategy *out, uint64_t *arena_bytes)
{
    mixture m = {.in = in, .scheduler = scheduler, .until_s = until_s};
    sluice_status status = mixture_init(&m);
    if (!status) status = find_smallest(&m, limit, out, arena_bytes);
    free(m.ranked);
    return status;
}

sluice_status slc_mixed_rank(const slc_job *job, const slc_strategy *strategies, uint32_t *out, uint32_t *count)
{
    slc_scheduling in = {.job = job, .strategies = strategies};
    mixture m = {.in = &in};
    sluice_status status = mixture_init(&m);
    *count = m.count;
    for (uint32_t i = 0; !status && i < m.count; i++) out[i] = m.ranked[i].unit;
    free(m.ranked);
    return status;
}
