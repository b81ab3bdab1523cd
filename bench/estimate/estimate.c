/* `sluice estimate`: what a training would need and take, without the machines that it is for.
 * tests/command/plan/estimate_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/outcome.h"
#include "bench/cli/options/command_line.h"
#include "bench/cli/output/result_file.h"
#include "bench/estimate/length_plans.h"
#include "bench/estimate/report.h"
#include "bench/plan/words/phases_table.h"
#include "bench/plan/words/table.h"
#include "bench/train/options/batch_options.h"
#include "bench/train/options/depth_options.h"
#include "bench/train/options/length_options.h"
#include "bench/train/options/onebit_options.h"
#include "bench/train/options/people.h"
#include "lib/base/status.h"
#include "lib/base/text/parse_quantity.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    slc_training_options training;
    const char *machines, *pace;
    uint64_t ranks_a_host;
    double effort_s;
} estimate_options;

/* `sluice estimate` takes the options of the training that it estimates, and refuses those that ask for files of a
 * training. */
static const slc_training_difference differences[] = {
    {"ranks", .doc = "Ranks of the training (default: those of --machines, else 1)"},
    {"weights", .doc = "Model of the training: a folder with Hugging Face's config.json, that file, or an llm.c "
                       "checkpoint; only its sizes are read"},
    {"save,save-every,on-save-error,resume,new-recipe,go-on,stop-after,save-weights,overwrite,no-hash",
     .refused = "only sluice train keeps what it trains"},
    {"epochs", .refused = "an estimate runs no steps"},
    {"plan,first-batch,first-batches", .refused = "only sluice train runs plans and batches"},
    {"profile-out", .doc = "Write the profile that was planned from, for sluice plan, sim, check and trace"},
    {"plan-out", .doc = "Write the plan for --budget as JSON, for sluice sim, check and trace"},
    {"replan-trials", .refused = "an estimate runs no plan"},
    {"pipeline,pipeline-schedule,pipeline-chunks,pipeline-cuts",
     .refused = "an estimate is without a pipeline; sluice plan --pipeline plans one"},
    {"log,config,verbose,sample-every,prompt,observe", .refused = "only sluice train has a log and options in a file"},
    {"trace,csv", .refused = "an estimate runs no steps; sluice train writes this"},
    {0},
};

static const char *const headings[] = {NULL, "The estimate:"};
#define FIELD(name) SLC_OPTION_FIELD(estimate_options, name)

static const slc_option option_rows[] = {
    {"machines", "NAME", 1, SLC_OPTION_TEXT, FIELD(machines), NULL, SLC_OPTION_SHORT,
     "Compute and link of these machines, as 64xA100-200gbit (a wrong name lists all)"},
    {"pace", "FLOPS,BYTES", 1, SLC_OPTION_TEXT, FIELD(pace), NULL, SLC_OPTION_SHORT,
     "Pace that a rank reaches in matrix products and through memory, as 100gflops,20GB (default: measured here)"},
    {"ranks-a-host", "N", 1, SLC_OPTION_COUNT, FIELD(ranks_a_host), NULL, SLC_OPTION_SHORT,
     "Ranks that share a host's memory (default: all)", 1, SLUICE_RANKS_MOST},
    {"effort", "S", 1, SLC_OPTION_TIME, FIELD(effort_s), "1", SLC_OPTION_SHORT,
     "Work to make each plan, in nominal seconds", SLC_OPTION_ABOVE_0},
    {0},
};

/* Refuses compressed optimizers, whose phases have plans of their own. */
static sluice_status check_options(slc_training_options *o)
{
    sluice_status status = slc_training_options_check(o);
    if (!status && slc_training_is_compressed(o->optimizer))
        status = slc_error(SLUICE_ERR_UNSUPPORTED,
                           "--optimizer %s: an estimate knows no compressed phases; use sluice profile, then sluice "
                           "plan --lossy onebit",
                           o->optimizer);
    return status;
}

static sluice_status check_outputs(const slc_training_options *o)
{
    sluice_status status = slc_error_context(slc_result_file_probe(o->json), "--json");
    if (!status) status = slc_error_context(slc_result_file_probe(o->plan_out), "--plan-out");
    if (!status) status = slc_error_context(slc_result_file_probe(o->profile_out), "--profile-out");
    return status;
}

