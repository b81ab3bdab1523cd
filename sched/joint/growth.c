/* A change is cheap to judge: one that makes no faster plan, even if no buffers shared memory, is refused before
 * anything is packed. So first all changes of one kind are made at once, then halves of the changes that were refused,
 * down to single ones. After that a few changes are drawn at a time; a drawn change may also undo an earlier one, whose
 * memory others can then use. */
#include "sched/joint/growth.h"

#include "lib/base/numbers/random.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROWTH_STREAM = 0x6b, SWEEPS = 2, PATIENCE = 10, MOST_DRAWN = 4 };

typedef struct {
    bool of_layer;
    uint32_t number; /* of the layer or the unit */
    double gain;     /* seconds of its lane that it saves for each byte that it keeps */
} change;

typedef struct {
    const slc_joint_request *request;
    const slc_scheduler *scheduler;
    slc_strategy to;
    double until_s, step_s;           /* step_s: of the plan of the choices */
    slc_strategy *strategies, *first; /* now, and before anything has grown */
    bool *recompute;
    change *changes; /* of units, then of layers, by gain */
    uint32_t unit_count, count;
    uint64_t draws;
} growth;

/* ---- Changes ---- */

static int by_gain(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->of_layer != y->of_layer) return x->of_layer - y->of_layer;
    if (x->gain != y->gain) return x->gain > y->gain ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static slc_strategy grown(const growth *g, uint32_t u)
{
    return slc_unit_strategy(g->request->job, &g->request->job->units[u], g->to);
}

static double gain_of_unit(const growth *g, uint32_t u)
{
    const slc_job *job = g->request->job;
    const slc_unit *unit = &job->units[u];
    const double gathers = (double)slc_unit_window_count(job, unit, true) * job->micro_batches - unit->trainable,
                 gather_s = slc_operation_s(job, g->request->times, SLC_ITEM_GATHER_VALUE, unit, unit->elements),
                 bytes = (double)slc_resident_bytes(job, unit, grown(g, u)) -
                         (double)slc_resident_bytes(job, unit, g->first[u]);
    return gathers * gather_s / fmax(bytes, 1);
}

/* Bytes that each layer keeps if it does not recompute. The caller frees them; NULL: no memory. */
static uint64_t *recomputable_bytes(const slc_job *job)
{
    uint64_t *bytes = calloc((size_t)job->layer_count + 1, sizeof *bytes);
    for (uint32_t a = 0; bytes && a < job->activation_count; a++)
        if (job->activations[a].recomputable && slc_slot_is_forward(job, job->activations[a].first_slot))
            bytes[slc_slot_layer(job, job->activations[a].first_slot)] += job->activations[a].bytes;
    return bytes;
}

static sluice_status list_changes(growth *g)
{
    const slc_joint_request *r = g->request;
    uint64_t *bytes = recomputable_bytes(r->job);
    if (!bytes) return slc_error(SLUICE_ERR_MEMORY, "plan");
    for (uint32_t u = 0; u < r->job->unit_count; u++)
        if (slc_unit_is_free(&r->job->units[u], r->strategies[u]) && grown(g, u) != g->first[u])
            g->changes[g->count++] = (change){false, u, gain_of_unit(g, u)};
    g->unit_count = g->count;
    for (uint32_t l = 0; l < r->job->layer_count; l++)
        if (r->recompute && r->recompute[l] == 2)
            g->changes[g->count++] = (change){true, l, r->times->recompute_s[l] / (1 + (double)bytes[l])};
    if (g->count) qsort(g->changes, g->count, sizeof *g->changes, by_gain);
    free(bytes);
    return SLUICE_OK;
}

static void make_change(growth *g, const change *c)
{
    if (c->of_layer)
        g->recompute[c->number] = !g->recompute[c->number];
    else
        g->strategies[c->number] =
            g->strategies[c->number] == g->first[c->number] ? grown(g, c->number) : g->first[c->number];
}

static bool is_grown(const growth *g, const change *c)
{
    return c->of_layer ? !g->recompute[c->number] : g->strategies[c->number] != g->first[c->number];
}

/* ---- Their plans ---- */

