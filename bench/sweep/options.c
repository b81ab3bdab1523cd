/* The command line of `sluice bench`: the options of training, some of which are lists here or have other defaults, and
 * its own. tests/command/bench_test.sh covers this file. */
#include "bench/sweep/options.h"

#include "bench/cli/default_threads.h"
#include "bench/cli/options/command_line.h"
#include "bench/cli/throttle_option.h"
#include "bench/train/options/onebit_options.h"
#include "bench/train/options/optimizer_options.h"
#include "lib/base/array.h"
#include "lib/base/text/list_item.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"
#include "lib/plan/job.h"
#include "lib/plan/strategy_names.h"
#include "sched/planner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usual[] = "usual", usual_strategies[] = SLC_EXACT_NAMES(",") ",auto";

static sluice_status set_demo(void *options, const slc_option *row, char *text)
{
    static const char *const demo[][2] = {{"ranks", "2"},
                                          {"size", "mini"},
                                          {"batch", "4"},
                                          {"context", "64"},
                                          {"steps", "24"},
                                          {"lr", "0.0005"},
                                          {"schedule", usual},
                                          {"budget", "none,80%,65%,64%,63%,auto:3"},
                                          {"throttle", "none,1gbit"}};
    slc_bench_options *o = options;
    (void)row;
    (void)text;
    o->demo = true;
    for (size_t i = 0; i < sizeof demo / sizeof *demo; i++)
        slc_training_option_set(&o->training, demo[i][0], demo[i][1]);
    o->training.strategy = usual_strategies; /* as if it had not been given */
    return SLUICE_OK;
}

#define FIELD(name) SLC_OPTION_FIELD(slc_bench_options, name)
static const double MOST = 1e6;
static const char *const headings[] = {NULL, "The sweep:"};

static const slc_option option_rows[] = {
    {"output", "DIR", 1, SLC_OPTION_TEXT, FIELD(output), NULL, SLC_OPTION_SHORT,
     "Folder of the results; a sweep of the same settings that is there is continued (default out/bench/DATE-WHAT)",
     .letter = 'o'},
    {"overwrite", NULL, 1, SLC_OPTION_FLAG, FIELD(overwrite), NULL, SLC_OPTION_SHORT,
     "Replace results that the folder has"},
    {"cell-timeout", "S", 1, SLC_OPTION_TIME, FIELD(cell_timeout_s), NULL, SLC_OPTION_SHORT,
     "A run that takes longer has failed, and the sweep goes on (default: no limit)", SLC_OPTION_ABOVE_0},
    {"join", NULL, 1, SLC_OPTION_FLAG, FIELD(join), NULL, SLC_OPTION_SHORT,
     "Instead: one table and picture of the sweeps in the folders that follow, as --join A B"},
    {"repeat", "N", 1, SLC_OPTION_COUNT, FIELD(repeat), "3", SLC_OPTION_SHORT,
     "Run every combination N times, first each once, then each again", 1, MOST,
     .note = "; 1 with --demo or --tradeoff"},
    {"demo", NULL, 1, SLC_OPTION_SET, FIELD(demo), NULL, 0, "The sweep of `./dev demo`: about two minutes on two cores",
     .set = set_demo},
    {"tradeoff", NULL, 1, SLC_OPTION_FLAG, FIELD(tradeoff), NULL, SLC_OPTION_SHORT,
     "Instead: one budget, its free memory shared between strategies and schedule"},
    {"shares", "N", 1, SLC_OPTION_COUNT, FIELD(shares), "11", 0, "Shares of the trade-off", 2, MOST,
     .note = ": 0 %, 10 %, ... 100 %"},
    {"profile", "FILE", 1, SLC_OPTION_TEXT, FIELD(profile), NULL, 0,
     "The trade-off of this profile, predicted only: nothing is trained"},
    {"part", "N", 1, SLC_OPTION_COUNT, FIELD(part), NULL, SLC_OPTION_HIDDEN, "", 0, MOST},
    {"done", "N", 1, SLC_OPTION_COUNT, FIELD(done), NULL, SLC_OPTION_HIDDEN, "", 0, MOST},
    {"overall", "N", 1, SLC_OPTION_COUNT, FIELD(overall), NULL, SLC_OPTION_HIDDEN, "", 0, MOST},
    {0},
};
static_assert(sizeof option_rows / sizeof *option_rows - 1 <= SLC_BENCH_OPTIONS_MAX,
              "each option has a place in `typed`");

