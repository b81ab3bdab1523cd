/* tests/command/recipe_plan_test.sh covers this file. */
#include "bench/plan/words/phases_table.h"

#include "bench/plan/words/quantities.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/base/text/size_text.h"
#include "lib/plan/strategy_table.h"
#include "sched/simulate/simulate.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 20 };

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

static uint64_t bytes_of_step(const slc_job *job, const slc_plan *plan, uint32_t micro_batches)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < plan->train.item_count; i++) {
        const slc_item *item = &plan->train.items[i];
        if (!slc_is_left_out(item, micro_batches, job->micro_batches)) sum += bytes_of_item(job, plan, item);
    }
    return sum;
}

static sluice_status find_phase(const slc_whole_run *run, uint64_t from, slc_run_phase *out)
{
    const uint64_t to = slc_least(slc_recipe_size_changes(&run->sizes, from), run->steps);
    const slc_recipe_step size = slc_recipe_step_at(&run->sizes, from);
    const slc_phase_plan under = size.length ? run->plan_of(run->context, &size) : run->whole;
    const slc_job *job = &under.profile->job;
    const slc_simulation options = {.micro_batches = (uint32_t)size.micro_batches};
    slc_forecast forecast;
    slc_times times;
    sluice_status status = slc_times_copy(job, &under.profile->times, &times);
    if (status) return status;
    if (size.length) run->set_times(run->context, &under, &size, &times);
    status = slc_simulate(job, &times, under.plan, &options, &forecast);
    slc_times_fini(&times);
    if (status) return status;
    *out = (slc_run_phase){.first = from + 1,
                           .steps = to - from,
                           .micro_batches = size.micro_batches,
                           .length = size.length,
                           .step_s = forecast.step_s,
                           .sent = bytes_of_step(job, under.plan, (uint32_t)size.micro_batches),
                           .tokens = (to - from) * size.tokens * run->sequences};
    out->strategies = slc_strategy_counts_of(job, under.plan->strategies);
    return SLUICE_OK;
}

sluice_status slc_run_phases_find(const slc_whole_run *run, slc_run_phases *out)
{
    size_t count = 0;
    *out = (slc_run_phases){.one_plan = true};
    for (uint64_t from = 0; from < run->steps; from = slc_recipe_size_changes(&run->sizes, from)) count++;
    out->phases = calloc(count + 1, sizeof *out->phases);
    if (!out->phases) return slc_error(SLUICE_ERR_MEMORY, "%zu phases of a run", count);
    sluice_status status = SLUICE_OK;
    for (uint64_t from = 0; !status && from < run->steps; from = slc_recipe_size_changes(&run->sizes, from)) {
        const slc_recipe_step size = slc_recipe_step_at(&run->sizes, from);
        out->one_plan &= !size.length || run->plan_of(run->context, &size).plan == run->whole.plan;
        status = find_phase(run, from, &out->phases[out->count++]);
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
    char steps[48];
    if (all->one_plan)
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
        snprintf(steps, sizeof steps, "%" PRIu64 " to %" PRIu64, p->first, p->first + p->steps - 1);
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
            list, json_pack("{s:I, s:I, s:I, s:o, s:o, s:s, s:f, s:I, s:f}", "first_step", (json_int_t)p->first,
                            "steps", (json_int_t)p->steps, "micro_batches", (json_int_t)p->micro_batches, "length",
                            p->length ? json_integer((json_int_t)p->length) : json_null(), "tokens",
                            p->tokens ? json_integer((json_int_t)p->tokens) : json_null(), "strategies",
                            strategies.text, "predicted_step_s", p->step_s, "bytes_sent", (json_int_t)p->sent, "hours",
                            (double)p->steps * p->step_s / 3600));
    }
    return list;
}
