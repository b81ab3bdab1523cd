/* tests/command/recipe/recipe_plan_test.sh covers this file. */
#include "bench/plan/words/phases_table.h"

#include "bench/plan/words/quantities.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/base/text/size_text.h"
#include "lib/plan/left_out.h"
#include "lib/plan/strategy_table.h"
#include "sched/simulate/simulate.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 20, LOOKS = 64 };

/* ---- Finding ---- */

/* Bytes that a rank sends in an item. Both halves of an all-reduce send what a reduction or a gather does. */
static uint64_t bytes_of_item(const slc_job *job, const slc_plan *plan, const slc_item *item)
{
    const bool message = item->kind == SLC_ITEM_REDUCE_SCATTER || item->kind == SLC_ITEM_ALL_REDUCE ||
                         item->kind == SLC_ITEM_GATHER_VALUE || item->kind == SLC_ITEM_GATHER_WINDOW ||
                         item->kind == SLC_ITEM_GATHER_GRADIENT || item->kind == SLC_ITEM_EXCHANGE;
    const bool seldom = item->kind == SLC_ITEM_ALL_REDUCE && plan->strategies[item->unit] == SLC_ONEBIT;
    if (!message || seldom) return 0;
    const slc_unit *unit = &job->units[item->unit];
    const uint64_t elements = slc_run_elements(unit, item->first_block, item->block_count);
    const uint64_t part = slc_operation_bytes(job, unit, item->kind, elements) / job->world * (job->world - 1);
    return item->kind == SLC_ITEM_ALL_REDUCE || item->kind == SLC_ITEM_EXCHANGE ? 2 * part : part;
}

/* The micro-batches and layers of a step of the run. */
typedef struct {
    uint32_t micro_batches; /* it runs so many */
    const bool *left_out;   /* [layers]; NULL: none */
} run_step;

static bool is_left_out(const slc_job *job, const slc_item *item, const run_step *step)
{
    if (slc_is_left_out(item, step->micro_batches, job->micro_batches)) return true;
    return step->left_out && item->unit != SLC_NONE && slc_unit_left_out(&job->units[item->unit], step->left_out);
}

static uint64_t bytes_of_step(const slc_job *job, const slc_plan *plan, const run_step *step)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        const slc_item *item = &plan->train.items[i];
        if (!is_left_out(job, item, step)) sum += bytes_of_item(job, plan, item);
    }
    return sum;
}

/* Layers between the first and the last, which steps may leave out. */
static uint32_t blocks_of(const slc_whole_run *run)
{
    const uint32_t layers = run->plans->whole.profile->job.layer_count;
    return layers > 2 ? layers - 2 : 0;
}

/* Draws the layers of a step as the run will. */
static void draw_layers(const slc_whole_run *run, uint64_t step, bool *left_out)
{
    const uint32_t blocks = blocks_of(run);
    const double theta = slc_recipe_depth_theta(run->depth, step);
    for (uint32_t b = 0; b < blocks; b++)
        left_out[1 + b] = !slc_recipe_depth_draw(run->depth, step, b, slc_recipe_depth_keeps(theta, blocks, b));
}

/* A phase ends where the mean depth has moved so far that a run plans anew. */
static uint64_t next_change(const slc_whole_run *run, uint64_t from)
{
    const uint32_t blocks = blocks_of(run);
    const double share = 0.01 * SLC_DEPTH_PERCENT * run->plans->whole.profile->job.layer_count / (blocks ? blocks : 1);
    uint64_t next = slc_least(slc_recipe_size_changes(&run->sizes, from), run->steps);
    if (run->depth) next = slc_least(next, slc_recipe_depth_changes(run->depth, blocks, from, share));
    return next;
}

/* A phase, and the plan and the times that its steps have. */
typedef struct {
    const slc_whole_run *run;
    uint64_t from, looks; /* steps that are looked at, which lie evenly in the phase */
    slc_phase_plan under;
    slc_plan *own; /* made for the phase; NULL: none was */
    slc_times times;
    bool *left_out; /* [looks * layers] */
} phase_steps;