/* The options that differ from those of `sluice train`: some take lists, a run is short, and nothing of it is kept. */
static const slc_training_difference differences[] = {
    {"strategy", .fallback = usual_strategies, .argument = "LIST=auto," SLC_STRATEGY_NAMES(",") ",mixed,usual",
     .doc = "Strategies, with commas between; usual: onebit for compressed optimizers, dp for others"},
    {"schedule", .fallback = usual, .argument = "LIST",
     .doc = "Orders of communication, with commas between; usual: ilp (without GLPK portfolio) for auto, one_ahead for "
            "other strategies"},
    {"budget", .argument = "LIST",
     .doc = "Memory a rank may use, as none,900MiB,60%; auto:N: N budgets between the smallest that works and what all "
            "sdp needs (default none)"},
    {"throttle", .argument = "LIST",
     .doc = "Networks, as none,1gbit,\"100mbit,50us\": bandwidth and latency (default none)"},
    {"optimizer", .argument = "LIST",
     .doc = "Optimizers, as adamw,lamb@0.01,lamb@0.02: each may have a learning rate of its own; several are compared "
            "by loss (default: as the strategy needs)"},
    {"lr", .argument = "LIST", .list = true,
     .doc = "Learning rates of the optimizers that have none of their own; several are compared by loss"},
    {"batch", .argument = "LIST", .list = true, .doc = "Sequences (images) a rank and micro-batch"},
    {"precision", .argument = "LIST=fp32,bf16", .doc = "Types of values, gradients and activations: fp32, bf16"},
    {"recompute", .seldom = true, .argument = "LIST=none,all,auto",
     .doc = "Layers that run their forward again in backward: none, all, auto (as the planner chooses)"},
    {"ranks", .argument = "LIST", .list = true,
     .doc = "Start so many ranks on this machine, one number after the other"},
    {"recipe", .argument = "LIST", .list = true,
     .doc = "Recipes in files, with commas between; several are compared by loss. Options of the command line come "
            "before them"},
    {"tied", .seldom = true, .argument = "LIST",
     .doc = "Ways to treat a token table that is the head's matrix too, with commas between: joint: one gradient of "
            "both uses; split: the rows that are looked up are gathered and reduced by themselves"},
    {"steps", .fallback = "12", .doc = "Steps of each run; 200 where several optimizers or recipes are compared"},
    {"epochs", .refused = "runs are compared after equal numbers of steps (--steps)"},
    {"eval-batches", .fallback = "0"},
    {"save,save-every,on-save-error,resume,new-recipe,go-on,stop-after,save-weights,overwrite",
     .refused = "only sluice train keeps what it trains"},
    {"plan,plan-out,profile-out,first-batch", .refused = "only sluice train reads and keeps plans and batches"},
    {"no-hash", .refused = "runs are compared by the hash of their weights"},
    {"replan-trials", .fallback = "0"},
    {"pipeline", .argument = "LIST",
     .doc = "Pipelines of so many stages beside the strategies of runs without one (off), as off,2,4; then "
            "--micro-batches is a step's number, which ranks share"},
    {"pipeline-schedule", .seldom = true, .argument = "LIST=1f1b,gpipe,interleaved",
     .doc = "Schedules of these pipelines"},
    {"micro-batches", .seldom = true, .argument = "LIST", .list = true,
     .doc = "Micro-batches a rank and step; with --pipeline of a step in all"},
    {"pipeline-chunks,pipeline-cuts",
     .refused = "a sweep has pipelines of several shapes; they are cut by the planner"},
    {"log,config,verbose,sample-every,prompt,observe", .refused = "only sluice train has a log and options in a file"},
    {"trace", .refused = "a sweep has many runs; sluice train --trace records one"},
    {0},
};

