/* A rank inspects the reduced gradient that it owns (norm, non-finite values) and updates with it, on the communication
 * thread. Updates that the plan puts on the compute lane run on the compute threads at the same time.
 * tests/engine/engine_test.c covers this file. */
#include "lib/engine/step/update.h"

#include "lib/base/numbers/floats.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/model/unit.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/left_out.h"
#include "lib/kernels/convert/convert.h"
#include "lib/kernels/host.h"
#include "lib/kernels/step_words/looking.h"
#include "lib/plan/roles.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>
#include <string.h>

static sluice_status name_failure(const sluice_runtime *rt, const sluice_param *param, sluice_status status)
{
    return slc_error_context(status, "optimizer %s, parameter \"%s\"", rt->optimizer.name, param->name);
}

/* ---- Updates of a unit, gathered: a device that runs ahead gets many ranges by one launch ---- */

typedef enum { MEASURE, UPDATE } optimizer_call;

typedef struct {
    const sluice_runtime *rt;
    optimizer_call call;
    uint32_t count;
    sluice_update at[SLUICE_OPTIMIZER_RANGES_MAX];
    sluice_optimizer_sums sums[SLUICE_OPTIMIZER_RANGES_MAX]; /* MEASURE */
} gathering;

static bool gathers(const sluice_runtime *rt, optimizer_call call, const slc_step_state *step)
{
    return step->ahead && (call == UPDATE ? rt->optimizer.update_many != NULL : rt->optimizer.measure_many != NULL);
}

/* Hands the gathered ranges to the optimizer. */
static sluice_status gathering_end(gathering *g)
{
    const sluice_optimizer *o = &g->rt->optimizer;
    if (!g->count) return SLUICE_OK;
    const sluice_param *first = g->rt->model.params[g->at[0].parameter];
    const uint64_t before = slc_errors_set();
    sluice_status status = slc_error_bare(g->call == UPDATE ? o->update_many(g->at, g->count, o->context)
                                                            : o->measure_many(g->at, g->count, g->sums, o->context),
                                          before);
    g->count = 0;
    return name_failure(g->rt, first, status);
}

/* Returns true if the arrays of `next` go on where those of `last` end. */
static bool follows(const sluice_runtime *rt, const sluice_update *last, const sluice_update *next)
{
    const uint64_t count = last->count;
    if (last->parameter != next->parameter || next->value != last->value + count) return false;
    if (next->gradient != slc_element(last->gradient, last->gradient_dtype, count)) return false;
    if (last->rounded && next->rounded != slc_element(last->rounded, SLUICE_BF16, count)) return false;
    for (uint32_t s = 0; s < rt->optimizer.state_count; s++)
        if (next->state[s] != last->state[s] + count) return false;
    return true;
}

/* Blocks cut a parameter into ranges that may lie one after the other: these are one. What one call gets has one step
 * and one learning rate. */
static sluice_status gather(gathering *g, const sluice_update *update, const sluice_optimizer_sums *sums)
{
    sluice_update *last = g->count ? &g->at[g->count - 1] : NULL;
    if (last && follows(g->rt, last, update)) {
        last->count += update->count;
        return SLUICE_OK;
    }
    const bool ends = last && (g->count == SLUICE_OPTIMIZER_RANGES_MAX || last->step != update->step ||
                               last->learning_rate != update->learning_rate);
    sluice_status status = ends ? gathering_end(g) : SLUICE_OK;
    if (sums) g->sums[g->count] = *sums;
    g->at[g->count++] = *update;
    return status;
}

/* ---- Inspection ---- */

