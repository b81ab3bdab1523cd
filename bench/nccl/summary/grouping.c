/* One pass over each process's entries; each thread has the sequence that it is in.
 * bench/nccl/nccl_test.c covers this file. */
#include "bench/nccl/summary/grouping.h"

#include "bench/nccl/steps/steps.h"
#include "lib/base/array.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 64, /* later threads are not looked at */
    NEIGHBOURS_NS = 50000,
    SMALL_BYTES = 4096, /* an operation of so few bytes takes alpha */
    LEAST_SAMPLES = 8
};

typedef struct {
    const slc_nccl_process *process;
    slc_nccl_sequence open[THREADS];     /* calls 0: none */
    const slc_nccl_entry *last[THREADS]; /* the call before, of each thread */
    slc_nccl_grouping *out;
} scan;

/* Measures alpha: the median time of small operations that are in no group. */
static sluice_status measure_alpha(const slc_nccl_records *records, slc_nccl_fusing_costs *costs)
{
    size_t most = 1, samples = 0;
    for (size_t i = 0; i < records->count; i++) most += records->processes[i].entry_count;
    double *times = malloc(most * sizeof *times);
    if (!times) return slc_error(SLUICE_ERR_MEMORY, "times of small operations");
    for (size_t i = 0; i < records->count; i++)
        for (size_t k = 0; k < records->processes[i].entry_count; k++) {
            const slc_nccl_entry *e = &records->processes[i].entries[k];
            if (e->end_ns > e->begin_ns && slc_nccl_moves_data(e) && !(e->flags & SLC_RECORD_GROUPED) &&
                slc_nccl_entry_bytes(&records->processes[i], e) <= SMALL_BYTES)
                times[samples++] = (double)(e->end_ns - e->begin_ns) * 1e-9;
        }
    if (samples >= LEAST_SAMPLES) {
        costs->alpha_s = slc_median(times, samples);
        costs->alpha_is_measured = true;
    }
    free(times);
    return SLUICE_OK;
}

static double alpha_of(const slc_nccl_fusing_costs *costs, bool grouped)
{
    return grouped ? costs->grouped_alpha_s : costs->alpha_s;
}

/* Returns true if the call is small enough that copying it costs less than an operation. */
static bool is_small(const scan *s, const slc_nccl_entry *e)
{
    const slc_nccl_fusing_costs *costs = &s->out->costs;
    double copies_s = 4 * (double)slc_nccl_entry_bytes(s->process, e) / costs->memory_bytes_per_s;
    return copies_s < alpha_of(costs, e->flags & SLC_RECORD_GROUPED);
}

static bool may_be_grouped(const scan *s, const slc_nccl_entry *e)
{
    const unsigned not = SLC_RECORD_CAPTURED | SLC_RECORD_FAILED | SLC_RECORD_FUSED | SLC_RECORD_COMPRESSED;
    return e->operation < SLC_RECORD_SPLIT && !(e->flags & not ) && e->communicator != SLC_RECORD_NO_COMMUNICATOR &&
           is_small(s, e);
}

static bool continues(const slc_nccl_entry *before, const slc_nccl_entry *e)
{
    if (before->communicator != e->communicator || before->stream != e->stream || before->operation != e->operation ||
        before->dtype != e->dtype || before->redop != e->redop || before->peer != e->peer)
        return false;
    if ((before->flags & SLC_RECORD_GROUPED) != (e->flags & SLC_RECORD_GROUPED)) return false;
    if (e->flags & SLC_RECORD_GROUPED) return before->group == e->group;
    /* A call that comes at once may still wait on its stream for what it sends: then a group would hold up the others.
     */
    if (before->end_ns && e->end_ns && e->begin_ns - before->end_ns > NEIGHBOURS_NS) return false;
    return e->time_ns - before->time_ns <= NEIGHBOURS_NS;
}

