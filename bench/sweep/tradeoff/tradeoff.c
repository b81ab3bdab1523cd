/* Rank 0 plans, then all train. Strategies travel in a file of the output folder that rank 0's planner reads as it
 * would read a user's. tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/tradeoff/tradeoff.h"

#include "bench/sweep/budgets.h"
#include "bench/sweep/results.h"
#include "bench/cli/environment.h"
#include "bench/cli/outcome.h"
#include "bench/sweep/survey.h"
#include "bench/sweep/tradeoff/tradeoff_opening.h"
#include "bench/sweep/tradeoff/tradeoff_results.h"
#include "sched/joint/simple_plans.h"
#include "bench/train/report.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"
#include "lib/plan/request.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    slc_bench_options *options;
    const volatile sig_atomic_t *stops;
    FILE *out;
    sluice_world *world; /* NULL: nothing is trained */
    bool leads;          /* this is rank 0, or runs alone */
    slc_profile *profile;
    uint64_t budget;
    slc_tradeoff tradeoff;
    json_t *settings, *document;
} trade;

static sluice_status path_in(const trade *t, const char *name, char *path)
{
    return slc_folder_path(t->options->output, name, path);
}

/* ---- Planning ---- */

/* Takes the budget that is given, or else the middle of the range in which there is something to choose. */
static sluice_status find_budget(trade *t)
{
    const char *text = t->options->budgets.text[0];
    uint64_t least, all_sdp;
    double fraction;
    slc_simple_plan dp;
    if (!strcmp(text, "none") || slc_bench_budget_auto(text)) {
        bool recompute = strcmp(t->options->training.recompute, "none") != 0;
        sluice_status status = slc_bench_budget_ends(t->profile, recompute, &least, &all_sdp);
        t->budget = status ? 0 : slc_bench_budget_between(least, all_sdp, 0, 1);
        return status;
    }
    sluice_status status = slc_parse_budget(text, &t->budget, &fraction);
    if (status || fraction == 0) return status;
    status = slc_simple_plan_uniform(t->profile, SLC_DP, &slc_scheduler_serial, UINT64_MAX, &dp);
    if (!status) t->budget = (uint64_t)(fraction * (double)(dp.arena_bytes + t->profile->job.reserved_bytes));
    return status;
}

static uint8_t *recompute_of(const slc_job *job, const char *how)
{
    uint8_t *recompute = malloc((size_t)job->layer_count + 1);
    for (uint32_t l = 0; recompute && l < job->layer_count; l++) {
        bool can = job->can_recompute && job->can_recompute[l];
        recompute[l] = !can || !strcmp(how, "none") ? 0 : !strcmp(how, "all") ? 1 : 2;
    }
    return recompute;
}

static sluice_status plan_shares(trade *t)
{
    const slc_job *job = &t->profile->job;
    if (job->world < 2)
        return slc_error(SLUICE_ERR_ARGUMENT, "--tradeoff: one rank has nothing to trade; give -n 2 or more");
    uint8_t *recompute = recompute_of(job, t->options->training.recompute);
    if (!recompute) return slc_error(SLUICE_ERR_MEMORY, "trade-off");
    const slc_tradeoff_request ask = {.job = job,
                                      .times = &t->profile->times,
                                      .recompute = recompute,
                                      .limit = t->budget > job->reserved_bytes ? t->budget - job->reserved_bytes : 0,
                                      .count = (uint32_t)t->options->shares};
    sluice_status status = slc_tradeoff_make(&ask, &t->tradeoff);
    free(recompute);
    return status;
}

static sluice_status write_plan(const trade *t)
{
    char path[SLC_FOLDER_BYTES];
    const slc_tradeoff_point *joint = &t->tradeoff.joint;
    const slc_plan_forecast forecast = {.step_s = joint->forecast.step_s,
                                        .exposed_s = joint->forecast.exposed_s,
                                        .compute_s = joint->forecast.compute_s,
                                        .communication_s = joint->forecast.communication_s,
                                        .why = joint->member};
    sluice_status status = path_in(t, "plan.json", path);
    return status ? status : slc_plan_write(&t->profile->job, t->tradeoff.joint_plan, &forecast, path);
}

