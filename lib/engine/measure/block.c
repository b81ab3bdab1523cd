/* The link is measured in memory of its own, before there is a job, with operations of one block.
 * measure_link_test.c covers this file. */
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/engine/measure/lines.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/runtime.h"

#include <stdlib.h>

static const double share = 0.25; /* of the durations that measurements take with a plan */

typedef struct {
    slc_measure_lab lab;
    slc_segment segment;
    uint64_t scratch_bytes;
} bench;

static uint64_t segment_bytes(const bench *b)
{
    return b->lab.link_bytes + b->scratch_bytes;
}

/* *all becomes true if every rank's GPU has four times the memory free, because a training program needs most of it. */
static sluice_status find_room(const bench *b, bool *all)
{
    slc_device_facts facts;
    sluice_status status = slc_device_get_facts(b->lab.rt->device, &facts);
    double lacking = status || segment_bytes(b) > facts.free_bytes / 4;
    sluice_status agreed = sluice_world_all_reduce(b->lab.rt->world, &lacking, 1);
    *all = !(lacking > 0);
    return status ? status : agreed;
}

static sluice_status attach(bench *b)
{
    slc_measure_lab *l = &b->lab;
    sluice_status status = slc_segment_create(l->rt->device, segment_bytes(b), &b->segment);
    if (status) return status;
    l->link = b->segment.base;
    status = slc_comm_attach(l->rt->comm, &b->segment, l->link + l->link_bytes, b->scratch_bytes);
    l->rt->lanes.next_operation = atomic_load(&slc_comm_completed(l->rt->comm)->value);
    return status;
}

static sluice_status measure(bench *b, slc_link *link)
{
    sluice_status status = slc_trains_begin(&b->lab);
    if (!status) status = slc_lines_warm_up(&b->lab);
    if (!status) status = slc_train_operation_s(&b->lab, &link->operation_s);
    return status ? status : slc_lines_measure(&b->lab, link->operation_s, &link->reduce_scatter, &link->all_gather);
}

sluice_status slc_measure_block(sluice_runtime *rt, sluice_dtype dtype, uint64_t least, uint64_t most, uint64_t *bytes)
{
    const uint64_t each = sluice_dtype_bytes(dtype), grain = SLC_GRAIN * (uint64_t)rt->size;
    bench b = {.lab = {.rt = rt, .grain = each * grain, .share = share, .dtype = dtype, .ahead = true}};
    slc_measure_lab *l = &b.lab;
    slc_link link = {0};
    bool all = false;
    *bytes = least;
    l->block_elements = slc_most(most / sizeof(float) / grain * grain, grain);
    l->link_bytes = l->block_elements * each;
    b.scratch_bytes = slc_comm_scratch_bytes(rt->comm, l->link_bytes);
    l->m = calloc(1, sizeof *l->m);
    if (!l->m) return slc_error(SLUICE_ERR_MEMORY, "measurement of a block");
    sluice_status status = find_room(&b, &all);
    if (!status && all) status = attach(&b);
    if (!status && all) status = measure(&b, &link);
    if (b.segment.base) {
        (void)slc_comm_attach(rt->comm, NULL, NULL, 0);
        slc_segment_destroy(&b.segment);
    }
    slc_measure_destroy(l->m);
    if (status || !all) return status;
    const uint64_t wanted = slc_lines_enough_bytes(l, &link) / each * sizeof(float);
    while (*bytes < most && *bytes < wanted) *bytes *= 2;
    return SLUICE_OK;
}