/* Finds whether there is a plan of the choices that fits and is faster than step_s; if so, step_s becomes its step. */
static sluice_status try_choices(growth *g, bool *faster)
{
    slc_scheduling in = slc_joint_scheduling(g->request, g->strategies, g->recompute);
    slc_order order = {0};
    slc_plan *plan = NULL;
    slc_forecast forecast;
    uint64_t arena;
    const double below_s = isfinite(g->step_s) ? g->step_s * (1 - 1e-6) : 0;
    *faster = false;
    if (slc_resident_bytes_of_all(g->request->job, g->strategies) > in.limit) return SLUICE_OK;
    g->scheduler->train(&in, &order);
    sluice_status status = order.failed ? slc_error(SLUICE_ERR_MEMORY, "order") : SLUICE_OK;
    const slc_trying trying = {.at_most_s = below_s};
    if (!status) status = slc_plan_try(&in, &order, g->scheduler, &trying, &plan, &arena, &forecast);
    *faster = !status && plan;
    if (*faster) g->step_s = forecast.step_s;
    slc_plan_destroy(plan);
    slc_order_fini(&order);
    return status;
}

/* ---- The search ---- */

/* Makes all of these changes if that makes a faster plan; otherwise does the same with each half of them. Changes that
 * were made before stay. */
static sluice_status grow(growth *g, const change *changes, uint32_t count)
{
    bool faster;
    uint32_t made = 0;
    if (!count || slc_work_is_over(g->request->work, g->until_s)) return SLUICE_OK;
    change *mine = malloc(count * sizeof *mine);
    if (!mine) return slc_error(SLUICE_ERR_MEMORY, "plan");
    for (uint32_t i = 0; i < count; i++)
        if (!is_grown(g, &changes[i])) mine[made++] = changes[i];
    for (uint32_t i = 0; i < made; i++) make_change(g, &mine[i]);
    sluice_status status = made ? try_choices(g, &faster) : SLUICE_OK;
    if (made && !status && !faster) {
        for (uint32_t i = 0; i < made; i++) make_change(g, &mine[i]);
        if (made > 1) status = grow(g, mine, made / 2);
        if (made > 1 && !status) status = grow(g, mine + made / 2, made - made / 2);
    }
    free(mine);
    return status;
}

static uint32_t draw(growth *g, uint32_t below)
{
    return (uint32_t)slc_random_below(1, GROWTH_STREAM, g->draws++, below);
}

/* Draws changes until many in a row were of no use. */
static sluice_status exchange(growth *g)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t idle = 0; idle < PATIENCE * g->count && !status; idle++) {
        uint32_t drawn[MOST_DRAWN], count = 1 + draw(g, MOST_DRAWN);
        bool faster;
        if (slc_work_is_over(g->request->work, g->until_s)) break;
        for (uint32_t i = 0; i < count; i++) make_change(g, &g->changes[drawn[i] = draw(g, g->count)]);
        status = try_choices(g, &faster);
        if (faster)
            idle = 0;
        else
            for (uint32_t i = 0; i < count; i++) make_change(g, &g->changes[drawn[i]]);
    }
    return status;
}

static sluice_status grow_and_exchange(growth *g, bool *fits)
{
    sluice_status status = try_choices(g, fits);
    if (status || !*fits) return status;
    for (int i = 0; !status && i < SWEEPS; i++) {
        status = grow(g, g->changes, g->unit_count);
        if (!status) status = grow(g, g->changes + g->unit_count, g->count - g->unit_count);
    }
    return status ? status : exchange(g);
}

sluice_status slc_growth_find(const slc_joint_request *request, const slc_scheduler *scheduler, slc_strategy to,
                              double until_s, slc_strategy *strategies, bool *recompute, bool *fits)
{
    const size_t units = (size_t)request->job->unit_count + 1;
    growth g = {.request = request,
                .scheduler = scheduler,
                .to = to,
                .until_s = until_s,
                .step_s = INFINITY,
                .strategies = strategies,
                .recompute = recompute,
                .first = malloc(units * sizeof *g.first),
                .changes = malloc((units + request->job->layer_count) * sizeof *g.changes)};
    sluice_status status = g.first && g.changes ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "plan");
    if (!status) {
        memcpy(g.first, strategies, request->job->unit_count * sizeof *g.first);
        status = list_changes(&g);
        if (!status) status = grow_and_exchange(&g, fits);
    }
    free(g.changes);
    free(g.first);
    return status;
}
