/* The runs of a sweep: each combination of its lists, in parts that share a world.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/options/cases.h"

#include "bench/train/options/onebit_options.h"
#include "bench/train/options/optimizer_options.h"
#include "sched/planner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t slc_bench_budget_auto(const char *text)
{
    char *end;
    if (strncmp(text, "auto:", 5) || text[5] < '1' || text[5] > '9') return 0;
    unsigned long count = strtoul(text + 5, &end, 10);
    return *end || count > SLC_BENCH_LIST_MAX / 2 ? 0 : count;
}

uint64_t slc_bench_combinations(const slc_bench_options *o)
{
    return o->strategies.count * o->schedules.count * o->optimizers.count * o->tied.count * o->precisions.count *
           o->recomputes.count * o->batches.count * o->micro_batches.count * (o->recipes.count ? o->recipes.count : 1);
}

uint64_t slc_bench_case_count(const slc_bench_options *o)
{
    uint64_t budgets = 0;
    for (uint64_t b = 0; b < o->budgets.count; b++) {
        uint64_t several = slc_bench_budget_auto(o->budgets.text[b]);
        budgets += several ? several : 1;
    }
    return o->repeat * budgets * slc_bench_combinations(o);
}

uint64_t slc_bench_part_count(const slc_bench_options *o)
{
    return o->throttles.count * o->rank_counts.count;
}

const char *slc_bench_part_throttle(const slc_bench_options *o, uint64_t part)
{
    return o->throttles.text[part % o->throttles.count];
}

uint64_t slc_bench_part_ranks(const slc_bench_options *o, uint64_t part)
{
    return strtoull(o->rank_counts.text[part / o->throttles.count], NULL, 10);
}

const char *slc_bench_or_none(const char *text)
{
    return strcmp(text, "none") ? text : "";
}

/* If the strategy or the optimizer is "usual", the other one decides it; if both are, the strategy is dp. */
static void set_optimizer(slc_bench_case *one, const char *optimizer)
{
    bool free_strategy = !strcmp(one->strategy, SLC_BENCH_USUAL);
    if (!strcmp(optimizer, SLC_BENCH_USUAL)) optimizer = "";
    if (free_strategy) one->strategy = slc_training_is_compressed(optimizer) ? "onebit" : "dp";
    one->training.strategy = one->strategy;
    one->training.optimizer = optimizer;
    one->training.optimizer = one->optimizer = slc_training_optimizer(&one->training);
    slc_training_onebit_only(&one->training);
    slc_training_optimizer_drop(&one->training, one->optimizer, false);
}

/* Returns true if there is another learning rate of the same optimizer. */
static bool has_rates(const slc_bench_options *o, uint64_t optimizer)
{
    for (uint64_t i = 0; i < o->optimizers.count; i++)
        if (i != optimizer && !strcmp(o->optimizers.text[i], o->optimizers.text[optimizer])) return true;
    return false;
}

/* Gives a case its label while it runs: the words that bench/sweep/figures/label.h gives its results, in the same
 * order. */
static void label_case(const slc_bench_options *o, bool rates, slc_bench_case *one)
{
    char words[7][64] = {"", "", "", "", "", "", ""};
    size_t used = 0;
    if (o->rank_counts.count > 1) snprintf(words[0], 64, "%" PRIu64 " rank%s", one->ranks, one->ranks > 1 ? "s" : "");
    if (o->micro_batches.count > 1) snprintf(words[1], 64, "micro batches %" PRIu64, one->step_micro_batches);
    if (o->recipes.count > 1) snprintf(words[2], 64, "%s", one->recipe);
    if (o->precisions.count > 1) snprintf(words[3], 64, "%s", one->training.precision);
    if (o->batches.count > 1) snprintf(words[4], 64, "batch %" PRIu64, one->training.batch);
    if (rates) snprintf(words[5], 64, "lr %.6g", one->training.learning_rate);
    if (o->recomputes.count > 1) snprintf(words[6], 64, "recompute %s", one->training.recompute);
    for (int i = 0; i < 7 && used < sizeof one->label; i++)
        if (*words[i])
            used += (size_t)snprintf(one->label + used, sizeof one->label - used, "%s%s", used ? ", " : "", words[i]);
}

