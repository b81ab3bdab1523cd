/* What a rank does with the reduced gradient that it owns: look at it (norm, non-finite values) and update. Runs on the
 * communication thread; an update that the plan puts on the compute lane, on the compute threads, beside it. */
#include "lib/engine/runtime.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/kernels/convert/convert.h"
#include "lib/kernels/host.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>
#include <string.h>

const void *slc_reduced_at(const sluice_runtime *rt, uint32_t unit, const slc_part *part)
{
    const slc_unit_state *state = &rt->units[unit];
    bool shard = state->reduced && !state->whole_sum;
    return slc_element(state->reduced ? state->reduced : state->gradient, state->reduced_dtype,
                       shard ? part->shard_first : part->first);
}

sluice_update slc_update_of(const sluice_runtime *rt, uint32_t unit, const sluice_param *param, const slc_part *range,
                            const slc_step_state *step)
{
    const slc_unit_state *state = &rt->units[unit];
    uint64_t owned = slc_updates_whole(state->strategy) ? range->first : range->shard_first;
    void *value = state->shard ? slc_element(state->shard, state->dtype, range->shard_first)
                               : slc_element(state->value, state->dtype, range->first);
    sluice_update update = {
        .value = state->master ? state->master + owned : value,
        .rounded = state->master ? value : NULL,
        .count = range->count,
        .step = step->step,
        .learning_rate = step->learning_rate,
        .gradient_factor = step->factor,
        .no_decay = param->no_decay,
        .parameter = param->number,
    };
    for (uint32_t s = 0; s < rt->optimizer.state_count; s++) update.state[s] = state->state[s] + owned;
    return update;
}

/* What the optimizer wants to know of a part that this rank owns. */
static sluice_status measure_part(sluice_runtime *rt, uint32_t unit, const slc_part *part, const slc_step_state *step)
{
    const slc_unit_state *state = &rt->units[unit];
    sluice_status status = SLUICE_OK;
    for (uint32_t p = 0; !status && p < state->param_count; p++) {
        const sluice_param *param = state->params[p];
        slc_part range = slc_part_of_param(part, param);
        if (!range.count) continue;
        sluice_update update = slc_update_of(rt, unit, param, &range, step);
        update.gradient = slc_reduced_at(rt, unit, &range);
        update.gradient_dtype = state->reduced_dtype;
        int64_t *sums[SLUICE_OPTIMIZER_NORMS_MAX];
        for (uint32_t i = 0; i < rt->optimizer.norm_count + rt->optimizer.maximum_count; i++)
            sums[i] = rt->norm_bins[param->norm + i];
        status = rt->optimizer.measure(&update, sums, rt->optimizer.context);
        status = slc_error_context(status, "optimizer %s, parameter \"%s\"", rt->optimizer.name, param->name);
    }
    return status;
}

/* The norm's last bin counts what is not finite: one pass is enough where there is a norm. */
static sluice_status inspect_part(sluice_runtime *rt, uint32_t unit, const slc_part *part, slc_step_state *step,
                                  bool *finite)
{
    const void *gradient = slc_reduced_at(rt, unit, part);
    sluice_dtype dtype = rt->units[unit].reduced_dtype;
    int64_t *bad = &step->bins[SLC_NORM_BINS - 1], before = *bad;
    bool norm = rt->config.clip > 0;
    *finite = true;
    sluice_status status = norm ? slc_norm_add(&rt->updates, dtype, part->count, gradient, step->bins)
                                : slc_all_finite(&rt->updates, dtype, part->count, gradient, finite);
    if (!status && rt->norm_count) status = measure_part(rt, unit, part, step);
    if (!status) status = slc_stream_synchronize(&rt->updates);
    if (norm) *finite = *bad == before;
    return status;
}

