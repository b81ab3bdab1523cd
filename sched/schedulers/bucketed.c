/* Schedules as PyTorch's DistributedDataParallel does: gradients are reduced in buckets of units that complete one
 * after another, each bucket as soon as its last gradient is complete. The sizes, and the rule that a bucket closes
 * once it has reached its size, are those of torch: bucket_cap_mb = 25 in torch/nn/parallel/distributed.py,
 * kDefaultFirstBucketBytes = 1 MiB and compute_bucket_assignment_by_size in torch/csrc/distributed/c10d/reducer.cpp.
 * Everything is reduced before the step ends; updated values of oss and sdp are gathered after that, in the order in
 * which the next forward needs them. schedulers_test.c covers this file. */
#include "lib/plan/strategy_table.h"
#include "sched/scheduler.h"

#include <stdlib.h>

enum { FIRST_BUCKET_BYTES = 1 << 20, BUCKET_BYTES = 25 << 20 };

typedef struct {
    uint32_t unit, ready; /* the slot that completes its gradient */
} reduction;

/* Trainable units by the slot that completes them; bucket b holds units [ends[b - 1], ends[b]). */
typedef struct {
    reduction *units;
    uint32_t *ends;
    uint32_t unit_count, bucket_count;
} buckets;

/* Orders reductions by the slot that completes their gradients. If one slot completes several units, the later unit
 * comes first, because backward runs from the last to the first. */
static int by_ready(const void *a, const void *b)
{
    const reduction *x = a, *y = b;
    if (x->ready != y->ready) return x->ready < y->ready ? -1 : 1;
    return (x->unit < y->unit) - (x->unit > y->unit);
}

static bool buckets_init(buckets *b, const slc_job *job)
{
    *b = (buckets){.units = malloc(((size_t)job->unit_count + 1) * sizeof *b->units),
                   .ends = malloc(((size_t)job->unit_count + 1) * sizeof *b->ends)};
    if (!b->units || !b->ends) return false;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        if (!job->units[u].trainable) continue;
        uint32_t first, last;
        slc_unit_gradient_slots(job, &job->units[u], &first, &last);
        b->units[b->unit_count++] = (reduction){u, last};
    }
    if (b->unit_count > 1) qsort(b->units, b->unit_count, sizeof *b->units, by_ready);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < b->unit_count; i++) {
        const slc_unit *unit = &job->units[b->units[i].unit];
        bytes += slc_operation_bytes(job, unit, SLC_ITEM_REDUCE_SCATTER, unit->elements);
        if (bytes < (b->bucket_count ? BUCKET_BYTES : FIRST_BUCKET_BYTES) && i + 1 < b->unit_count) continue;
        b->ends[b->bucket_count++] = i + 1;
        bytes = 0;
    }
    return true;
}

static void buckets_fini(buckets *b)
{
    free(b->ends);
    free(b->units);
}

/* Appends the buckets that `slot` completed. */
static void reduce(const void *context, const slc_scheduling *in, slc_order *order, uint32_t m, uint32_t slot)
{
    const buckets *b = context;
    const slc_job *job = in->job;
    bool last = m + 1 == job->micro_batches;
    if (!job->each && !last) return;
    for (uint32_t k = 0, first = 0; k < b->bucket_count; first = b->ends[k++]) {
        if (b->units[b->ends[k] - 1].ready != slot) continue;
        for (uint32_t i = first; i < b->ends[k]; i++) slc_order_reduce(order, job, in->strategies, m, b->units[i].unit);
        for (uint32_t i = first; last && i < b->ends[k]; i++)
            slc_order_update(order, job, in->strategies, slc_updated_after(job, in->strategies, b->units[i].unit));
    }
}

static void order_step(const buckets *b, const slc_scheduling *in, slc_order *order)
{
    slc_order_one_ahead(order, in, reduce, b);
    slc_order_updates_at_end(order, in->job, in->strategies);
    slc_order_value_gathers(order, in->job, in->strategies);
}

static void train(const slc_scheduling *in, slc_order *order)
{
    buckets b;
    if (buckets_init(&b, in->job))
        order_step(&b, in, order);
    else
        order->failed = true;
    buckets_fini(&b);
}

const slc_scheduler slc_scheduler_bucketed = {
    .name = "bucketed",
    .doc = "reduces gradients in buckets of 25 MB as they complete, as PyTorch DDP",
    .baseline = true,
    .train = train,
    .evaluate = slc_evaluate_one_ahead,
};
