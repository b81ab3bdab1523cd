/* The command line of `sluice bench`: the options of training, some of which are lists here or have other defaults, and
 * its own. tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/options/options.h"

#include "bench/cli/default_threads.h"
#include "bench/cli/options/command_line.h"
#include "bench/sweep/options/check.h"
#include "lib/base/array.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_names.h"

#include <assert.h>
#include <string.h>

static const char usual_strategies[] = SLC_EXACT_NAMES(",") ",auto";

static sluice_status set_demo(void *options, const slc_option *row, char *text)
{
    static const char *const demo[][2] = {{"ranks", "2"},
                                          {"size", "mini"},
                                          {"batch", "4"},
                                          {"context", "64"},
                                          {"steps", "24"},
                                          {"lr", "0.0005"},
                                          {"schedule", SLC_BENCH_USUAL},
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
    {"schedule", .fallback = SLC_BENCH_USUAL, .argument = "LIST",
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

static sluice_status check_options(void *options)
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
    if (several && !slc_training_option_given(t, "strategy")) t->strategy = SLC_BENCH_USUAL;
    if (o->tradeoff && !slc_training_option_given(t, "recompute")) t->recompute = "none";
}

sluice_status slc_bench_options_parse(int argc, char **argv, slc_bench_options *out)
{
    const slc_command_line line = {.rows = option_rows,
                                   .headings = headings,
                                   .doc = help_text,
                                   .typed = offsetof(slc_bench_options, typed),
                                   .take = take_source,
                                   .check = check_options,
                                   .shared = slc_training_command_line(differences),
                                   .shared_field = offsetof(slc_bench_options, training)};
    *out = (slc_bench_options){.part = -1};
    slc_command_line_parse(&line, argc, argv, out);
    set_defaults(out);
    if (out->join) return SLUICE_OK;
    sluice_status status = slc_fill_threads(&out->training.threads); /* a column, and what a folder's runs share */
    if (!status) status = slc_bench_lists_split(out);
    if (!status) status = slc_bench_options_check(out);
    if (status) return status;
    slc_bench_case first;
    slc_bench_case_at(out, 0, 0, &first);
    out->training.optimizer = first.optimizer; /* for the training run that finds budgets */
    out->training.tied = first.tied;
    out->training.precision = first.training.precision;
    out->training.recompute = first.training.recompute;
    return SLUICE_OK;
}