/* The first parameter of a part that is not finite, so that its layer can be named: by number of registration. */
static sluice_status find_non_finite(sluice_runtime *rt, uint32_t unit, const slc_part *part, uint32_t *number)
{
    const slc_unit_state *state = &rt->units[unit];
    sluice_status status = SLUICE_OK;
    bool finite = true;
    uint32_t p = 0;
    for (; !status && finite && p < state->param_count; p++) {
        slc_part range = slc_part_of_param(part, state->params[p]);
        if (!range.count) continue;
        status =
            slc_all_finite(&rt->updates, state->reduced_dtype, range.count, slc_reduced_at(rt, unit, &range), &finite);
        if (!status) status = slc_stream_synchronize(&rt->updates);
    }
    if (!finite) *number = state->params[p - 1]->number;
    return status;
}

static sluice_status inspect_blocks(sluice_runtime *rt, uint32_t unit, uint64_t first, uint64_t count,
                                    slc_step_state *step)
{
    for (uint64_t b = first; b < first + count; b++) {
        slc_part part = slc_unit_part(&rt->job.units[unit], (uint32_t)rt->size, b, (uint32_t)rt->rank);
        bool finite;
        sluice_status status = inspect_part(rt, unit, &part, step, &finite);
        if (status) return status;
        if (finite) continue;
        step->non_finite++;
        if (step->bad_param == SLC_NONE) status = find_non_finite(rt, unit, &part, &step->bad_param);
        if (status) return status;
    }
    return SLUICE_OK;
}

/* The last that is added to a split parameter's gradient are its rows. */
sluice_status slc_inspect_reduced(sluice_runtime *rt, const slc_item *item, slc_step_state *step)
{
    const slc_unit *unit = &rt->job.units[item->unit];
    if (unit->role == SLC_UNIT_ROWS)
        return inspect_blocks(rt, unit->partner, 0, slc_unit_blocks(&rt->job.units[unit->partner]), step);
    return inspect_blocks(rt, item->unit, item->first_block, item->block_count, step);
}

/* For an optimizer that knows fp32 alone: gradients are widened before it and new values rounded behind it, piece by
 * piece while they are in the cache. */
static sluice_status update_in_fp32(const sluice_optimizer *optimizer, slc_stream *stream, const sluice_update *all)
{
    enum { PIECE = 1024 };
    _Alignas(64) float wide[PIECE];
    sluice_status status = SLUICE_OK;
    for (size_t at = 0; !status && at < all->count; at += PIECE) {
        sluice_update piece = *all;
        piece.count = all->count - at < PIECE ? all->count - at : PIECE;
        piece.value += at;
        piece.gradient = slc_element(all->gradient, all->gradient_dtype, at);
        piece.gradient_dtype = SLUICE_FP32;
        piece.rounded = NULL;
        for (uint32_t s = 0; s < optimizer->state_count; s++) piece.state[s] += at;
        if (all->gradient_dtype != SLUICE_FP32) {
            status = slc_convert(stream, all->gradient_dtype, piece.gradient, SLUICE_FP32, wide, piece.count);
            piece.gradient = wide;
        }
        if (!status) status = optimizer->update(&piece, optimizer->context);
        if (!status && all->rounded)
            status = slc_convert(stream, SLUICE_FP32, piece.value, SLUICE_BF16,
                                 slc_element(all->rounded, SLUICE_BF16, at), piece.count);
    }
    return status;
}

static sluice_status run_update(const sluice_runtime *rt, slc_stream *stream, const sluice_update *update)
{
    const sluice_optimizer *optimizer = &rt->optimizer;
    bool plain = update->gradient_dtype == SLUICE_FP32 && !update->rounded;
    return plain || optimizer->mixed_precision ? optimizer->update(update, optimizer->context)
                                               : update_in_fp32(optimizer, stream, update);
}

static sluice_status update_range(const sluice_runtime *rt, slc_stream *stream, uint32_t unit,
                                  const sluice_param *param, const slc_part *range, const slc_step_state *step)
{
    const slc_unit_state *state = &rt->units[unit];
    bool own = state->strategy != SLC_DP || state->whole_sum; /* the sum, else the gradient that everybody has */
    sluice_update update = slc_update_of(rt, unit, param, range, step);
    update.gradient =
        own ? slc_reduced_at(rt, unit, range) : slc_element(state->gradient, state->gradient_dtype, range->first);
    update.gradient_dtype = own ? state->reduced_dtype : state->gradient_dtype;
    if (rt->norm_count) update.norms = step->norms + param->norm;
    sluice_status status = run_update(rt, stream, &update);
    return slc_error_context(status, "optimizer %s, parameter \"%s\"", rt->optimizer.name, param->name);
}

