/* Finds what each decision saves and costs, by the same sizes and times that the planner reads.
 * tests/command/plan/plan_table_test.sh covers this file. */
#include "bench/plan/words/decisions.h"

#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>

enum { ROWS_MOST = 7 }; /* with its head and its sums a table has at most 15 lines */

/* ---- What a unit's strategy saves and costs ---- */

static double gathers_s(const slc_shown_plan *shown, const slc_unit *unit)
{
    const slc_job *job = &shown->profile->job;
    const slc_times *times = &shown->profile->times;
    const uint32_t windows = slc_unit_window_count(job, unit, true);
    double value = unit->trainable ? slc_operation_s(job, times, SLC_ITEM_GATHER_VALUE, unit, unit->elements) : 0;
    return windows * job->micro_batches * slc_operation_s(job, times, SLC_ITEM_GATHER_WINDOW, unit, unit->elements) -
           value;
}

static void weigh_onebit(const slc_shown_plan *shown, const slc_unit *unit, slc_decision *d)
{
    const slc_job *job = &shown->profile->job;
    const slc_times *times = &shown->profile->times;
    d->more_bytes =
        (int64_t)slc_resident_bytes(job, unit, SLC_ONEBIT) - (int64_t)slc_resident_bytes(job, unit, SLC_SDP);
    d->passes_s = slc_passes_s(times, unit->elements);
    d->exchange_s = slc_operation_s(job, times, SLC_ITEM_EXCHANGE, unit, unit->elements);
    d->averaged_s = slc_operation_s(job, times, SLC_ITEM_REDUCE_SCATTER, unit, unit->elements) +
                    slc_operation_s(job, times, SLC_ITEM_GATHER_VALUE, unit, unit->elements);
}

static void weigh_rows(const slc_shown_plan *shown, const slc_unit *unit, slc_decision *d)
{
    const slc_job *job = &shown->profile->job;
    const slc_times *times = &shown->profile->times;
    d->rows_gather_s = slc_operation_s(job, times, SLC_ITEM_GATHER_WINDOW, unit, unit->elements);
    d->rows_reduce_s = slc_operation_s(job, times, SLC_ITEM_REDUCE_SCATTER, unit, unit->elements);
}

static slc_decision decide_unit(const slc_shown_plan *shown, uint32_t u)
{
    const slc_job *job = &shown->profile->job;
    const slc_times *times = &shown->profile->times;
    const slc_unit *unit = &job->units[u];
    slc_decision d = {.unit = u,
                      .first_layer = unit->uses[0].layer,
                      .last_layer = unit->fused ? unit->uses[unit->use_count - 1].layer : unit->uses[0].layer,
                      .strategy = shown->plan->strategies[u]};
    d.resident_bytes = slc_resident_bytes(job, unit, d.strategy);
    if (slc_looks_up(unit)) {
        weigh_rows(shown, unit, &d);
    } else if (d.strategy == SLC_ONEBIT && unit->trainable) {
        weigh_onebit(shown, unit, &d);
    } else {
        d.more_bytes =
            (int64_t)slc_resident_bytes(job, unit, SLC_SDP) - (int64_t)slc_resident_bytes(job, unit, SLC_FSDP);
        d.gathers_s = gathers_s(shown, unit);
    }
    if (unit->fused)
        d.fused_s = (unit->use_count - 1) * (slc_transfer_s(job, times, SLC_ITEM_REDUCE_SCATTER, 0) +
                                             slc_transfer_s(job, times, SLC_ITEM_GATHER_VALUE, 0));
    return d;
}

/* ---- Recomputation ---- */

static void add_layer(const slc_shown_plan *shown, uint32_t layer, slc_decision *d)
{
    const slc_job *job = &shown->profile->job;
    d->layers++;
    if (!shown->plan->recompute || !shown->plan->recompute[layer]) return;
    d->recomputed++;
    d->recompute_s += job->micro_batches * shown->profile->times.recompute_s[layer];
    for (uint32_t a = 0; a < job->activation_count; a++)
        if (job->activations[a].recomputable && job->activations[a].first_slot == slc_forward_slot(layer))
            d->recompute_bytes += job->activations[a].bytes;
}