/* Lets the optimizer measure its norms on a part that this rank owns. */
static sluice_status measure_part(sluice_runtime *rt, uint32_t unit, const slc_part *part, const slc_step_state *step,
                                  gathering *gathered)
{
    const slc_unit_state *state = &rt->units[unit];
    sluice_status status = SLUICE_OK;
    for (uint32_t p = 0; !status && p < state->param_count; p++) {
        const sluice_param *param = state->params[p];
        slc_part range = slc_part_of_param(part, param);
        if (!range.count || slc_left_out_param(step, param)) continue;
        sluice_update update = slc_update_of(rt, unit, param, &range, step);
        update.gradient = slc_reduced_at(rt, unit, &range);
        update.gradient_dtype = state->reduced_dtype;
        update.stream = &rt->updates;
        int64_t(*bins)[SLC_NORM_BINS] = step->ahead ? step->ahead->norm_bins : rt->agreement.norm_bins;
        sluice_optimizer_sums sums = {{0}};
        for (uint32_t i = 0; i < rt->optimizer.norm_count + rt->optimizer.maximum_count; i++)
            sums.of[i] = bins[param->norm + i];
        if (gathered) {
            status = gather(gathered, &update, &sums);
            continue;
        }
        const uint64_t before = slc_errors_set();
        status = slc_error_bare(rt->optimizer.measure(&update, sums.of, rt->optimizer.context), before);
        status = name_failure(rt, param, status);
    }
    return status;
}

static slc_part owned_part(const sluice_runtime *rt, uint32_t unit, uint64_t block)
{
    return slc_unit_part(&rt->job.units[unit], (uint32_t)rt->replicas, block, (uint32_t)rt->replica);
}

static sluice_status measure_ahead(sluice_runtime *rt, uint32_t unit, uint64_t first, uint64_t count,
                                   const slc_step_state *step)
{
    gathering gathered = {.rt = rt, .call = MEASURE};
    gathering *into = gathers(rt, MEASURE, step) ? &gathered : NULL;
    sluice_status status = SLUICE_OK;
    for (uint64_t b = first; !status && b < first + count; b++) {
        const slc_part part = owned_part(rt, unit, b);
        status = measure_part(rt, unit, &part, step, into);
    }
    return status ? status : gathering_end(&gathered);
}

static sluice_status inspect_ahead(sluice_runtime *rt, uint32_t unit, uint64_t first, uint64_t count,
                                   const slc_step_state *step)
{
    const slc_unit_state *state = &rt->units[unit];
    slc_looking l;
    slc_looking_begin(&l, &rt->updates, step->ahead->words, state->reduced_dtype,
                      slc_measures_norm(rt) ? SLC_INSPECT_NORM : SLC_INSPECT_FINITE);
    sluice_status status = SLUICE_OK;
    for (uint64_t b = first; b < first + count; b++) {
        const slc_part part = owned_part(rt, unit, b);
        for (uint32_t p = 0; !status && p < state->param_count; p++) {
            const slc_part range = slc_part_of_param(&part, state->params[p]);
            if (range.count)
                status = slc_looking_add(&l, &(slc_step_words_range){range.count, slc_reduced_at(rt, unit, &range),
                                                                     state->params[p]->number});
        }
    }
    if (!status) status = slc_looking_end(&l);
    return status || !rt->agreement.norm_count ? status : measure_ahead(rt, unit, first, count, step);
}

/* Inspects a part of a reduced gradient, and adds to the norm if there is one. The norm's last bin counts values that
 * are not finite, so one pass is enough then. */
static sluice_status inspect_part(sluice_runtime *rt, uint32_t unit, const slc_part *part, slc_step_state *step,
                                  bool *finite)
{
    const void *gradient = slc_reduced_at(rt, unit, part);
    sluice_dtype dtype = rt->units[unit].reduced_dtype;
    int64_t *bad = &step->bins[SLC_NORM_BINS - 1], before = *bad;
    bool norm = slc_measures_norm(rt);
    *finite = true;
    sluice_status status = norm ? slc_norm_add(&rt->updates, dtype, part->count, gradient, step->bins)
                                : slc_all_finite(&rt->updates, dtype, part->count, gradient, finite);
    if (!status && rt->agreement.norm_count) status = measure_part(rt, unit, part, step, NULL);
    if (!status) status = slc_stream_synchronize(&rt->updates);
    if (norm) *finite = *bad == before;
    return status;
}

