/* Interval arithmetic on the moments at which the data of reductions became ready, step by step.
 * nccl_profile_test.c covers this file. */
#include "bench/nccl/profile/compute_times.h"

#include "lib/base/numbers/median.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS = 3 }; /* fewer have no median worth the name */

/* A moment, in ns: not before `low`, not after `high`. */
typedef struct {
    int64_t low, high;
} moment;

/* One step of one rank. */
typedef struct {
    const slc_step_unit *units;
    const slc_step_time *times;  /* [operations] */
    const slc_step_time *before; /* [operations] of the step directly before; NULL: there is none */
    size_t unit_count, operation_count;
} step_view;

/* Rows after those of the units' backwards. */
enum { FORWARD, STEP, TOGETHER, MORE_ROWS };

/* Lists of seconds, one a step. */
typedef struct {
    double *low, *high; /* [unit_count + MORE_ROWS][step_count] */
    size_t *counts;     /* [unit_count + MORE_ROWS] */
    size_t step_count, unit_count;
} samples;

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool all_timed(const slc_step_time *times, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (times[i].end_ns <= 0 || times[i].begin_ns <= 0 || times[i].end_ns < times[i].begin_ns) return false;
    return true;
}

static void add_sample(samples *s, size_t row, double low_ns, double high_ns)
{
    size_t at = row * s->step_count + s->counts[row]++;
    s->high[at] = fmax(high_ns, 0) * 1e-9;
    s->low[at] = fmin(fmax(low_ns, 0), fmax(high_ns, 0)) * 1e-9;
}

/* ---- One step ---- */

static int64_t last_reduction_end(const step_view *v, const slc_step_time *times)
{
    int64_t end = INT64_MIN;
    for (size_t u = 0; u < v->unit_count; u++) end = latest(end, times[v->units[u].reduction].end_ns);
    return end;
}

/* Time in which at least one of the operations before the first reduction ran, after `from`. They begin in order. */
static int64_t busy_before_first(const step_view *v, int64_t from)
{
    int64_t busy = 0;
    for (size_t i = 0; i < v->units[0].reduction; i++) {
        int64_t begin = latest(v->times[i].begin_ns, from);
        if (v->times[i].end_ns <= begin) continue;
        busy += v->times[i].end_ns - begin;
        from = v->times[i].end_ns;
    }
    return busy;
}

/* Bounds when the data of the first reduction was ready, seen from the step's beginning. */
static moment first_ready(const step_view *v)
{
    const slc_step_time *first = &v->times[v->units[0].reduction];
    if (!first->follows) return (moment){first->begin_ns, first->begin_ns};
    int64_t low = v->before ? last_reduction_end(v, v->before) : v->times[0].begin_ns;
    size_t gather = v->units[0].backward_gather;
    if (gather != SLC_NO_GATHER) low = latest(low, v->times[gather].end_ns);
    return (moment){low < first->begin_ns ? low : first->begin_ns, first->begin_ns};
}

static void sample_forward(const step_view *v, moment ready, samples *s)
{
    if (!v->before) return;
    int64_t from = last_reduction_end(v, v->before), first_gather = 0;
    if (v->units[0].reduction > 0) first_gather = v->times[0].end_ns - latest(v->times[0].begin_ns, from);
    add_sample(s, v->unit_count + FORWARD, (double)(ready.low - from - busy_before_first(v, from)),
               (double)(ready.high - from - latest(first_gather, 0)));
    const slc_step_time *first = &v->times[v->units[0].reduction], *earlier = &v->before[v->units[0].reduction];
    add_sample(s, v->unit_count + STEP, (double)(first->begin_ns - earlier->begin_ns),
               (double)(first->begin_ns - earlier->begin_ns));
}

/* The first unit's backward can begin no earlier than its gather ended, or than the step began. */
static void sample_first(const step_view *v, moment ready, samples *s)
{
    size_t gather = v->units[0].backward_gather;
    if (gather == SLC_NO_GATHER && !v->before) return;
    int64_t from = gather != SLC_NO_GATHER ? v->times[gather].end_ns : last_reduction_end(v, v->before);
    add_sample(s, 0, 0, (double)(ready.high - from));
}

