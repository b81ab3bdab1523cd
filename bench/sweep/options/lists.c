/* The lists of a sweep: values with commas between, combined to optimizers with rates, pipelines and recipes.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/options/lists.h"

#include "bench/train/options/options.h"
#include "lib/base/status.h"
#include "lib/base/text/list_item.h"
#include "lib/base/text/parse_quantity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* True if the item of the list is a time: "1gbit,50us" is one throttle, because a time belongs to the bandwidth before
 * it. */
static bool is_latency(const char *text)
{
    double value;
    size_t length = strlen(text);
    return length && text[length - 1] == 's' && !slc_parse_seconds(text, &value);
}

typedef enum { WORDS, BUDGETS, THROTTLES, NUMBERS } list_kind;

/* Returns true if two items of a list are the same value, written differently perhaps. */
static bool same_item(list_kind kind, const char *a, const char *b)
{
    uint64_t bytes[2] = {0};
    double fraction[2] = {0}, number[2];
    if (!strcmp(a, b)) return true;
    if (kind == BUDGETS && !slc_parse_budget(a, &bytes[0], &fraction[0]) &&
        !slc_parse_budget(b, &bytes[1], &fraction[1]))
        return bytes[0] == bytes[1] && fraction[0] == fraction[1];
    if (kind == THROTTLES && !slc_parse_bandwidth(a, &number[0]) && !slc_parse_bandwidth(b, &number[1]))
        return number[0] == number[1];
    return kind == NUMBERS && strtod(a, NULL) == strtod(b, NULL);
}

/* Refuses "4,5MiB", which some languages write for 4.5 MiB. It cannot be a list of two sizes, because each would have a
 * unit. */
static sluice_status check_decimal(const char *option, list_kind kind, const char *before, const char *item)
{
    const bool plain = before && before[strspn(before, "0123456789")] == 0 && item[0] >= '0' && item[0] <= '9';
    if (!plain || (kind != BUDGETS && kind != THROTTLES)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--%s %s,%s: a decimal takes a point, as %s.%s, and each of two values a unit", option, before,
                     item, before, item);
}

/* Splits a list into its values. Values that are equal count once. */
static sluice_status split_list(const char *option, const char *text, list_kind kind, slc_bench_list *list)
{
    list->storage = strdup(text);
    if (!list->storage) return slc_error(SLUICE_ERR_MEMORY, "--%s", option);
    const char *typed = NULL; /* the item before, which may equal an earlier one */
    for (char *rest = list->storage, *item; (item = slc_next_item(&rest)) != NULL; typed = item) {
        if (!*item) continue;
        char *before = list->count ? list->text[list->count - 1] : NULL;
        if (kind == THROTTLES && before && before + strlen(before) + 1 == item && is_latency(item)) {
            item[-1] = ',';
            continue;
        }
        sluice_status status = check_decimal(option, kind, typed, item);
        uint64_t i = 0;
        if (status) return status;
        while (i < list->count && !same_item(kind, list->text[i], item)) i++;
        if (i < list->count) continue;
        if (list->count == SLC_BENCH_LIST_MAX)
            return slc_error(SLUICE_ERR_ARGUMENT, "--%s: more than %d values", option, SLC_BENCH_LIST_MAX);
        list->text[list->count++] = item;
    }
    if (!list->count) return slc_error(SLUICE_ERR_ARGUMENT, "--%s: the list is empty", option);
    return SLUICE_OK;
}

/* Reads the rate after the "@" of "lamb@0.01", and cuts it off; 0: there is none. */
static sluice_status cut_rate(char *name, double *rate)
{
    char *at = strchr(name, '@'), *end;
    *rate = 0;
    if (!at) return SLUICE_OK;
    *at = 0;
    *rate = strtod(at + 1, &end);
    if (end == at + 1 || *end || !(*rate > 0 && *rate <= 1e6))
        return slc_error(SLUICE_ERR_ARGUMENT, "--optimizer %s@%s: give a learning rate after the @", name, at + 1);
    return SLUICE_OK;
}

static sluice_status add_optimizer(slc_bench_options *o, char *name, double rate, bool given)
{
    for (uint64_t i = 0; i < o->optimizers.count; i++)
        if (!strcmp(o->optimizers.text[i], name) && o->learning_rates[i] == rate) return SLUICE_OK;
    if (o->optimizers.count == SLC_BENCH_LIST_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "--optimizer, --lr: more than %d combinations", SLC_BENCH_LIST_MAX);
    o->rate_given[o->optimizers.count] = given;
    o->learning_rates[o->optimizers.count] = rate;
    o->optimizers.text[o->optimizers.count++] = name;
    return SLUICE_OK;
}

/* Makes one optimizer of each name and rate. */
static sluice_status split_rates(slc_bench_options *o)
{
    const slc_bench_list names = o->optimizers;
    slc_bench_list rates = {0};
    const char *typed = slc_training_option_typed(&o->training, "lr");
    char usual_rate[32];
    snprintf(usual_rate, sizeof usual_rate, "%.17g", o->training.learning_rate);
    sluice_status status = split_list("lr", typed ? typed : usual_rate, NUMBERS, &rates);
    o->optimizers.count = 0;
    for (uint64_t i = 0; !status && i < names.count; i++) {
        double rate;
        status = cut_rate(names.text[i], &rate);
        if (!status && rate > 0) status = add_optimizer(o, names.text[i], rate, true);
        for (uint64_t r = 0; !status && rate <= 0 && r < rates.count; r++)
            status = add_optimizer(o, names.text[i], strtod(rates.text[r], NULL), typed != NULL);
    }
    free(rates.storage);
    return status;
}