static sluice_status plan_all(trade *t)
{
    sluice_status status = find_budget(t);
    if (!status) status = plan_shares(t);
    if (!status) status = write_plan(t);
    if (status) return status;
    t->document =
        slc_tradeoff_json(t->profile, &t->tradeoff, t->budget, t->world ? t->options->throttles.text[0] : NULL);
    if (!t->document) return slc_error(SLUICE_ERR_MEMORY, "trade-off");
    slc_tradeoff_show_head(t->out, t->document);
    return SLUICE_OK;
}

/* ---- Running ---- */

/* All that the ranks must know of the rows. The joint plan is the last row. */
typedef struct {
    sluice_status status; /* status of rank 0's planning */
    uint64_t budget;
    uint32_t rows;
    bool runs[SLC_BENCH_SHARES_MAX + 1];
} itinerary;

static json_t *row_at(const trade *t, uint32_t row)
{
    return row < t->tradeoff.count ? json_array_get(json_object_get(t->document, "points"), row)
                                   : json_object_get(t->document, "joint");
}

static void write_itinerary(const trade *t, itinerary *out)
{
    out->budget = t->budget;
    out->rows = t->tradeoff.count + 1;
    for (uint32_t i = 0; i < t->tradeoff.count; i++)
        out->runs[i] = t->tradeoff.points[i].fits && t->tradeoff.points[i].same_as == SLC_NONE;
    out->runs[t->tradeoff.count] = true;
}

static sluice_status write_strategies(const trade *t, uint32_t row, const char *path)
{
    json_t *file = json_pack("{s:O}", "layers", json_object_get(row_at(t, row), "strategies"));
    int failed = !file || json_dump_file(file, path, JSON_INDENT(2));
    json_decref(file);
    return failed ? slc_error(SLUICE_ERR_IO, "%s: cannot be written", path) : SLUICE_OK;
}

static sluice_status run_row(const trade *t, const itinerary *all, uint32_t row)
{
    char budget[32], path[SLC_FOLDER_BYTES];
    slc_training_options options = t->options->training;
    slc_training_result run;
    const slc_training_watch watch = {.stops = t->stops};
    sluice_status status = path_in(t, "strategies.json", path);
    if (!status && t->leads && row + 1 < all->rows) status = write_strategies(t, row, path);
    if (status) return status;
    snprintf(budget, sizeof budget, "%" PRIu64 "B", all->budget);
    options.budget = budget;
    options.strategy = row + 1 < all->rows ? path : "auto";
    options.schedule = slc_schedule_default;
    options.throttle = "";
    options.trace = NULL;
    status = slc_training_run(t->world, &options, &watch, &run);
    malloc_trim(0);
    if (!status && run.interrupted) status = slc_error(SLUICE_ERR_INTERRUPTED, "stopped");
    if (!status && t->leads && !slc_tradeoff_add_run(row_at(t, row), &run))
        status = slc_error(SLUICE_ERR_MEMORY, "trade-off");
    slc_training_result_free(&run);
    return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status; /* a row that does not fit has no measured step */
}

static sluice_status run_all(const trade *t, const itinerary *all)
{
    sluice_status status = SLUICE_OK;
    for (uint64_t repeat = 1; repeat <= t->options->repeat; repeat++)
        for (uint32_t row = 0; !status && row < all->rows; row++) {
            if (all->runs[row]) status = run_row(t, all, row);
            if (status || !t->leads || repeat < t->options->repeat) continue;
            slc_tradeoff_conclude(t->document);
            slc_tradeoff_show_row(t->out, t->document, row_at(t, row));
        }
    char path[SLC_FOLDER_BYTES];
    if (t->leads && !path_in(t, "strategies.json", path)) remove(path);
    return status;
}

/* ---- Planning and running ---- */

/* Rank 0 looks into the folder, and tells all ranks this. */
typedef struct {
    sluice_status status;
    bool finished;
    char folder[SLC_FOLDER_BYTES];
} opened;

/* Rank 0 opens the folder of --output. If *finished is set, the trade-off was measured before, and the rank that leads
 * has its document in t->document. */
static sluice_status open_folder(trade *t, int ranks, bool *finished)
{
    opened all = {0};
    if (t->leads) {
        all.status = slc_tradeoff_open(t->options, ranks, &t->settings, &t->document);
        all.finished = t->document != NULL;
        if (!all.status) snprintf(all.folder, sizeof all.folder, "%s", t->options->output);
    }
    sluice_status status = t->world ? sluice_world_broadcast(t->world, &all, sizeof all, 0) : SLUICE_OK;
    if (status) return status;
    *finished = all.finished;
    if (all.status) return t->leads ? all.status : slc_error(all.status, "rank 0 could not open the folder");
    snprintf(t->options->chosen, sizeof t->options->chosen, "%s", all.folder);
    t->options->output = t->options->chosen;
    return SLUICE_OK;
}

