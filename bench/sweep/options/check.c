/* The options of a sweep, checked before hours of work. tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/options/check.h"

#include "bench/cli/throttle_option.h"
#include "bench/sweep/options/cases.h"
#include "bench/train/options/onebit_options.h"
#include "bench/train/options/optimizer_options.h"
#include "lib/base/status.h"
#include "lib/plan/job.h"
#include "lib/plan/strategy_names.h"

#include <string.h>
#include <unistd.h>

/* Names are checked here, and that files are there; their content needs the model's layers. */
static sluice_status check_strategy(const char *text)
{
    static const char *const others[] = {"auto", "mixed", SLC_BENCH_USUAL};
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
    uint64_t cases = o->budgets.count * slc_bench_combinations(o);
    for (uint64_t t = 0; !status && t < o->throttles.count; t++)
        status = slc_throttle_check(slc_bench_or_none(o->throttles.text[t]));
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
    if (slc_bench_combinations(o) > o->strategies.count * o->schedules.count * o->optimizers.count ||
        o->rank_counts.count > 1)
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

sluice_status slc_bench_options_check(slc_bench_options *o)
{
    sluice_status status = check_mode(o);
    return status ? status : check_cases(o);
}
