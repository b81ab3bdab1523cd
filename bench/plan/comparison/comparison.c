/* Fills in each layer what the simulator says of it. */
#include "bench/plan/comparison/comparison.h"

#include "bench/plan/pictures/memory_peak.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/simulate/exposed.h"

#include <stdlib.h>
#include <string.h>

static sluice_status no_memory(const slc_comparison *c)
{
    return slc_error(SLUICE_ERR_MEMORY, "comparison of %u layers", c->profile->job.layer_count);
}

static slc_compared_part *part_named(slc_comparison *c, const char *name, int of)
{
    uint32_t i = 0;
    while (i + 1 < c->count && strcmp(c->layers[i].name, name)) i++;
    return &c->layers[i].of[of];
}

/* A unit's own part, or that of its only layer. */
static slc_compared_part *part_of_unit(slc_comparison *c, const slc_unit *unit, int of)
{
    const slc_job *job = &c->profile->job;
    return part_named(c, unit->use_count > 1 ? unit->name : job->layers[unit->uses[0].layer], of);
}

/* ---- What was decided ---- */

static const char *lane_of_updates(const slc_plan *plan, uint32_t unit)
{
    bool on[2] = {false, false};
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        const slc_item *item = &plan->train.items[i];
        if (item->kind == SLC_ITEM_UPDATE && item->unit == unit) on[item->on_compute] = true;
    }
    return on[0] && on[1] ? "both" : on[1] ? "compute" : on[0] ? "thread" : "-";
}

static void add_unit(slc_comparison *c, uint32_t u, int of)
{
    const slc_unit *unit = &c->profile->job.units[u];
    const slc_strategy strategy = c->plans[of]->strategies[u];
    slc_compared_part *part = part_of_unit(c, unit, of);
    const size_t used = strlen(part->strategy);
    const char *lane = lane_of_updates(c->plans[of], u);
    snprintf(part->strategy + used, sizeof part->strategy - used, "%s%s", used ? ", " : "",
             slc_strategy_name(strategy));
    part->kept += slc_resident_bytes(&c->profile->job, unit, strategy);
    if (*lane == '-') return;
    part->updates = *part->updates == '-' || part->updates == lane ? lane : "both";
}

static void add_decisions(slc_comparison *c, int of)
{
    const slc_job *job = &c->profile->job;
    const slc_plan *plan = c->plans[of];
    for (uint32_t i = 0; i < c->count; i++) c->layers[i].of[of].recomputed = c->layers[i].of[of].updates = "-";
    for (uint32_t l = 0; l < job->layer_count; l++)
        if (plan->recompute && plan->recompute[l]) part_named(c, job->layers[l], of)->recomputed = "yes";
    for (uint32_t u = 0; u < job->unit_count; u++) add_unit(c, u, of);
    for (uint32_t i = 0; i < c->count; i++)
        if (!*c->layers[i].of[of].strategy) strcpy(c->layers[i].of[of].strategy, "-");
}

/* ---- What the simulator says ---- */

/* Names the operation, not which of its blocks. */
static void write_cause(const slc_job *job, const slc_item *item, char *out)
{
    slc_item whole = *item;
    if (item->unit != SLC_NONE) {
        whole.first_block = 0;
        whole.block_count = slc_unit_blocks(&job->units[item->unit]);
    }
    slc_item_label(job, &whole, out);
}

static sluice_status add_waits(slc_comparison *c, const slc_item_times *items, int of)
{
    const slc_job *job = &c->profile->job;
    const slc_program *program = &c->plans[of]->train;
    slc_exposure *waits = calloc((size_t)program->item_count + 1, sizeof *waits);
    if (!waits) return no_memory(c);
    const uint32_t count = slc_exposures(c->plans[of], items, &c->forecasts[of], waits);
    for (uint32_t w = 0; w < count; w++) {
        const slc_item *item = &program->items[waits[w].slot];
        slc_compared_part *part = item->kind == SLC_ITEM_SLOT
                                      ? part_named(c, job->layers[slc_slot_layer(job, item->slot)], of)
                                      : part_of_unit(c, &job->units[item->unit], of);
        const double s = waits[w].to_s - waits[w].from_s;
        part->waits_s += s;
        if (s <= part->longest_s) continue;
        part->longest_s = s;
        *part->waits_for = '\0';
        if (waits[w].cause != SLC_NONE) write_cause(job, &program->items[waits[w].cause], part->waits_for);
    }
    free(waits);
    return SLUICE_OK;
}

/* The columns of a peak are the layers here. Those of the second plan are the same. */
static sluice_status take_layers(slc_comparison *c, const slc_memory_peak *peak)
{
    c->layers = calloc(peak->count, sizeof *c->layers);
    if (!c->layers) return no_memory(c);
    c->count = peak->count - 1; /* what is not in use belongs to nobody */
    for (uint32_t i = 0; i < c->count; i++) c->layers[i].name = peak->columns[i].name;
    return SLUICE_OK;
}

static sluice_status add_peak(slc_comparison *c, const slc_item_times *items, int of)
{
    const slc_plan *plan = c->plans[of];
    const double step_s = c->forecasts[of].step_s;
    slc_memory_series series = {0};
    slc_memory_peak peak = {0};
    sluice_status status = slc_simulate_memory(plan, items, step_s, &series);
    if (!status) status = slc_memory_peak_find(&c->profile->job, plan, items, &series, step_s, &peak);
    if (!status && !c->layers) status = take_layers(c, &peak);
    for (uint32_t i = 0; !status && i < c->count; i++)
        for (int k = 0; k < SLC_MEMORY_CATEGORIES; k++) c->layers[i].of[of].at_peak += peak.columns[i].bytes[k];
    c->peaks[of] = peak.planned_bytes;
    slc_memory_peak_fini(&peak);
    slc_memory_series_fini(&series);
    return status;
}

static sluice_status add_plan(slc_comparison *c, int of)
{
    const slc_profile *profile = c->profile;
    const slc_plan *plan = c->plans[of];
    slc_item_times *items = calloc((size_t)plan->train.item_count + 1, sizeof *items);
    if (!items) return no_memory(c);
    sluice_status status = slc_simulate_items(&profile->job, &profile->times, plan, NULL, &c->forecasts[of], items);
    if (!status) status = add_peak(c, items, of);
    if (!status) add_decisions(c, of);
    if (!status) status = add_waits(c, items, of);
    free(items);
    return slc_error_context(status, "%s", c->names[of]);
}

sluice_status slc_comparison_make(const slc_profile *profile, const slc_plan *const plans[SLC_COMPARED],
                                  const char *const names[SLC_COMPARED], slc_comparison *out)
{
    sluice_status status = SLUICE_OK;
    *out = (slc_comparison){.profile = profile, .plans = {plans[0], plans[1]}, .names = {names[0], names[1]}};
    for (int of = 0; !status && of < SLC_COMPARED; of++) status = add_plan(out, of);
    if (status) slc_comparison_fini(out);
    return status;
}

void slc_comparison_fini(slc_comparison *comparison)
{
    free(comparison->layers);
    *comparison = (slc_comparison){0};
}
