/* Prints the table of `sluice plan`. */
#include "bench/plan/table.h"

#include "lib/plan/strategy_table.h"

#include <math.h>
#include <string.h>

char *slc_plan_bytes(double bytes, char *text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    while (u < 4 && fabs(bytes) >= 1024) {
        bytes /= 1024;
        u++;
    }
    snprintf(text, 24, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
    return text;
}

char *slc_plan_seconds(double s, char *text)
{
    if (fabs(s) >= 1)
        snprintf(text, 24, "%.3f s", s);
    else if (fabs(s) >= 1e-3)
        snprintf(text, 24, "%.1f ms", s * 1e3);
    else
        snprintf(text, 24, "%.0f us", s * 1e6);
    return text;
}

typedef struct {
    const slc_profile *profile;
    const slc_plan *plan;
    uint32_t first, last; /* units first to last */
} group;

static uint32_t home(const slc_job *job, uint32_t unit)
{
    return job->units[unit].uses[0].layer;
}

static bool alike(const group *g, uint32_t a, uint32_t b)
{
    const slc_job *job = &g->profile->job;
    return g->plan->strategies[a] == g->plan->strategies[b] && job->units[a].elements == job->units[b].elements &&
           job->units[a].dtype == job->units[b].dtype && job->units[a].use_count == job->units[b].use_count &&
           job->units[a].trainable == job->units[b].trainable && job->units[a].fused == job->units[b].fused &&
           job->units[a].role == job->units[b].role &&
           g->plan->recompute[home(job, a)] == g->plan->recompute[home(job, b)];
}

static double gathers_s(const group *g, const slc_unit *unit)
{
    slc_window window;
    uint32_t windows = 0;
    while (slc_unit_window(&g->profile->job, unit, true, windows, &window)) windows++;
    return windows * g->profile->job.micro_batches *
           slc_operation_s(&g->profile->job, &g->profile->times, SLC_ITEM_GATHER_WINDOW, unit, unit->elements);
}

/* Says why the layers of a fused unit share it: the latency of the operations that it saves. */
static void explain_fusion(const group *g, char *out, size_t size)
{
    const slc_job *job = &g->profile->job;
    const slc_times *times = &g->profile->times;
    const slc_unit *unit = &job->units[g->first];
    double one =
        slc_transfer_s(job, times, SLC_ITEM_REDUCE_SCATTER, 0) + slc_transfer_s(job, times, SLC_ITEM_GATHER_VALUE, 0);
    char saved[24], bytes[24];
    out[0] = 0;
    if (!unit->fused) return;
    slc_plan_bytes((double)(unit->elements * sluice_dtype_bytes(unit->dtype)), bytes);
    slc_plan_seconds(one * (unit->use_count - 1), saved);
    snprintf(out, size, "; %u layers fused, %s: one reduction and gather saves %s of latency", unit->use_count, bytes,
             saved);
}

/* Compares onebit with sdp: bytes, and the seconds of the exchange and its passes instead of a reduction and a
 * gather. */
static void explain_onebit(const group *g, char *out, size_t size)
{
    const slc_job *job = &g->profile->job;
    const slc_times *times = &g->profile->times;
    const slc_unit *unit = &job->units[g->first];
    double more = (double)slc_resident_bytes(job, unit, SLC_ONEBIT) - (double)slc_resident_bytes(job, unit, SLC_SDP);
    double passes = slc_passes_s(times, unit->elements);
    double exchange = slc_operation_s(job, times, SLC_ITEM_EXCHANGE, unit, unit->elements);
    double sharded = slc_operation_s(job, times, SLC_ITEM_REDUCE_SCATTER, unit, unit->elements) +
                     slc_operation_s(job, times, SLC_ITEM_GATHER_VALUE, unit, unit->elements);
    char bytes[24], wire[24], computed[24], saved[24];
    snprintf(out, size, "each keeps %s more than sdp and exchanges in %s, with passes of %s, instead of %s",
             slc_plan_bytes(more, bytes), slc_plan_seconds(exchange, wire), slc_plan_seconds(passes, computed),
             slc_plan_seconds(sharded, saved));
}

/* Describes the rows that a layer looks up in a split table. */
static void explain_rows(const group *g, char *out, size_t size)
{
    const slc_job *job = &g->profile->job;
    const slc_times *times = &g->profile->times;
    const slc_unit *unit = &job->units[g->first];
    char bytes[24], reduced[24], gathered[24];
    slc_plan_bytes((double)(unit->most_rows * unit->row_elements * sluice_dtype_bytes(unit->dtype)), bytes);
    slc_plan_seconds(slc_operation_s(job, times, SLC_ITEM_REDUCE_SCATTER, unit, unit->elements), reduced);
    slc_plan_seconds(slc_operation_s(job, times, SLC_ITEM_GATHER_WINDOW, unit, unit->elements), gathered);
    snprintf(out, size,
             "at most %llu of %llu rows a micro-batch come and go, %s: gathered in %s, reduced in %s, between which "
             "the table is updated",
             (unsigned long long)unit->most_rows, (unsigned long long)unit->row_count, bytes, gathered, reduced);
}

/* Compares the choice with the nearest other one. */
static void explain(const group *g, char *out, size_t size)
{
    const slc_job *job = &g->profile->job;
    const slc_unit *unit = &job->units[g->first];
    slc_strategy mine = g->plan->strategies[g->first];
    double one = gathers_s(g, unit), sdp = (double)slc_resident_bytes(job, unit, SLC_SDP);
    double fsdp = (double)slc_resident_bytes(job, unit, SLC_FSDP);
    double value =
        unit->trainable ? slc_operation_s(job, &g->profile->times, SLC_ITEM_GATHER_VALUE, unit, unit->elements) : 0;
    char saved[24], cost[24];
    slc_plan_bytes(sdp - fsdp, saved);
    slc_plan_seconds(one - value, cost);
    if (slc_looks_up(unit))
        explain_rows(g, out, size);
    else if (job->world == 1)
        snprintf(out, size, "one rank: nothing to shard");
    else if (mine == SLC_ONEBIT && !unit->trainable)
        snprintf(out, size, "frozen");
    else if (mine == SLC_ONEBIT)
        explain_onebit(g, out, size);
    else if (mine == SLC_FSDP)
        snprintf(out, size, "each gives back %s for %s more of gathers a step", saved, cost);
    else if (mine == SLC_SDP)
        snprintf(out, size, "each keeps %s more than fsdp and saves %s of gathers a step", saved, cost);
    else if (mine == SLC_OSS && !slc_unit_may_be(job, unit, SLC_DP))
        snprintf(out, size, "as asked for, or for dp, which it cannot be while it is split by its uses");
    else
        snprintf(out, size, "as asked for");
}

static void print_group(FILE *out, const group *g)
{
    const slc_job *job = &g->profile->job;
    char names[96], resident[24], why[320], fusion[128];
    uint32_t count = g->last - g->first + 1;
    uint64_t bytes = 0;
    for (uint32_t u = g->first; u <= g->last; u++)
        bytes += slc_resident_bytes(job, &job->units[u], g->plan->strategies[u]);
    if (count > 1)
        snprintf(names, sizeof names, "%.40s .. %.40s", job->units[g->first].name, job->units[g->last].name);
    else
        snprintf(names, sizeof names, "%.80s", job->units[g->first].name);
    explain(g, why, sizeof why);
    explain_fusion(g, fusion, sizeof fusion);
    fprintf(out, "  %-28s %5u  %-8s  %-9s  %10s  %s%s\n", names, count,
            slc_strategy_name(g->plan->strategies[g->first]),
            g->plan->recompute[home(job, g->first)] ? "recompute" : "-", slc_plan_bytes((double)bytes, resident), why,
            fusion);
}

static void print_groups(FILE *out, const slc_profile *profile, const slc_plan *plan)
{
    group g = {.profile = profile, .plan = plan};
    fprintf(out, "  %-28s %5s  %-8s  %-9s  %10s  %s\n", "units", "count", "strategy", "backward", "resident", "why");
    for (uint32_t u = 0; u < profile->job.unit_count; u = g.last + 1) {
        g.first = g.last = u;
        while (g.last + 1 < profile->job.unit_count && alike(&g, g.first, g.last + 1)) g.last++;
        print_group(out, &g);
    }
}

static void count_items(FILE *out, const slc_plan *plan)
{
    uint32_t kinds[SLC_ITEM_KINDS] = {0}, late = 0, computed = 0;
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        kinds[plan->train.items[i].kind]++;
        late += plan->train.items[i].late;
        computed += plan->train.items[i].on_compute;
    }
    fprintf(out, "order      %u slots, %u reductions, ", kinds[SLC_ITEM_SLOT],
            kinds[SLC_ITEM_REDUCE_SCATTER] + kinds[SLC_ITEM_ALL_REDUCE]);
    if (kinds[SLC_ITEM_EXCHANGE]) fprintf(out, "%u compressed exchanges, ", kinds[SLC_ITEM_EXCHANGE]);
    fprintf(out, "%u gathers, %u updates (%u on the compute threads); %u run in the next step's time\n",
            kinds[SLC_ITEM_GATHER_VALUE] + kinds[SLC_ITEM_GATHER_WINDOW] + kinds[SLC_ITEM_GATHER_GRADIENT],
            kinds[SLC_ITEM_UPDATE], computed, late);
}