/* A layer belongs to the unit that is its own, or else to the tied one that begins with it. */
static slc_decision *owner_of(const slc_job *job, slc_decision *decisions, uint32_t count, uint32_t layer)
{
    slc_decision *tied = NULL;
    for (uint32_t i = 0; i < count; i++) {
        slc_decision *d = &decisions[i];
        if (d->unit == SLC_NONE || layer < d->first_layer || layer > d->last_layer) continue;
        const slc_unit *unit = &job->units[d->unit];
        if (unit->fused || unit->use_count == 1) return d;
        tied = tied ? tied : d;
    }
    return tied;
}

/* ---- Rows ---- */

static uint32_t recomputation(const slc_decision *d)
{
    return d->recomputed == 0 ? 0 : d->recomputed == d->layers ? 1 : 2;
}

static bool units_alike(const slc_unit *a, const slc_unit *b)
{
    return a->elements == b->elements && a->dtype == b->dtype && a->use_count == b->use_count && a->fused == b->fused;
}

static bool same_row(const slc_job *job, const slc_decision *a, const slc_decision *b, bool sizes)
{
    if ((a->unit == SLC_NONE) != (b->unit == SLC_NONE) || recomputation(a) != recomputation(b)) return false;
    if (a->unit == SLC_NONE) return true;
    const slc_unit *one = &job->units[a->unit], *other = &job->units[b->unit];
    return a->strategy == b->strategy && one->trainable == other->trainable && one->role == other->role &&
           (!sizes || units_alike(one, other));
}

static uint32_t fold(const slc_job *job, slc_decision *decisions, uint32_t count, bool sizes)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t like = 0;
        while (like < i && !same_row(job, &decisions[like], &decisions[i], sizes)) like++;
        decisions[i].row = like < i ? decisions[like].row : rows++;
    }
    return rows;
}

static int by_layer(const void *a, const void *b)
{
    const slc_decision *x = a, *y = b;
    if (x->first_layer != y->first_layer) return x->first_layer < y->first_layer ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

sluice_status slc_decisions_list(const slc_shown_plan *shown, slc_decision **out, uint32_t *count, uint32_t *rows)
{
    const slc_job *job = &shown->profile->job;
    slc_decision *all = calloc((size_t)job->unit_count + job->layer_count + 1, sizeof *all);
    uint32_t n = 0;
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "table of %u layers", job->layer_count);
    for (uint32_t u = 0; u < job->unit_count; u++) all[n++] = decide_unit(shown, u);
    for (uint32_t l = 0; l < job->layer_count; l++) {
        slc_decision *owner = owner_of(job, all, n, l);
        if (!owner && !(shown->plan->recompute && shown->plan->recompute[l])) continue;
        if (!owner) {
            owner = &all[n++];
            *owner = (slc_decision){.unit = SLC_NONE, .first_layer = l, .last_layer = l, .strategy = SLC_STRATEGIES};
        }
        add_layer(shown, l, owner);
    }
    qsort(all, n, sizeof *all, by_layer);
    *rows = fold(job, all, n, true);
    if (*rows > ROWS_MOST) *rows = fold(job, all, n, false);
    *out = all;
    *count = n;
    return SLUICE_OK;
}

void slc_decision_add(slc_decision *sum, const slc_decision *one)
{
    sum->layers += one->layers;
    sum->recomputed += one->recomputed;
    sum->resident_bytes += one->resident_bytes;
    sum->more_bytes += one->more_bytes;
    sum->gathers_s += one->gathers_s;
    sum->exchange_s += one->exchange_s;
    sum->passes_s += one->passes_s;
    sum->averaged_s += one->averaged_s;
    sum->rows_gather_s += one->rows_gather_s;
    sum->rows_reduce_s += one->rows_reduce_s;
    sum->fused_s += one->fused_s;
    sum->recompute_bytes += one->recompute_bytes;
    sum->recompute_s += one->recompute_s;
}