/* Splits the list of an option of numbers, which is typed or has its default. */
static sluice_status split_numbers(const slc_training_options *t, const char *option, uint64_t fallback,
                                   slc_bench_list *list)
{
    const char *typed = slc_training_option_typed(t, option);
    char number[32];
    snprintf(number, sizeof number, "%" PRIu64, fallback);
    return split_list(option, typed ? typed : number, NUMBERS, list);
}

/* Adds the pipelines to the list of strategies; if "off" is not among the stages, the pipelines replace the strategies.
 * If "off" is all there is, nothing changes. */
static sluice_status add_pipelines(slc_bench_options *o, const slc_bench_list *stages, const slc_bench_list *schedules)
{
    sluice_status status = SLUICE_OK;
    bool off = false;
    for (uint64_t i = 0; i < stages->count; i++) off |= !strcmp(stages->text[i], "off");
    if (off && stages->count == 1) return SLUICE_OK;
    if (o->schedules.count > 1)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--schedule: beside --pipeline, whose schedules are --pipeline-schedule's, "
                         "give one");
    if (!off) o->strategies.count = 0;
    for (uint64_t i = 0; !status && i < stages->count; i++)
        for (uint64_t s = 0; !status && strcmp(stages->text[i], "off") && s < schedules->count; s++) {
            slc_bench_pipelines *all = &o->pipelines;
            if (o->strategies.count == SLC_BENCH_LIST_MAX)
                return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline, --strategy: more than %d values",
                                 SLC_BENCH_LIST_MAX);
            status = slc_bench_pipelines_add(all, stages->text[i], schedules->text[s]);
            if (!status) o->strategies.text[o->strategies.count++] = (char *)all->of[all->count - 1].item;
        }
    o->training.pipeline = "off"; /* of runs without one */
    o->training.pipeline_schedule = "1f1b";
    return status;
}

static sluice_status split_pipelines(slc_bench_options *o)
{
    slc_bench_list stages = {0}, schedules = {0};
    sluice_status status = split_list("pipeline", o->training.pipeline, WORDS, &stages);
    if (!status) status = split_list("pipeline-schedule", o->training.pipeline_schedule, WORDS, &schedules);
    if (!status) status = add_pipelines(o, &stages, &schedules);
    free(stages.storage);
    free(schedules.storage);
    return status;
}

/* Reads all recipes before the first run. */
static sluice_status read_recipes(slc_bench_options *o)
{
    sluice_status status =
        o->training.recipe ? split_list("recipe", o->training.recipe, WORDS, &o->recipes) : SLUICE_OK;
    if (status || !o->recipes.count) return status;
    o->with_recipe = malloc(o->recipes.count * sizeof *o->with_recipe);
    if (!o->with_recipe) return slc_error(SLUICE_ERR_MEMORY, "--recipe: %" PRIu64 " recipes", o->recipes.count);
    for (uint64_t i = 0; !status && i < o->recipes.count; i++) {
        o->with_recipe[i] = o->training;
        status = slc_training_recipe_take(o->recipes.text[i], &o->with_recipe[i]);
    }
    return status;
}

sluice_status slc_bench_lists_split(slc_bench_options *o)
{
    const slc_training_options *t = &o->training;
    sluice_status status = split_list("strategy", t->strategy, WORDS, &o->strategies);
    if (!status) status = split_list("schedule", t->schedule, WORDS, &o->schedules);
    if (!status) status = split_list("budget", *t->budget ? t->budget : "none", BUDGETS, &o->budgets);
    if (!status) status = split_list("throttle", *t->throttle ? t->throttle : "none", THROTTLES, &o->throttles);
    if (!status)
        status = split_list("optimizer", *t->optimizer ? t->optimizer : SLC_BENCH_USUAL, WORDS, &o->optimizers);
    if (!status) status = split_list("tied", t->tied, WORDS, &o->tied);
    if (!status) status = split_list("precision", t->precision, WORDS, &o->precisions);
    if (!status) status = split_list("recompute", t->recompute, WORDS, &o->recomputes);
    if (!status) status = split_numbers(t, "batch", t->batch, &o->batches);
    if (!status) status = split_numbers(t, "micro-batches", t->micro_batches, &o->micro_batches);
    if (!status) status = split_numbers(t, "ranks", t->ranks, &o->rank_counts);
    if (!status) status = split_pipelines(o);
    if (!status) status = read_recipes(o);
    return status ? status : split_rates(o);
}

sluice_status slc_bench_options_set_budgets(slc_bench_options *options, const char *list)
{
    free(options->budgets.storage);
    options->budgets = (slc_bench_list){0};
    return split_list("budget", list, BUDGETS, &options->budgets);
}

void slc_bench_options_free(slc_bench_options *options)
{
    free(options->strategies.storage);
    free(options->schedules.storage);
    free(options->budgets.storage);
    free(options->throttles.storage);
    free(options->optimizers.storage);
    free(options->tied.storage);
    free(options->batches.storage);
    free(options->micro_batches.storage);
    free(options->precisions.storage);
    free(options->recomputes.storage);
    free(options->rank_counts.storage);
    free(options->recipes.storage);
    free(options->with_recipe);
    free(options->sources);
    *options = (slc_bench_options){0};
}