void slc_plan_table(FILE *out, const slc_profile *profile, const slc_plan_answer *answer)
{
    const slc_plan *plan = answer->plan;
    const slc_plan_forecast *f = &answer->forecast;
    uint64_t total = plan->arena_bytes + profile->job.reserved_bytes;
    char a[24], b[24], c[24];
    print_groups(out, profile, plan);
    fprintf(out, "\npeak       %s (%llu bytes)", slc_plan_bytes((double)total, a), (unsigned long long)total);
    if (answer->budget_bytes) fprintf(out, " of a budget of %s", slc_plan_bytes((double)answer->budget_bytes, b));
    fprintf(out, "; packing leaves %.2f %% unused\n",
            plan->arena_bytes ? 100.0 * (double)(plan->arena_bytes - plan->lower_bound) / (double)plan->arena_bytes
                              : 0.0);
    count_items(out, plan);
    fprintf(out, "step       %s predicted: compute %s, exposed communication %s (%.1f %%)\n",
            slc_plan_seconds(f->step_s, a), slc_plan_seconds(f->compute_s, b), slc_plan_seconds(f->exposed_s, c),
            f->step_s > 0 ? 100 * f->exposed_s / f->step_s : 0.0);
    if (f->bound_s > 0)
        fprintf(out, "bound      no answer of the slot model is below %s: within %.1f %%\n",
                slc_plan_seconds(f->bound_s, a), 100 * (f->step_s / f->bound_s - 1));
    fprintf(out, "schedule   %s%s%s\n", plan->schedule, *answer->member ? ": " : "", answer->member);
    if (*answer->note) fprintf(out, "note       %s\n", answer->note);
}