/* Counts the ranks that train: all of --machines, or so many of them as -n says. */
static sluice_status count_ranks(const estimate_options *o, slc_survey *s)
{
    const uint64_t asked = o->training.ranks, there = s->pace.ranks;
    if (there && asked > there)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "-n %llu: --machines %s has %llu ranks; give at most so many, or --pace and --throttle for "
                         "machines that have more",
                         (unsigned long long)asked, o->machines, (unsigned long long)there);
    s->ranks = asked ? (int)asked : there ? (int)there : 1;
    if (o->ranks_a_host > (uint64_t)s->ranks)
        return slc_error(SLUICE_ERR_ARGUMENT, "--ranks-a-host %llu: there are %d ranks (-n); give at most so many",
                         (unsigned long long)o->ranks_a_host, s->ranks);
    s->ranks_a_host = o->ranks_a_host ? (int)o->ranks_a_host : s->ranks;
    return SLUICE_OK;
}

static sluice_status find_pace(const estimate_options *o, slc_survey *s)
{
    const bool narrow = !strcmp(o->training.precision, "bf16");
    sluice_status status = o->machines ? slc_pace_of_cluster(o->machines, &s->pace) : SLUICE_OK;
    if (!status) status = count_ranks(o, s);
    if (!status && o->pace)
        status = slc_pace_parse(o->pace, &s->pace);
    else if (!status && !o->machines)
        status = slc_pace_measure(narrow ? SLUICE_BF16 : SLUICE_FP32, (uint32_t)o->training.threads, &s->pace);
    return status ? status : slc_pace_link(o->training.throttle, s->ranks_a_host >= s->ranks, &s->pace);
}

/* Writes a text that was made with `status`, and frees it. `path` NULL: nowhere. */
static sluice_status write_text(const char *path, sluice_status status, char *text)
{
    if (!status && path) status = slc_result_file_write_text(path, text);
    free(text);
    return status;
}

static void write_files(const slc_training_options *o, const slc_profile *profile, const slc_plan_answer *answer,
                        slc_outcome *files)
{
    char *text = NULL;
    slc_plan_forecast forecast = answer->forecast;
    forecast.why = *answer->member ? answer->member : NULL;
    sluice_status status = o->profile_out ? slc_profile_to_json(profile, &text) : SLUICE_OK;
    slc_outcome_add(files, write_text(o->profile_out, status, text));
    text = NULL;
    status = o->plan_out ? slc_plan_to_json(&profile->job, answer->plan, &forecast, &text) : SLUICE_OK;
    slc_outcome_add(files, write_text(o->plan_out, status, text));
}

/* Asks again for the user's plan, for steps that draw their layers. */
typedef struct {
    const slc_survey *survey;
    const slc_profile *profile;
    double effort_s;
} drawn_planner;

static sluice_status plan_drawn(void *context, const slc_times *times, slc_plan **out)
{
    const drawn_planner *p = context;
    slc_plan_answer answer = {0};
    sluice_status status = slc_answers_plan_with(p->survey, p->effort_s, p->profile, times, &answer);
    *out = answer.plan;
    return status;
}

/* *json becomes the phases of the whole run. */
static sluice_status print_run(const slc_survey *s, const slc_profile *profile, const slc_plan_answer *answer,
                               double effort_s, FILE *out, json_t **json)
{
    const slc_training_options *t = s->training;
    const slc_phase_plan whole = {profile, answer->plan};
    slc_length_plans plans;
    const slc_recipe_depth depth = slc_depth_options_recipe(t);
    drawn_planner planner = {s, profile, effort_s};
    const slc_whole_run run = {.plans = &plans.plans,
                               .sizes = slc_length_options_sizes(t, sluice_model_tokens(&s->model, s->length)),
                               .depth = slc_depth_options_drop_layers(t) ? &depth : NULL,
                               .steps = t->steps,
                               .sequences = (uint64_t)s->ranks * t->batch,
                               .set_times = slc_length_plans_set_times,
                               .context = &plans,
                               .plan_drawn = plan_drawn,
                               .planner = &planner};
    slc_run_phases phases = {0};
    sluice_status status = slc_length_plans_make(s, whole, answer->budget_bytes, effort_s, &plans);
    if (!status) status = slc_run_phases_find(&run, &phases);
    fputc('\n', out);
    if (!status) slc_run_phases_print(out, &phases);
    if (!status && !(*json = slc_run_phases_json(&phases))) status = slc_error(SLUICE_ERR_MEMORY, "phases as JSON");
    slc_run_phases_free(&phases);
    slc_length_plans_free(&plans);
    return status;
}