/* An item's elements that this rank updates are counted in grains, so that a share of them begins where ranges may. */
static uint64_t whole_grains(uint64_t elements)
{
    return (elements + SLC_GRAIN - 1) / SLC_GRAIN * SLC_GRAIN;
}

/* What of `range`, which begins at place *at of all, lies in places [first, last); *at moves behind it. */
static slc_part share_of(const slc_part *range, uint64_t *at, uint64_t first, uint64_t last)
{
    uint64_t begin = *at, from = first > begin ? first - begin : 0, to = last > begin ? last - begin : 0;
    *at += whole_grains(range->count);
    if (to > range->count) to = range->count;
    if (from > to) from = to;
    return (slc_part){range->first + from, to - from, range->shard_first + from};
}

/* Updates places [first, last); *places: how many there are. */
static sluice_status update_places(const sluice_runtime *rt, slc_stream *stream, const slc_item *item,
                                   const slc_step_state *step, uint64_t first, uint64_t last, uint64_t *places)
{
    const slc_unit_state *state = &rt->units[item->unit];
    bool whole = state->strategy == SLC_DP;
    *places = 0;
    for (uint64_t b = item->first_block; b < item->first_block + item->block_count; b++) {
        slc_part part = slc_unit_part(&rt->job.units[item->unit], whole ? 1 : (uint32_t)rt->size, b,
                                      whole ? 0 : (uint32_t)rt->rank);
        for (uint32_t p = 0; p < state->param_count; p++) {
            slc_part range = slc_part_of_param(&part, state->params[p]);
            slc_part share = share_of(&range, places, first, last);
            if (!share.count) continue;
            sluice_status status = update_range(rt, stream, item->unit, state->params[p], &share, step);
            if (status) return status;
        }
    }
    return slc_stream_synchronize(stream);
}

sluice_status slc_update_unit(sluice_runtime *rt, const slc_item *item, const slc_step_state *step)
{
    uint64_t places;
    if (step->skip) return SLUICE_OK;
    if (rt->units[item->unit].strategy == SLC_ONEBIT) return slc_onebit_update(rt, item->unit, step);
    return update_places(rt, &rt->updates, item, step, 0, UINT64_MAX, &places);
}

/* ---- On the compute lane ---- */

typedef struct {
    sluice_runtime *rt;
    const slc_item *item;
    const slc_step_state *step;
    _Atomic int failed; /* of the shares, the first status that was none */
    char *line;         /* its error, from the thread that had it */
} sharing;

static void update_share(const void *args, uint32_t part, uint64_t first, uint64_t last)
{
    sharing *all = (sharing *)(uintptr_t)args;
    uint64_t places;
    int none = SLUICE_OK;
    (void)part;
    slc_stream stream; /* a thread's own */
    sluice_status status = slc_stream_create(all->rt->device, 1, &stream);
    if (!status) status = update_places(all->rt, &stream, all->item, all->step, first, last, &places);
    slc_stream_destroy(&stream);
    if (status && atomic_compare_exchange_strong(&all->failed, &none, status)) all->line = strdup(sluice_last_error());
}

sluice_status slc_update_on_compute(sluice_runtime *rt, const slc_item *item, const slc_step_state *step)
{
    enum { GRAIN = 16384 }; /* elements: less is not worth a thread */
    uint64_t began_ns = slc_clock_ns(), places;
    if (step->skip) return SLUICE_OK;
    sharing all = {.rt = rt, .item = item, .step = step};
    sluice_status status = update_places(rt, &rt->compute, item, step, 0, 0, &places); /* only counts */
    if (status) return status;
    slc_host_run(&rt->compute, places, GRAIN, SLC_GRAIN, update_share, &all);
    status = (sluice_status)all.failed;
    if (status) status = slc_error(status, "%s", all.line ? all.line : "update");
    free(all.line);
    slc_measure_computed_update(rt->measure, began_ns, places);
    return status;
}