static bool same_shape(const slc_nccl_sequence *a, const slc_nccl_sequence *b)
{
    return a->grouped == b->grouped && a->calls == b->calls && a->bytes == b->bytes &&
           a->first->operation == b->first->operation && a->first->dtype == b->first->dtype &&
           a->first->redop == b->first->redop &&
           a->process->communicators[a->first->communicator].key ==
               b->process->communicators[b->first->communicator].key;
}

/* Adds the thread's sequence to those of its shape, if it would gain. */
static sluice_status close_sequence(scan *s, unsigned thread)
{
    slc_nccl_sequence *open = &s->open[thread];
    slc_nccl_grouping *out = s->out;
    const slc_nccl_fusing_costs *costs = &out->costs;
    uint64_t calls = open->calls;
    open->saved_s = (double)(calls - 1) * alpha_of(costs, open->grouped);
    open->spent_s = 2 * costs->kappa_s + 4 * (double)open->bytes / costs->memory_bytes_per_s;
    if (calls < 2 || open->saved_s <= open->spent_s) {
        open->calls = 0;
        return SLUICE_OK;
    }
    for (size_t i = 0; i < out->count && open->calls; i++)
        if (same_shape(&out->sequences[i], open)) {
            out->sequences[i].count++;
            open->calls = 0;
        }
    if (!open->calls) return SLUICE_OK;
    if (!SLC_ROOM_FOR_ONE(out->sequences, out->count))
        return slc_error(SLUICE_ERR_MEMORY, "sequences of %s", s->process->path);
    open->count = 1;
    out->sequences[out->count++] = *open;
    open->calls = 0;
    return SLUICE_OK;
}

static sluice_status look_at(scan *s, const slc_nccl_entry *e)
{
    if (e->thread >= THREADS) return SLUICE_OK;
    slc_nccl_sequence *open = &s->open[e->thread];
    bool wanted = may_be_grouped(s, e);
    sluice_status status = SLUICE_OK;
    if (open->calls && !(wanted && continues(s->last[e->thread], e))) status = close_sequence(s, e->thread);
    s->last[e->thread] = e;
    if (status || !wanted) return status;
    if (!open->calls)
        *open = (slc_nccl_sequence){.process = s->process, .first = e, .grouped = (e->flags & SLC_RECORD_GROUPED) != 0};
    open->calls++;
    open->bytes += slc_nccl_entry_bytes(s->process, e);
    return SLUICE_OK;
}

static int by_gain(const void *a, const void *b)
{
    const slc_nccl_sequence *x = a, *y = b;
    double gain = (x->saved_s - x->spent_s) * (double)x->count, other = (y->saved_s - y->spent_s) * (double)y->count;
    return gain > other ? -1 : gain < other;
}

sluice_status slc_nccl_grouping_find(const slc_nccl_records *records, slc_nccl_grouping *out)
{
    *out = (slc_nccl_grouping){
        .costs = {.alpha_s = 12e-6, .grouped_alpha_s = 1e-6, .kappa_s = 2e-6, .memory_bytes_per_s = 3e12}};
    sluice_status status = measure_alpha(records, &out->costs);
    scan *s = malloc(sizeof *s);
    if (!status && !s) status = slc_error(SLUICE_ERR_MEMORY, "sequences of calls");
    for (size_t i = 0; !status && i < records->count; i++) {
        *s = (scan){.process = &records->processes[i], .out = out};
        for (size_t k = 0; !status && k < s->process->entry_count; k++) status = look_at(s, &s->process->entries[k]);
        for (unsigned t = 0; !status && t < THREADS; t++)
            if (s->open[t].calls) status = close_sequence(s, t);
    }
    if (out->count) qsort(out->sequences, out->count, sizeof *out->sequences, by_gain);
    free(s);
    return status;
}

void slc_nccl_grouping_free(slc_nccl_grouping *grouping)
{
    free(grouping->sequences);
    *grouping = (slc_nccl_grouping){0};
}