/* Gives the times the probabilities of the phase's first step, and plans for them. */
static sluice_status plan_phase(phase_steps *s)
{
    const slc_whole_run *run = s->run;
    const slc_job *job = &s->under.profile->job;
    const uint32_t blocks = blocks_of(run);
    const double theta = slc_recipe_depth_theta(run->depth, s->from);
    double *keeps = malloc(((size_t)job->layer_count + 1) * sizeof *keeps);
    if (!keeps) return slc_error(SLUICE_ERR_MEMORY, "probabilities of %u layers", job->layer_count);
    for (uint32_t l = 0; l < job->layer_count; l++)
        keeps[l] = l && l <= blocks ? slc_recipe_depth_keeps(theta, blocks, l - 1) : 1;
    sluice_status status = slc_times_set_keeps(job, keeps, &s->times);
    free(keeps);
    if (status || !s->times.keeps || !run->plan_drawn || s->under.plan != run->plans->whole.plan) return status;
    status = run->plan_drawn(run->planner, &s->times, &s->own);
    if (!status) s->under.plan = s->own;
    return status;
}

/* Adds what the steps that are looked at take to the sums of their phase. */
static sluice_status add_steps(const phase_steps *s, uint64_t steps, slc_run_phase *sum)
{
    const slc_job *job = &s->under.profile->job;
    const uint32_t micro_batches = (uint32_t)sum->micro_batches;
    const slc_simulation options = {
        .micro_batches = micro_batches, .left_out = s->left_out, .draws = (uint32_t)s->looks};
    slc_forecast forecast;
    sluice_status status = SLUICE_OK;
    for (uint64_t i = 0; i < s->looks; i++) {
        bool *left_out = s->left_out + i * job->layer_count;
        const run_step step = {micro_batches, s->run->depth ? left_out : NULL};
        if (s->run->depth) draw_layers(s->run, s->from + i * steps / s->looks, left_out);
        sum->sent += bytes_of_step(job, s->under.plan, &step);
        for (uint32_t l = 0; l < job->layer_count; l++) sum->layers += !left_out[l];
    }
    status = slc_simulate(job, &s->times, s->under.plan, &options, &forecast);
    sum->step_s = forecast.step_s;
    return status;
}

/* Steps of one size are alike unless their layers are drawn; then some of them are looked at. */
static sluice_status find_phase(const slc_whole_run *run, uint64_t from, slc_run_phase *out, bool *by_depth)
{
    const uint64_t steps = next_change(run, from) - from;
    const slc_recipe_step size = slc_recipe_step_at(&run->sizes, from);
    phase_steps s = {.run = run,
                     .from = from,
                     .looks = run->depth ? slc_least(steps, LOOKS) : 1,
                     .under = slc_plans_by_length_find(run->plans, size.length)};
    const slc_job *job = &s.under.profile->job;
    *out = (slc_run_phase){.first = from + 1,
                           .steps = steps,
                           .micro_batches = size.micro_batches,
                           .length = size.length,
                           .tokens = steps * size.tokens * run->sequences};
    sluice_status status = slc_times_copy(job, &s.under.profile->times, &s.times);
    if (status) return status;
    if (size.length) run->set_times(run->context, &s.under, &size, &s.times);
    s.left_out = calloc(s.looks * (job->layer_count + (size_t)1), sizeof *s.left_out);
    if (!s.left_out) status = slc_error(SLUICE_ERR_MEMORY, "layers of %llu steps", (unsigned long long)s.looks);
    if (!status && run->depth) status = plan_phase(&s);
    if (!status) status = add_steps(&s, steps, out);
    if (!status) out->strategies = slc_strategy_counts_of(job, s.under.plan->strategies);
    out->layers /= (double)s.looks;
    out->sent = (out->sent + s.looks / 2) / s.looks;
    *by_depth |= s.own != NULL;
    slc_plan_destroy(s.own);
    slc_times_fini(&s.times);
    free(s.left_out);
    return status;
}

sluice_status slc_run_phases_find(const slc_whole_run *run, slc_run_phases *out)
{
    size_t count = 0;
    *out = (slc_run_phases){.one_plan = true, .drops = run->depth != NULL};
    for (uint64_t from = 0; from < run->steps; from = next_change(run, from)) count++;
    out->phases = calloc(count + 1, sizeof *out->phases);
    sluice_status status = SLUICE_OK;
    if (!out->phases) status = slc_error(SLUICE_ERR_MEMORY, "%zu phases of a run", count);
    for (uint64_t from = 0; !status && from < run->steps; from = next_change(run, from)) {
        const slc_recipe_step size = slc_recipe_step_at(&run->sizes, from);
        out->one_plan &= slc_plans_by_length_find(run->plans, size.length).plan == run->plans->whole.plan;
        status = find_phase(run, from, &out->phases[out->count++], &out->by_depth);
    }
    return status;
}