/* Finds the first parameter of a part that is not finite, by its number of registration, so that its layer can be
 * named. */
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
    if (step->ahead) return inspect_ahead(rt, unit, first, count, step);
    for (uint64_t b = first; b < first + count; b++) {
        slc_part part = owned_part(rt, unit, b);
        bool finite = true;
        sluice_status status = inspect_part(rt, unit, &part, step, &finite);
        if (status) return status;
        if (finite) continue;
        step->non_finite++;
        if (step->bad_param == SLC_NONE) status = find_non_finite(rt, unit, &part, &step->bad_param);
        if (status) return status;
    }
    return SLUICE_OK;
}

/* The rows are added to a split parameter's gradient last, so all of it is inspected then. */
sluice_status slc_inspect_reduced(sluice_runtime *rt, const slc_item *item, slc_step_state *step)
{
    const slc_unit *unit = &rt->job.units[item->unit];
    if (slc_looks_up(unit))
        return inspect_blocks(rt, unit->partner, 0, slc_unit_blocks(&rt->job.units[unit->partner]), step);
    return inspect_blocks(rt, item->unit, item->first_block, item->block_count, step);
}

/* Updates by an optimizer that knows fp32 only: gradients are widened before it and the new values rounded after it,
 * piece by piece while they are in the cache. */
static sluice_status update_in_fp32(const sluice_optimizer *optimizer, sluice_stream *stream, const sluice_update *all)
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

static sluice_status call_optimizer(const sluice_runtime *rt, sluice_stream *stream, const sluice_update *update)
{
    const sluice_optimizer *optimizer = &rt->optimizer;
    bool plain = update->gradient_dtype == SLUICE_FP32 && !update->rounded;
    return plain || optimizer->mixed_precision ? optimizer->update(update, optimizer->context)
                                               : update_in_fp32(optimizer, stream, update);
}

static sluice_update make_update(const sluice_runtime *rt, sluice_stream *stream, uint32_t unit,
                                 const sluice_param *param, const slc_part *range, const slc_step_state *step)
{
    const slc_unit_state *state = &rt->units[unit];
    bool own =
        !slc_updates_whole(state->strategy) || state->whole_sum; /* the sum, else the gradient that everybody has */
    sluice_update update = slc_update_of(rt, unit, param, range, step);
    update.gradient =
        own ? slc_reduced_at(rt, unit, range) : slc_element(state->gradient, state->gradient_dtype, range->first);
    update.gradient_dtype = own ? state->reduced_dtype : state->gradient_dtype;
    update.stream = stream;
    if (rt->agreement.norm_count) update.norms = (step->ahead ? step->ahead->norms : step->norms) + param->norm;
    /* Elsewhere no update waits for the agreement, and what it makes may be on its way. */
    if (step->ahead && (rt->config.clip > 0 || rt->config.nan == SLUICE_NAN_SKIP))
        update.words = &step->ahead->words->told;
    return update;
}

static sluice_status update_range(const sluice_runtime *rt, sluice_stream *stream, const sluice_update *update)
{
    const uint64_t before = slc_errors_set();
    sluice_status status = slc_error_bare(call_optimizer(rt, stream, update), before);
    return name_failure(rt, rt->model.params[update->parameter], status);
}

/* All elements that an item updates have places, counted through its ranges in whole grains, so that a share begins
 * where a range may. Returns the share of `range` that lies in places [first, last). The range begins at place *at, and
 * *at advances to its end. */
static slc_part share_of(const slc_part *range, uint64_t *at, uint64_t first, uint64_t last)
{
    uint64_t begin = *at, from = first > begin ? first - begin : 0, to = last > begin ? last - begin : 0;
    *at += (range->count + SLC_GRAIN - 1) / SLC_GRAIN * SLC_GRAIN;
    if (to > range->count) to = range->count;
    if (from > to) from = to;
    return (slc_part){range->first + from, to - from, range->shard_first + from};
}

