#include "lib/engine/model/regions.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/engine/runtime.h"
#include "lib/memory/pack.h"

#include <stdlib.h>

enum { PACK_TRIES = 64 }; /* orders tried if the first does not reach the live set */

static uint64_t aligned(uint64_t bytes)
{
    return slc_round_up(bytes, SLC_PACK_ALIGNMENT);
}

/* ---- One slot ---- */

/* Returns the most bytes that are live at one time; only times at which a life begins need to be looked at. */
static uint64_t most_live(const slc_slot_life *lives, uint32_t count)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        for (uint32_t k = 0; k < count; k++)
            if (lives[k].first <= lives[i].first && lives[i].first <= lives[k].last) bytes += aligned(lives[k].bytes);
        most = slc_most(most, bytes);
    }
    return most;
}

sluice_status slc_pack_slot(slc_slot_life *lives, uint32_t count, uint64_t *packed, uint64_t *live)
{
    *packed = 0;
    *live = most_live(lives, count);
    slc_pack_buffer *buffers = calloc((size_t)count + 1, sizeof *buffers);
    slc_pack_part *parts = calloc((size_t)count + 1, sizeof *parts);
    sluice_status status = buffers && parts ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%u workspaces", count);
    for (uint32_t i = 0; !status && i < count; i++) {
        uint64_t bytes = aligned(lives[i].bytes);
        uint32_t end = lives[i].last == UINT32_MAX ? UINT32_MAX : lives[i].last + 1;
        parts[i] = (slc_pack_part){0, bytes, lives[i].first, end};
        buffers[i] = (slc_pack_buffer){.bytes = bytes, .parts = &parts[i], .part_count = 1};
    }
    if (!status && count) status = slc_pack_within(buffers, count, 0, PACK_TRIES, packed, NULL);
    for (uint32_t i = 0; !status && i < count; i++) lives[i].offset = buffers[i].offset;
    free(buffers);
    free(parts);
    return status;
}

/* ---- The regions of a job ---- */

static bool is_of(const sluice_workspace *w, uint32_t layer, sluice_direction direction)
{
    return w->layer == layer && w->direction == direction;
}

/* `lives` has room for all workspaces. */
static sluice_status pack_region(sluice_runtime *rt, uint32_t layer, sluice_direction direction, slc_slot_life *lives)
{
    uint32_t slot = direction == SLUICE_FORWARD ? slc_forward_slot(layer) : slc_backward_slot(&rt->job, layer);
    slc_region *region = &rt->regions[slot];
    uint32_t count = 0;
    for (uint32_t i = 0; i < rt->model.workspace_count; i++) {
        const sluice_workspace *w = rt->model.workspaces[i];
        if (is_of(w, layer, direction))
            lives[count++] = (slc_slot_life){
                .bytes = slc_shape_bytes(rt, w->bytes, w->shape_bytes), .first = w->first, .last = w->last};
    }
    slc_region_sizes *sizes = &region->sizes;
    *sizes = (slc_region_sizes){0};
    for (uint32_t i = 0; i < count; i++) sizes->sum_bytes += aligned(lives[i].bytes);
    sluice_status status = slc_pack_slot(lives, count, &sizes->bytes, &sizes->live_bytes);
    for (uint32_t i = 0, k = 0; !status && i < rt->model.workspace_count; i++)
        if (is_of(rt->model.workspaces[i], layer, direction)) rt->model.workspaces[i]->offset = lives[k++].offset;
    return status;
}

/* Packs both regions of a layer. A backward that may recompute runs the forward first, so its region has room for the
 * forward's workspaces too. */
static sluice_status pack_layer(sluice_runtime *rt, uint32_t layer, slc_slot_life *lives)
{
    sluice_status status = pack_region(rt, layer, SLUICE_FORWARD, lives);
    if (!status) status = pack_region(rt, layer, SLUICE_BACKWARD, lives);
    slc_region_sizes *backward = &rt->regions[slc_backward_slot(&rt->job, layer)].sizes;
    if (rt->model.layers[layer]->can_recompute)
        backward->bytes = slc_most(backward->bytes, rt->regions[layer].sizes.bytes);
    return status;
}