void slc_run_phases_free(slc_run_phases *phases)
{
    free(phases->phases);
    *phases = (slc_run_phases){0};
}

/* ---- Telling ---- */

/* Writes "2.9 h", "12.0 min" or "3.5 s". */
static const char *write_time(double s, char text[32])
{
    if (s >= 3600)
        snprintf(text, 32, "%.1f h", s / 3600);
    else if (s >= 60)
        snprintf(text, 32, "%.1f min", s / 60);
    else
        snprintf(text, 32, "%.1f s", s);
    return text;
}

static bool grow_in_length(const slc_run_phases *all)
{
    return all->count && all->phases[0].length;
}

/* `sum`: the line is of all phases together. */
static void print_line(FILE *out, const slc_run_phases *all, const char *steps, const slc_run_phase *p, bool sum,
                       double s)
{
    char step[24], time[32], tokens[24] = "-", count[24] = "", length[24] = "";
    if (p->tokens) snprintf(tokens, sizeof tokens, "%.4g M", (double)p->tokens / 1e6);
    if (!sum) snprintf(count, sizeof count, "%" PRIu64, p->micro_batches);
    if (!sum) snprintf(length, sizeof length, "%" PRIu32, p->length);
    fprintf(out, "  %-22s ", steps);
    if (grow_in_length(all)) fprintf(out, "%7s ", length);
    fprintf(out, "%13s %10s %11s %11s %10s\n", count, tokens, sum ? "" : slc_plan_seconds(p->step_s, step),
            slc_size_of(p->sent).text, write_time(s, time));
}

void slc_run_phases_print(FILE *out, const slc_run_phases *all)
{
    slc_run_phase sum = {0};
    double s = 0;
    char steps[80];
    if (all->by_depth)
        fprintf(out, "the run    phases, each under a plan for the layers that its steps keep\n");
    else if (all->one_plan)
        fprintf(out, "the run    phases of this plan; units: %s\n",
                slc_strategy_counts_in_words(&all->phases->strategies).text);
    else
        fprintf(out, "the run    phases; short steps run under plans of their own within the budget\n");
    fprintf(out, "  %-22s ", "steps");
    if (grow_in_length(all)) fprintf(out, "%7s ", "length");
    fprintf(out, "%13s %10s %11s %11s %10s\n", "micro-batches", "tokens", "a step", "sent a step", "time");
    for (size_t i = 0; i < all->count; i++) {
        const slc_run_phase *p = &all->phases[i];
        sum.steps += p->steps;
        sum.tokens += p->tokens;
        sum.sent += p->steps * p->sent;
        s += (double)p->steps * p->step_s;
        if (i == MOST_LINES) fprintf(out, "  ... %zu more\n", all->count - i);
        if (i >= MOST_LINES) continue;
        const int used = snprintf(steps, sizeof steps, "%" PRIu64 " to %" PRIu64, p->first, p->first + p->steps - 1);
        if (all->drops) snprintf(steps + used, sizeof steps - (size_t)used, ", %.1f layers", p->layers);
        print_line(out, all, steps, p, false, (double)p->steps * p->step_s);
    }
    snprintf(steps, sizeof steps, "all %" PRIu64 " together", sum.steps);
    print_line(out, all, steps, &sum, true, s);
}

json_t *slc_run_phases_json(const slc_run_phases *all)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < all->count; i++) {
        const slc_run_phase *p = &all->phases[i];
        const slc_strategy_counts_text strategies = slc_strategy_counts_in_words(&p->strategies);
        json_array_append_new(
            list, json_pack("{s:I, s:I, s:I, s:f, s:o, s:o, s:s, s:f, s:I, s:f}", "first_step", (json_int_t)p->first,
                            "steps", (json_int_t)p->steps, "micro_batches", (json_int_t)p->micro_batches, "layers",
                            p->layers, "length", p->length ? json_integer((json_int_t)p->length) : json_null(),
                            "tokens", p->tokens ? json_integer((json_int_t)p->tokens) : json_null(), "strategies",
                            strategies.text, "predicted_step_s", p->step_s, "bytes_sent", (json_int_t)p->sent, "hours",
                            (double)p->steps * p->step_s / 3600));
    }
    return list;
}