/* Updates places [first, last); *places becomes the number of all places. */
static sluice_status update_places(const sluice_runtime *rt, sluice_stream *stream, const slc_item *item,
                                   const slc_step_state *step, uint64_t first, uint64_t last, uint64_t *places)
{
    const slc_unit_state *state = &rt->units[item->unit];
    bool whole = slc_updates_whole(state->strategy);
    gathering gathered = {.rt = rt, .call = UPDATE};
    const bool gathers_ranges = gathers(rt, UPDATE, step);
    *places = 0;
    for (uint64_t b = item->first_block; b < item->first_block + item->block_count; b++) {
        slc_part part = slc_unit_part(&rt->job.units[item->unit], whole ? 1 : (uint32_t)rt->replicas, b,
                                      whole ? 0 : (uint32_t)rt->replica);
        for (uint32_t p = 0; p < state->param_count; p++) {
            if (slc_left_out_param(step, state->params[p])) continue;
            slc_part range = slc_part_of_param(&part, state->params[p]);
            slc_part share = share_of(&range, places, first, last);
            if (!share.count) continue;
            const sluice_update update = make_update(rt, stream, item->unit, state->params[p], &share, step);
            sluice_status status =
                gathers_ranges ? gather(&gathered, &update, NULL) : update_range(rt, stream, &update);
            if (status) return status;
        }
    }
    return step->ahead ? gathering_end(&gathered) : slc_stream_synchronize(stream);
}

sluice_status slc_update_unit(sluice_runtime *rt, const slc_item *item, const slc_step_state *step)
{
    uint64_t places;
    if (!step->ahead && step->skip) return SLUICE_OK;
    if (slc_exchanges(rt->units[item->unit].strategy)) return slc_onebit_update(rt, item->unit, step);
    return update_places(rt, &rt->updates, item, step, 0, UINT64_MAX, &places);
}

/* ---- On the compute lane ---- */

typedef struct {
    sluice_runtime *rt;
    const slc_item *item;
    const slc_step_state *step;
    _Atomic int failed; /* the first failure of a share */
    char *line;         /* its error, from the thread that had it */
} sharing;

static void update_share(const void *args, uint32_t part, uint64_t first, uint64_t last)
{
    SLC_HOLD_FLOATS;
    sharing *all = (sharing *)(uintptr_t)args;
    uint64_t places;
    int none = SLUICE_OK;
    (void)part;
    sluice_stream stream; /* a thread's own */
    sluice_status status = slc_stream_create(all->rt->device, 1, &stream);
    if (!status) status = update_places(all->rt, &stream, all->item, all->step, first, last, &places);
    slc_stream_destroy(&stream);
    if (status && atomic_compare_exchange_strong(&all->failed, &none, status)) all->line = strdup(sluice_last_error());
}

sluice_status slc_update_on_compute(sluice_runtime *rt, const slc_item *item, const slc_step_state *step)
{
    enum { GRAIN = 16384 }; /* elements: less is not worth a thread */
    uint64_t began_ns = slc_clock_ns(), places;
    if (step->ahead) return update_places(rt, &rt->compute, item, step, 0, UINT64_MAX, &places);
    if (step->skip) return SLUICE_OK;
    sharing all = {.rt = rt, .item = item, .step = step};
    sluice_status status = update_places(rt, &rt->compute, item, step, 0, 0, &places); /* only counts */
    if (status) return status;
    slc_host_run(&rt->compute, places, GRAIN, SLC_GRAIN, update_share, &all);
    status = (sluice_status)all.failed;
    if (status) status = slc_error(status, "%s", all.line ? all.line : "update");
    free(all.line);
    slc_measure_add(&rt->measure->computed_update, began_ns, places);
    return status;
}