static const char help_text[] =
    "Trains a few steps for each combination of the values that options give, prints a table and writes results.csv, "
    "results.json and the picture step_time (SVG and PNG) into a folder; with "
    "several optimizers or recipes also the picture losses.\v"
    "Each combination of strategies, schedules, budgets, throttles, optimizers, learning rates, recipes, batches, "
    "micro-batches, precisions, recomputations, ways to treat tied parameters and numbers of ranks is run. Pipelines "
    "stand beside the strategies; if there are several numbers of micro-batches, the picture micro_batches shows steps "
    "against them.\n\n"
    "Several optimizers or recipes are compared by loss, the first being the measure: loss against step, tokens and "
    "time, steps and bytes before and after the freeze. Then the defaults are --strategy usual and --steps 200; a "
    "recipe's own steps come before that.\n\n"
    "--tradeoff takes one budget (default auto:1) and one throttle. What is left of the budget after what every plan "
    "keeps can be given to strategies (layers under sdp) or to the schedule (gathered buffers, waiting gradients). "
    "Each "
    "share is planned and simulated, then run. The picture tradeoff (SVG and PNG) shows both, and where the planner "
    "puts itself when it is free. Nothing is recomputed unless --recompute says so: activations are no part of the "
    "trade then.\n\n"
    "results.csv and results.json are whole after every run. The same command goes on where a sweep was interrupted or "
    "killed: what the folder has is not run again, and what has failed is tried once more. Results of other settings "
    "are refused, or replaced with --overwrite.\n\n"
    "A run that fails has a row with the reason, and the sweep goes on. Ctrl-C stops after the step (exit code 130). "
    "The exit code is 1 where a run has failed, where weights differ between runs, or where a run's peak is not what "
    "was planned; 2 where nothing fits.\n\n"
    "Examples:\n"
    "  sluice bench -n 2 --size mini --budget none,auto:5 --throttle none,1gbit\n"
    "  sluice bench -n 2 --optimizer adamw,onebit_adam --warmup 20 --throttle 1gbit\n"
    "  sluice bench -n 2 --size mini --tradeoff --throttle 1gbit\n"
    "  sluice bench --tradeoff --profile gpt3.json --budget 60GiB\n"
    "  sluice bench -n 2 --pipeline off,2 --strategy dp,sdp --micro-batches 2,4,8 --throttle 1gbit\n"
    "  sluice bench --join out/before out/after -o out/both\n"
    "More: docs/benchmarks.md";

/* ---- Lists ---- */

/* True if the item of the list is a time: "1gbit,50us" is one throttle, because a time belongs to the bandwidth before
 * it. */
static bool is_latency(const char *text)
{
    double value;
    size_t length = strlen(text);
    return length && text[length - 1] == 's' && !slc_parse_seconds(text, &value);
}

typedef enum { WORDS, BUDGETS, THROTTLES, NUMBERS } list_kind;

/* Are two items of a list the same value, written differently perhaps? */
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

/* Refuses "4,5MiB", which is a decimal as some languages write it: of two sizes each would have a unit. */
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

/* Puts pipelines behind the strategies; without "off" there nothing else stays in that list. A list of "off" alone
 * changes nothing. */
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

static sluice_status split_lists(slc_bench_options *o)
{
    const slc_training_options *t = &o->training;
    sluice_status status = split_list("strategy", t->strategy, WORDS, &o->strategies);
    if (!status) status = split_list("schedule", t->schedule, WORDS, &o->schedules);
    if (!status) status = split_list("budget", *t->budget ? t->budget : "none", BUDGETS, &o->budgets);
    if (!status) status = split_list("throttle", *t->throttle ? t->throttle : "none", THROTTLES, &o->throttles);
    if (!status) status = split_list("optimizer", *t->optimizer ? t->optimizer : usual, WORDS, &o->optimizers);
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

/* ---- Cases ---- */

uint64_t slc_bench_budget_auto(const char *text)
{
    char *end;
    if (strncmp(text, "auto:", 5) || text[5] < '1' || text[5] > '9') return 0;
    unsigned long count = strtoul(text + 5, &end, 10);
    return *end || count > SLC_BENCH_LIST_MAX / 2 ? 0 : count;
}

/* Counts the combinations of all lists of a part without the budgets, whose number is not known while they are
 * "auto:N". */
static uint64_t combinations(const slc_bench_options *o)
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
    return o->repeat * budgets * combinations(o);
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

static const char *or_none(const char *text)
{
    return strcmp(text, "none") ? text : "";
}

/* If the strategy or the optimizer is "usual", the other one decides it; if both are, the strategy is dp. */
static void set_optimizer(slc_bench_case *one, const char *optimizer)
{
    bool free_strategy = !strcmp(one->strategy, usual);
    if (!strcmp(optimizer, usual)) optimizer = "";
    if (free_strategy) one->strategy = slc_training_is_compressed(optimizer) ? "onebit" : "dp";
    one->training.strategy = one->strategy;
    one->training.optimizer = optimizer;
    one->training.optimizer = one->optimizer = slc_training_optimizer(&one->training);
    slc_training_onebit_only(&one->training);
    slc_training_optimizer_drop(&one->training, one->optimizer, false);
}

/* Is there another learning rate of the same optimizer? */
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
    if (!strcmp(out->schedule, usual))
        out->schedule = strcmp(out->strategy, "auto") ? "one_ahead" : slc_schedule_default;
    out->budget = o->budgets.text[index % o->budgets.count];
    out->repeat = 1 + index / o->budgets.count;
    out->training.schedule = out->schedule;
    out->training.budget = or_none(out->budget);
    out->training.throttle = or_none(out->throttle);
    set_pipeline(o, out);
    label_case(o, has_rates(o, optimizer), out);
}