bool slc_bench_is_labelled(const slc_bench_options *o)
{
    bool rates = false;
    for (uint64_t i = 0; i < o->optimizers.count; i++) rates |= has_rates(o, i);
    return rates || o->recipes.count > 1 || o->rank_counts.count > 1 || o->precisions.count > 1 ||
           o->batches.count > 1 || o->recomputes.count > 1 || o->micro_batches.count > 1;
}

/* Takes an index apart: the item of the list that it counts in its last place. */
static const char *next_of(const slc_bench_list *list, uint64_t *index)
{
    const char *item = list->text[*index % list->count];
    *index /= list->count;
    return item;
}

/* Returns the number of ranks under a launcher; without one 1, which is what a sweep starts if it is not told
 * otherwise. */
static uint64_t ranks_of_launcher(void)
{
    sluice_world_config config;
    return sluice_world_config_init(&config) ? 1 : (uint64_t)config.size;
}

/* Makes the case a run of the pipeline that its strategy names, and shares the micro-batches of the step. */
static void set_pipeline(const slc_bench_options *o, slc_bench_case *one)
{
    slc_training_options *training = &one->training;
    const slc_bench_pipeline *pipeline = slc_bench_pipelines_find(&o->pipelines, one->strategy);
    if (pipeline) {
        slc_bench_pipeline_set(pipeline, training);
        one->strategy = pipeline->name;
        one->schedule = pipeline->schedule;
        one->tied = training->tied;
    }
    const uint64_t sharers = slc_training_replicas(training, one->ranks);
    one->step_micro_batches = training->micro_batches * (o->pipelines.count ? 1 : sharers);
    if (o->pipelines.count) training->micro_batches = one->step_micro_batches / sharers;
}

/* Repetitions are the outermost loop, so that a temporary disturbance of the machine affects all combinations
 * equally. */
void slc_bench_case_at(const slc_bench_options *o, uint64_t part, uint64_t index, slc_bench_case *out)
{
    *out = (slc_bench_case){.throttle = slc_bench_part_throttle(o, part), .training = o->training};
    out->ranks = out->training.ranks = slc_bench_part_ranks(o, part);
    if (!out->ranks) out->ranks = ranks_of_launcher();
    out->tied = out->training.tied = next_of(&o->tied, &index);
    uint64_t optimizer = index % o->optimizers.count;
    index /= o->optimizers.count;
    const uint64_t recipes = o->recipes.count ? o->recipes.count : 1, recipe = index % recipes;
    index /= recipes;
    if (o->recipes.count) {
        const slc_training_options before = out->training;
        out->recipe = o->recipes.text[recipe];
        out->training = o->with_recipe[recipe];
        out->training.ranks = before.ranks;
        out->training.tied = before.tied;
        out->training.model = before.model; /* these two as the check has found them */
        out->training.size = before.size;
    }
    out->schedule = next_of(&o->schedules, &index);
    out->strategy = next_of(&o->strategies, &index);
    out->training.recompute = next_of(&o->recomputes, &index);
    out->training.precision = next_of(&o->precisions, &index);
    out->training.batch = strtoull(next_of(&o->batches, &index), NULL, 10);
    const char *micro_batches = next_of(&o->micro_batches, &index);
    if (!out->recipe || o->micro_batches.count > 1) out->training.micro_batches = strtoull(micro_batches, NULL, 10);
    set_optimizer(out, o->optimizers.text[optimizer]);
    if (!out->recipe || o->rate_given[optimizer]) out->training.learning_rate = o->learning_rates[optimizer];
    if (!strcmp(out->schedule, SLC_BENCH_USUAL))
        out->schedule = strcmp(out->strategy, "auto") ? "one_ahead" : slc_schedule_default;
    out->budget = o->budgets.text[index % o->budgets.count];
    out->repeat = 1 + index / o->budgets.count;
    out->training.schedule = out->schedule;
    out->training.budget = slc_bench_or_none(out->budget);
    out->training.throttle = slc_bench_or_none(out->throttle);
    set_pipeline(o, out);
    label_case(o, has_rates(o, optimizer), out);
}