static sluice_status begin_trade(trade *t)
{
    char path[SLC_FOLDER_BYTES];
    sluice_status status = SLUICE_OK;
    if (!t->world) {
        status = slc_profile_read(t->options->profile, &t->profile);
        if (!status && t->options->training.ranks)
            status = slc_profile_set_world(t->profile, (uint32_t)t->options->training.ranks);
        return status;
    }
    status = path_in(t, "profile.json", path);
    return status ? status : slc_bench_survey(t->world, &t->options->training, path, t->stops, &t->profile);
}

static sluice_status write_all(const trade *t, bool whole)
{
    if (t->world) json_object_set_new(t->document, "environment", slc_environment_json(t->world));
    json_object_set(t->document, "settings", t->settings);
    json_object_set_new(t->document, "finished", json_boolean(whole));
    slc_tradeoff_show_end(t->out, t->document);
    bool sound = slc_tradeoff_sound(t->out, t->document);
    const slc_training_options *training = &t->options->training;
    slc_outcome outcome = {0};
    slc_outcome_add(&outcome, slc_tradeoff_write(t->document, t->options->output, t->out));
    slc_outcome_add(&outcome, slc_tradeoff_write_json(t->document, training->json));
    slc_outcome_add(&outcome, slc_tradeoff_write_csv(t->document, training->csv));
    sluice_status status = slc_outcome_status(&outcome);
    if (!status && !sound) status = slc_error(SLUICE_ERR_MISMATCH, "runs do not keep what was promised; see above");
    return status;
}

static void end_trade(trade *t)
{
    json_decref(t->document);
    json_decref(t->settings);
    slc_tradeoff_fini(&t->tradeoff);
    slc_profile_destroy(t->profile);
}

/* The trade-off that the folder has: it is shown, and its files and pictures are made again. */
static sluice_status show_finished(const trade *t)
{
    size_t index;
    json_t *row;
    fprintf(t->out, "%s has this trade-off already: it is not run again\n", t->options->output);
    slc_tradeoff_show_head(t->out, t->document);
    json_array_foreach (json_object_get(t->document, "points"), index, row)
        slc_tradeoff_show_row(t->out, t->document, row);
    slc_tradeoff_show_row(t->out, t->document, json_object_get(t->document, "joint"));
    return write_all(t, true);
}

sluice_status slc_bench_tradeoff_measure(sluice_world *world, slc_bench_options *options,
                                         const volatile sig_atomic_t *stops, FILE *out)
{
    trade t = {.options = options, .stops = stops, .out = out, .world = world, .leads = sluice_world_rank(world) == 0};
    itinerary all = {0};
    bool finished = false;
    sluice_status status = open_folder(&t, sluice_world_size(world), &finished);
    if (!status && finished) {
        if (t.leads) status = show_finished(&t);
        end_trade(&t);
        return status;
    }
    if (!status) status = begin_trade(&t);
    if (!status && t.leads) all.status = plan_all(&t);
    if (!status && t.leads && !all.status) write_itinerary(&t, &all);
    if (!status) status = sluice_world_broadcast(world, &all, sizeof all, 0);
    if (!status && all.status) status = t.leads ? all.status : slc_error(all.status, "rank 0 could not plan");
    if (!status) status = run_all(&t, &all);
    if (t.leads && t.document && (!status || status == SLUICE_ERR_INTERRUPTED)) {
        sluice_status written = write_all(&t, !status);
        if (!status) status = written;
    }
    end_trade(&t);
    return status;
}

sluice_status slc_bench_tradeoff_predict(slc_bench_options *options, FILE *out)
{
    trade t = {.options = options, .out = out, .leads = true};
    bool finished = false;
    sluice_status status = begin_trade(&t);
    if (!status) status = open_folder(&t, (int)t.profile->job.world, &finished);
    json_decref(t.document); /* predicting it again takes no time */
    t.document = NULL;
    if (!status) status = plan_all(&t);
    for (uint32_t row = 0; !status && row <= t.tradeoff.count; row++)
        slc_tradeoff_show_row(out, t.document, row_at(&t, row));
    if (!status) status = write_all(&t, true);
    end_trade(&t);
    return status;
}