static void take_larger(slc_region_sizes *mine, const slc_region_sizes *other)
{
    mine->bytes = slc_most(mine->bytes, other->bytes);
    mine->live_bytes = slc_most(mine->live_bytes, other->live_bytes);
    mine->sum_bytes = slc_most(mine->sum_bytes, other->sum_bytes);
}

/* A rank tells the sizes of its slots' regions, and behind them what it reserves. */
static sluice_status take_largest(sluice_runtime *rt)
{
    const uint32_t slots = slc_job_slots(&rt->job), count = slots + 1;
    slc_region_sizes *mine = calloc(count, sizeof *mine), *all = calloc((size_t)rt->size * count, sizeof *all);
    sluice_status status = mine && all ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "sizes of workspaces");
    for (uint32_t s = 0; !status && s < slots; s++) mine[s] = rt->regions[s].sizes;
    if (!status) mine[slots].bytes = rt->model.reserved_bytes;
    if (!status) status = sluice_world_all_gather(rt->world, mine, count * sizeof *mine, all);
    for (int r = 0; !status && r < rt->size; r++) {
        const slc_region_sizes *told = all + (size_t)r * count;
        for (uint32_t s = 0; s < slots; s++) take_larger(&rt->regions[s].sizes, &told[s]);
        rt->model.reserved_bytes = slc_most(rt->model.reserved_bytes, told[slots].bytes);
    }
    rt->job.reserved_bytes = rt->model.reserved_bytes;
    free(mine);
    free(all);
    return status;
}

/* Packs the regions of all slots, as large as the rank needs them that needs the most. */
static sluice_status pack_regions(sluice_runtime *rt)
{
    slc_slot_life *lives = calloc((size_t)rt->model.workspace_count + 1, sizeof *lives);
    sluice_status status = lives ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "workspaces");
    for (uint32_t l = 0; !status && l < rt->model.layer_count; l++) status = pack_layer(rt, l, lives);
    free(lives);
    return status ? status : take_largest(rt);
}

sluice_status slc_engine_shape_regions(sluice_runtime *rt)
{
    slc_job *job = &rt->job;
    sluice_status status = pack_regions(rt);
    for (uint32_t w = 0; !status && w < job->workspace_count; w++)
        job->workspaces[w].bytes = rt->regions[job->workspaces[w].slot].sizes.bytes;
    return status;
}

sluice_status slc_engine_make_regions(sluice_runtime *rt)
{
    slc_job *job = &rt->job;
    rt->regions = calloc(slc_job_slots(job), sizeof *rt->regions);
    job->workspaces = calloc(slc_job_slots(job), sizeof *job->workspaces);
    sluice_status status = SLUICE_OK;
    if (!rt->regions || !job->workspaces) status = slc_error(SLUICE_ERR_MEMORY, "workspaces");
    if (!status) status = pack_regions(rt);
    for (uint32_t s = 0; !status && s < slc_job_slots(job); s++) {
        slc_region *region = &rt->regions[s];
        region->workspace = region->sizes.bytes ? job->workspace_count : SLC_NONE;
        if (!region->sizes.bytes) continue;
        job->workspaces[job->workspace_count++] = (slc_workspace_life){
            .name = rt->model.layers[slc_slot_layer(job, s)]->name, .bytes = region->sizes.bytes, .slot = s};
    }
    return status;
}

/* ---- How well all of it packs ---- */

static bool is_dropped(const slc_job *job, const bool *recompute, const slc_activation_life *life)
{
    return life->recomputable && recompute[slc_slot_layer(job, life->first_slot)];
}