static void sample_step(const step_view *v, samples *s)
{
    moment first = first_ready(v), previous = first;
    sample_forward(v, previous, s);
    sample_first(v, previous, s);
    for (size_t u = 1; u < v->unit_count; u++) {
        const slc_step_time *time = &v->times[v->units[u].reduction];
        moment begin = previous;
        if (v->units[u].backward_gather != SLC_NO_GATHER) {
            int64_t gathered = v->times[v->units[u].backward_gather].end_ns;
            begin = (moment){latest(begin.low, gathered), latest(begin.high, gathered)};
        }
        moment ready = {time->follows ? begin.low : time->begin_ns, time->begin_ns};
        add_sample(s, u, (double)(ready.low - begin.high), (double)(ready.high - begin.low));
        previous = (moment){latest(ready.low, begin.low), latest(ready.high, begin.low)};
    }
    add_sample(s, v->unit_count + TOGETHER, (double)(previous.low - first.high), (double)(previous.high - first.low));
}

/* ---- All steps of a rank, all ranks ---- */

static sluice_status samples_init(samples *s, size_t units, size_t steps)
{
    *s = (samples){.step_count = steps, .unit_count = units};
    s->low = calloc((units + MORE_ROWS) * steps + 1, sizeof *s->low);
    s->high = calloc((units + MORE_ROWS) * steps + 1, sizeof *s->high);
    s->counts = calloc(units + MORE_ROWS, sizeof *s->counts);
    return s->low && s->high && s->counts ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "times of %zu steps", steps);
}

static void samples_fini(samples *s)
{
    free(s->low);
    free(s->high);
    free(s->counts);
}

static slc_time_bounds medians_of(samples *s, size_t row)
{
    size_t count = s->counts[row];
    if (!count) return (slc_time_bounds){0};
    return (slc_time_bounds){slc_median(s->low + row * s->step_count, count),
                             slc_median(s->high + row * s->step_count, count)};
}

/* A rank that waits for a slower one finds its stream busy, so bounds that are loose count only if all ranks' are.
 */
static void keep_slowest(slc_time_bounds *slowest, slc_time_bounds rank)
{
    bool tighter = slc_is_loose(*slowest) && !slc_is_loose(rank),
         looser = !slc_is_loose(*slowest) && slc_is_loose(rank);
    if (slowest->high_s > 0 && looser) return;
    if (tighter || rank.high_s > slowest->high_s) *slowest = rank;
}

static sluice_status measure_rank(const slc_job_steps *steps, const slc_step_units *units, const slc_rank_steps *rank,
                                  slc_compute_times *out)
{
    samples s;
    slc_time_bounds step = {0};
    size_t operations = steps->operation_count;
    sluice_status status = samples_init(&s, units->count, rank->step_count);
    for (size_t i = 0; i < rank->step_count && !status; i++) {
        const slc_step_time *times = rank->times + i * operations;
        bool follows = i && rank->follows_step[i] && all_timed(times - operations, operations);
        if (!all_timed(times, operations)) continue;
        step_view view = {units->units, times, follows ? times - operations : NULL, units->count, operations};
        sample_step(&view, &s);
    }
    if (!status && s.counts[units->count + FORWARD] < STEPS - 1)
        status = slc_error(SLUICE_ERR_ARGUMENT,
                           "rank %d: only %zu of %zu steps have all their times and follow one that has; record more "
                           "steps with SLUICE_SHIM_TIME=1",
                           rank->rank, s.counts[units->count + FORWARD], rank->step_count);
    if (!status) {
        for (size_t u = 0; u < units->count; u++) keep_slowest(&out->backward[u], medians_of(&s, u));
        keep_slowest(&out->forward, medians_of(&s, units->count + FORWARD));
        keep_slowest(&out->together, medians_of(&s, units->count + TOGETHER));
        step = medians_of(&s, units->count + STEP);
        out->step_s = fmax(out->step_s, step.high_s);
        if (s.counts[units->count + FORWARD] < out->steps) out->steps = s.counts[units->count + FORWARD];
    }
    samples_fini(&s);
    return status;
}

sluice_status slc_compute_times_measure(const slc_job_steps *steps, const slc_step_units *units, slc_compute_times *out)
{
    *out = (slc_compute_times){.backward = calloc(units->count + 1, sizeof *out->backward), .steps = SIZE_MAX};
    sluice_status status = out->backward ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%zu units", units->count);
    for (size_t r = 0; r < steps->rank_count && !status; r++)
        status = measure_rank(steps, units, &steps->ranks[r], out);
    if (status) slc_compute_times_free(out);
    return status;
}

void slc_compute_times_free(slc_compute_times *times)
{
    free(times->backward);
    *times = (slc_compute_times){0};
}