/* Names are checked here, and that files are there; their content needs the model's layers. */
static sluice_status check_strategy(const char *text)
{
    static const char *const others[] = {"auto", "mixed", usual};
    slc_strategy uniform;
    bool known = slc_strategy_parse(text, &uniform) || !strncmp(text, "pipeline ", 9);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) known |= !strcmp(text, others[i]);
    if (known || access(text, R_OK) == 0) return SLUICE_OK;
    if (!strncmp(text, "random:", 7) && text[7] && strspn(text + 7, "0123456789") == strlen(text + 7)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "--strategy %s: it is no strategy, nor a file; use auto, %s, mixed, random:SEED, usual, or the "
                     "path of a JSON file",
                     text, SLC_STRATEGY_NAMES(", "));
}

/* Checks all that can be known before hours of work. */
static sluice_status check_cases(slc_bench_options *o)
{
    sluice_status status = SLUICE_OK;
    slc_bench_case one;
    slc_training_options said = o->training;
    bool compressed = false;
    uint64_t cases = o->budgets.count * combinations(o);
    for (uint64_t t = 0; !status && t < o->throttles.count; t++)
        status = slc_throttle_check(or_none(o->throttles.text[t]));
    for (uint64_t s = 0; !status && s < o->strategies.count; s++) status = check_strategy(o->strategies.text[s]);
    for (uint64_t i = 0; !status && i < cases; i++) {
        slc_bench_case_at(o, 0, i, &one);
        if (slc_bench_budget_auto(one.budget)) one.training.budget = "";
        if (o->pipelines.count)
            status = slc_bench_pipelines_check(&one.training, one.ranks, one.step_micro_batches, one.strategy);
        if (!status) status = slc_training_options_check(&one.training);
        o->training.model = one.training.model;
        o->training.size = one.training.size;
        compressed |= slc_training_is_compressed(one.optimizer);
        slc_training_optimizer_drop(&said, one.optimizer, true);
    }
    if (status) return status;
    /* Each case drops the options that are not for its optimizer: those that all have dropped are refused here. */
    said.strategy = "dp";
    said.optimizer = one.optimizer;
    status = slc_training_optimizer_check(&said);
    return status || compressed ? status : slc_training_onebit_check(&said);
}