static bool lives_in(const slc_job *job, const bool *recompute, const slc_activation_life *life, uint32_t slot)
{
    if (is_dropped(job, recompute, life)) return slot == life->first_slot || slot == life->last_slot;
    return life->first_slot <= slot && slot <= life->last_slot;
}

static uint64_t most_live_in_slots(const slc_job *job, const bool *recompute, const uint64_t *live_bytes)
{
    uint64_t most = 0;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) {
        uint64_t bytes = live_bytes[s];
        for (uint32_t a = 0; a < job->activation_count; a++)
            if (lives_in(job, recompute, &job->activations[a], s)) bytes += aligned(job->activations[a].bytes);
        most = slc_most(most, bytes);
    }
    return most;
}

static uint32_t activation_parts(const slc_job *job, const bool *recompute, const slc_activation_life *life,
                                 slc_pack_part parts[2])
{
    uint64_t bytes = aligned(life->bytes);
    bool dropped = is_dropped(job, recompute, life);
    parts[0] = (slc_pack_part){0, bytes, life->first_slot, (dropped ? life->first_slot : life->last_slot) + 1};
    parts[1] = (slc_pack_part){0, bytes, life->last_slot, life->last_slot + 1};
    return dropped ? 2 : 1;
}

sluice_status slc_size_activations(const slc_job *job, const bool *recompute, const uint64_t *live_bytes,
                                   uint64_t workspace_sum, slc_activation_sizes *out)
{
    size_t count = (size_t)job->activation_count + job->workspace_count;
    *out = (slc_activation_sizes){.sum = workspace_sum, .bound = most_live_in_slots(job, recompute, live_bytes)};
    if (!count) return SLUICE_OK;
    slc_pack_buffer *buffers = calloc(count, sizeof *buffers);
    slc_pack_part(*parts)[2] = calloc(count, sizeof *parts);
    sluice_status status = buffers && parts ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%zu activations", count);
    for (uint32_t i = 0; !status && i < count; i++) {
        slc_pack_buffer *buffer = &buffers[i];
        *buffer = (slc_pack_buffer){.parts = parts[i], .part_count = 1};
        if (i < job->activation_count) {
            buffer->bytes = aligned(job->activations[i].bytes);
            buffer->part_count = activation_parts(job, recompute, &job->activations[i], parts[i]);
            out->sum += buffer->bytes;
        } else {
            const slc_workspace_life *life = &job->workspaces[i - job->activation_count];
            buffer->bytes = aligned(life->bytes);
            parts[i][0] = (slc_pack_part){0, buffer->bytes, life->slot, life->slot + 1};
        }
    }
    if (!status) status = slc_pack_within(buffers, count, 0, PACK_TRIES, &out->packed, NULL);
    free(buffers);
    free(parts);
    return status;
}

sluice_status slc_engine_account_activations(const sluice_runtime *rt, sluice_memory_report *report)
{
    const slc_job *job = &rt->job;
    uint64_t sum = 0, *live = calloc(slc_job_slots(job), sizeof *live);
    if (!live) return slc_error(SLUICE_ERR_MEMORY, "memory report");
    for (uint32_t s = 0; s < slc_job_slots(job); s++) {
        uint32_t layer = slc_slot_layer(job, s);
        sum += rt->regions[s].sizes.sum_bytes;
        live[s] = rt->regions[s].sizes.live_bytes;
        if (rt->current.plan->recompute[layer])
            live[s] = slc_most(live[s], rt->regions[slc_forward_slot(layer)].sizes.live_bytes);
    }
    slc_activation_sizes sizes;
    sluice_status status = slc_size_activations(job, rt->current.plan->recompute, live, sum, &sizes);
    free(live);
    if (status) return status;
    report->activation_sum_bytes = sizes.sum;
    report->activation_packed_bytes = sizes.packed;
    report->activation_bound_bytes = sizes.bound;
    return SLUICE_OK;
}