static bool has_recipe(const slc_training_options *t)
{
    return t->recipe || slc_batch_options_grow(t) || slc_length_options_vary(t) || slc_depth_options_drop_layers(t);
}

/* Plans within the user's budget, if there is one, and lists the phases of a recipe. */
static sluice_status plan_for_user(const estimate_options *o, const slc_survey *s, FILE *out, slc_budget_plan *row,
                                   json_t **phases, slc_outcome *files)
{
    slc_profile *profile = NULL;
    slc_plan_answer answer = {0};
    sluice_status status = slc_answers_plan(s, o->effort_s, &profile, &answer);
    if (!status) {
        const slc_shown_plan shown = {.profile = profile,
                                      .plan = answer.plan,
                                      .forecast = answer.forecast,
                                      .budget_bytes = answer.budget_bytes,
                                      .chosen = answer.member,
                                      .note = answer.note,
                                      .timed = true};
        uint64_t bytes;
        slc_budget_plan_of(profile, &answer, row);
        if (*o->training.budget) status = slc_parse_budget(o->training.budget, &bytes, &row->of_dp);
        if (*o->training.budget) fprintf(out, "\n--budget %s fits:\n\n", o->training.budget);
        if (!status && *o->training.budget) status = slc_plan_table(out, &shown);
        if (!status && has_recipe(&o->training)) status = print_run(s, profile, &answer, o->effort_s, out, phases);
        if (!status) write_files(&o->training, profile, &answer, files);
    }
    slc_plan_destroy(answer.plan);
    slc_profile_destroy(profile);
    return status;
}

/* Makes and prints the estimate. A budget that is too small is reported after all other answers, and so is a file that
 * cannot be written. */
static sluice_status estimate(const estimate_options *o)
{
    const slc_training_options *t = &o->training;
    const bool planned = *t->budget || t->plan_out || t->profile_out || has_recipe(t);
    FILE *out = slc_training_people(t);
    slc_survey survey = {.training = t};
    slc_answers answers;
    slc_budget_plan row = {0};
    slc_outcome failures = {0};
    json_t *phases = NULL;
    sluice_status status = check_outputs(t);
    if (!status) status = find_pace(o, &survey);
    if (!status) status = slc_survey_begin(&survey);
    if (!status) status = slc_answers_find(&survey, o->effort_s, &answers);
    if (status) return status;
    slc_estimate_print(out, &survey, &answers);
    if (planned) status = plan_for_user(o, &survey, out, &row, &phases, &failures);
    if (status && status != SLUICE_ERR_BUDGET) {
        json_decref(phases);
        return status;
    }
    slc_outcome_add(&failures, status);
    if (t->json) {
        json_t *all = slc_estimate_json(&survey, &answers, row.fits ? &row : NULL);
        if (phases) json_object_set(all, "phases", phases);
        slc_outcome_add(&failures, slc_result_file_write_json(t->json, all));
    }
    json_decref(phases);
    return slc_outcome_status(&failures);
}

static int run_estimate(int argc, char **argv)
{
    estimate_options options = {0};
    const slc_command_line line = {
        .rows = option_rows,
        .headings = headings,
        .shared = slc_training_command_line(differences),
        .shared_field = offsetof(estimate_options, training),
        .doc =
            "Says what a training would need and take: the smallest budget, the memory of each strategy, and plans for "
            "several budgets. It takes train's options, starts no ranks and allocates none of the model's memory; of "
            "--weights only config.json is read.\v"
            "Examples:\n"
            "  sluice estimate -n 2\n"
            "  sluice estimate --size small --context 512 -n 4 --throttle 10gbit,20us --ranks-a-host 1\n"
            "  sluice estimate --size xl --batch 8 --context 1024 -n 64 --machines 64xA100-200gbit\n"
            "  sluice estimate --weights gpt2/config.json --precision bf16 -n 8 --budget 3GiB\n"
            "  sluice estimate -n 2 --budget 60% --profile-out profile.json --plan-out plan.json\n"
            "More: docs/estimate.md",
    };
    slc_command_line_parse(&line, argc, argv, &options);
    options.training.shape_only = true;
    if (check_options(&options.training)) {
        slc_fail("sluice estimate");
        return EXIT_USAGE;
    }
    return estimate(&options) ? slc_fail("sluice estimate") : 0;
}

const sluice_command slc_command_estimate = {"estimate", "says what a training would need, before there are machines",
                                             run_estimate};