static sluice_status check_mode(const slc_bench_options *o)
{
    bool found = false;
    for (uint64_t b = 0; b < o->budgets.count; b++) found |= slc_bench_budget_auto(o->budgets.text[b]) > 0;
    if (found && (o->batches.count > 1 || o->precisions.count > 1 || o->recomputes.count > 1 ||
                  o->rank_counts.count > 1 || o->micro_batches.count > 1 || o->recipes.count > 1))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--budget auto:N: what works depends on --batch, --micro-batches, --precision, --recompute, "
                         "--recipe and --ranks: give one of each, or budgets as 60%%");
    if (!o->tradeoff && o->profile)
        return slc_error(SLUICE_ERR_ARGUMENT, "--profile: only --tradeoff works from a profile");
    if (!o->tradeoff) return SLUICE_OK;
    if (o->shares > SLC_BENCH_SHARES_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "--shares: at most %d", SLC_BENCH_SHARES_MAX);
    if (o->budgets.count > 1 || o->throttles.count > 1 || slc_bench_budget_auto(o->budgets.text[0]) > 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "--tradeoff: takes one budget and one throttle");
    if (o->tied.count > 1) return slc_error(SLUICE_ERR_ARGUMENT, "--tradeoff: takes one --tied, joint or split");
    if (combinations(o) > o->strategies.count * o->schedules.count * o->optimizers.count || o->rank_counts.count > 1)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--tradeoff: takes one --batch, --micro-batches, --precision, --recompute and --ranks");
    if (o->pipelines.count)
        return slc_error(SLUICE_ERR_ARGUMENT, "--tradeoff: its shares are of runs without --pipeline");
    if (o->optimizers.count > 1 || strcmp(o->training.lossy, "none") ||
        slc_training_is_compressed(o->training.optimizer))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--tradeoff: its shares are of exact strategies; leave compressed optimizers and --lossy out");
    return SLUICE_OK;
}

sluice_status slc_bench_options_set_budgets(slc_bench_options *options, const char *list)
{
    free(options->budgets.storage);
    options->budgets = (slc_bench_list){0};
    return split_list("budget", list, BUDGETS, &options->budgets);
}

/* ---- Parsing ---- */

/* Keeps an argument as a folder of --join. The option may stand after the first of its folders, so only at the end is
 * it known whether there may be any. */
static sluice_status take_source(void *options, char *text)
{
    slc_bench_options *o = options;
    if (!SLC_ROOM_FOR_ONE(o->sources, o->source_count)) return slc_error(SLUICE_ERR_MEMORY, "--join");
    o->sources[o->source_count++] = text;
    return SLUICE_OK;
}

static sluice_status check(void *options)
{
    const slc_bench_options *o = options;
    if (o->join && !o->source_count)
        return slc_error(SLUICE_ERR_ARGUMENT, "--join: name folders of sweeps, as --join A B");
    if (o->join || !o->source_count) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\" is no option; lists take commas, not spaces", o->sources[0]);
}

/* Sets the defaults that depend on what is compared. A comparison of losses takes more steps than one of times, and
 * gives each optimizer its own strategy. */
static void set_defaults(slc_bench_options *o)
{
    slc_training_options *t = &o->training;
    const char *rates = slc_training_option_typed(t, "lr");
    bool several = strchr(t->optimizer, ',') || (rates && strchr(rates, ',')) || (t->recipe && strchr(t->recipe, ','));
    if ((o->demo || o->tradeoff) && !slc_option_typed(option_rows, o->typed, "repeat")) o->repeat = 1;
    if (several && !slc_training_option_given(t, "steps")) t->steps = 200;
    if (several && !slc_training_option_given(t, "strategy")) t->strategy = usual;
    if (o->tradeoff && !slc_training_option_given(t, "recompute")) t->recompute = "none";
}

sluice_status slc_bench_options_parse(int argc, char **argv, slc_bench_options *out)
{
    const slc_command_line line = {.rows = option_rows,
                                   .headings = headings,
                                   .doc = help_text,
                                   .typed = offsetof(slc_bench_options, typed),
                                   .take = take_source,
                                   .check = check,
                                   .shared = slc_training_command_line(differences),
                                   .shared_field = offsetof(slc_bench_options, training)};
    *out = (slc_bench_options){.part = -1};
    slc_command_line_parse(&line, argc, argv, out);
    set_defaults(out);
    if (out->join) return SLUICE_OK;
    sluice_status status = slc_fill_threads(&out->training.threads); /* a column, and what a folder's runs share */
    if (!status) status = split_lists(out);
    if (!status) status = check_mode(out);
    if (!status) status = check_cases(out);
    if (status) return status;
    slc_bench_case first;
    slc_bench_case_at(out, 0, 0, &first);
    out->training.optimizer = first.optimizer; /* for the training run that finds budgets */
    out->training.tied = first.tied;
    out->training.precision = first.training.precision;
    out->training.recompute = first.training.recompute;
    return SLUICE_OK;
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
