/* `sluice plan`: makes a plan from a profile, as a table for people and as a file, and compares plans.
 * tests/command/plan/plan_table_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/outcome.h"
#include "bench/cli/options/command_line.h"
#include "bench/plan/commands/files.h"
#include "bench/plan/commands/plan_lengths.h"
#include "bench/plan/comparison/comparison.h"
#include "bench/plan/pictures/memory_picture.h"
#include "bench/plan/pictures/picture.h"
#include "bench/plan/pipeline/pipelined.h"
#include "bench/plan/pipeline/weigh.h"
#include "bench/plan/words/phases_table.h"
#include "bench/plan/words/table.h"
#include "bench/train/options/batch_options.h"
#include "bench/train/options/depth_options.h"
#include "bench/train/options/length_options.h"
#include "bench/train/options/options.h"
#include "lib/base/clock.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"
#include "lib/plan/request.h"
#include "lib/plan/roles.h"
#include "lib/plan/strategy_names.h"
#include "lib/engine/settings.h"
#include "sched/planner.h"
#include "sched/scheduler.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPTIONS = 24 };

/* Finding the next best choices may take this share of the effort that the plan took. */
static const double OTHERS_SHARE = 0.5;

typedef struct {
    const char *profile, *budget, *strategy, *force, *schedule, *recompute, *lossy, *output, *picture, *json;
    const char *compare, *second; /* files of plans */
    const char *recipe;           /* NULL: one step is planned, no run */
    const char *shorter;          /* profiles at shorter lengths than the recipe's longest; NULL: none */
    uint32_t world;               /* 0: the profile's */
    slc_pipeline_options pipeline;
    double time_limit_s, effort_s;
    const char *typed[MOST_OPTIONS];
} plan_options;

#define FIELD(name) SLC_OPTION_FIELD(plan_options, name)

static const slc_option option_rows[] = {
    {"profile", "FILE", 0, SLC_OPTION_TEXT, FIELD(profile), NULL, 0, "Profile to plan for (sluice profile writes one)"},
    {"world", "N", 0, SLC_OPTION_COUNT, FIELD(world), NULL, 0, "Ranks (default: the profile's)", 1,
     SLC_PROFILE_WORLD_MAX},
    {"budget", "SIZE", 0, SLC_OPTION_TEXT, FIELD(budget), NULL, 0,
     "Bytes a rank may use, as 900MiB, or 60% of the least that dp works in (default: none)"},
    {"strategy", "NAME=auto," SLC_STRATEGY_NAMES(",") ",mixed", 0, SLC_OPTION_TEXT, FIELD(strategy), "auto", 0,
     "auto, " SLC_STRATEGY_NAMES(", ") ", mixed, random:SEED or a JSON file"},
    {"force", "LIST", 0, SLC_OPTION_TEXT, FIELD(force), NULL, 0,
     "Give these layers other strategies, as h.3=fsdp,h.4..h.6=dp, and tell what changes; all else is as --strategy "
     "says"},
    {"compare", "FILE", 0, SLC_OPTION_TEXT, FIELD(compare), NULL, 0,
     "Instead: tell what changes from this plan to another one of the profile, as --compare A.json B.json"},
    {"lossy", "WHAT", 0, SLC_OPTION_WORD, FIELD(lossy), NULL, 0,
     "onebit: a step of a compressed optimizer, where layers may exchange their momentum compressed; none: no such "
     "step "
     "(default: as the profile says, with --strategy onebit: onebit)",
     .choices = "none,onebit"},
    {"schedule", "NAME", 0, SLC_OPTION_TEXT, FIELD(schedule), slc_schedule_default, 0,
     "ilp (not in a build without GLPK), portfolio, or one of the others"},
    {"recompute", "HOW", 0, SLC_OPTION_WORD, FIELD(recompute), "auto", 0, "auto, none or all of the layers that can",
     .choices = "auto,none,all"},
    {"effort", "S", 0, SLC_OPTION_TIME, FIELD(effort_s), NULL, 0,
     "Work that planning may do, in nominal seconds, so that equal input gives the equal plan anywhere "
     "(default: 0.9 for 48 layers, 4.5 for 126, twice that with recomputation)",
     SLC_OPTION_ABOVE_0},
    {"time-limit", "S", 0, SLC_OPTION_TIME, FIELD(time_limit_s), NULL, 0,
     "Take the best plan found after so many seconds, which may differ from run to run (default: none)",
     SLC_OPTION_ABOVE_0},
    {"recipe", "FILE", 0, SLC_OPTION_TEXT, FIELD(recipe), NULL, 0,
     "Also list the phases of a whole run with this recipe: its steps, micro-batches and sequences that grow, layers "
     "that are dropped. The profile is of its longest sequences"},
    {"shorter", "LENGTH=FILE,...", 0, SLC_OPTION_TEXT, FIELD(shorter), NULL, 0,
     "Profiles of the same model at shorter lengths, to which the times of --recipe's lengths are fitted (default: in "
     "proportion to the length)"},
    SLC_PIPELINE_OPTION_ROWS(plan_options, pipeline, 0),
    {"picture", "FILE", 0, SLC_OPTION_SET, FIELD(picture), NULL, 0,
     "Draw memory over the step and by layer at its peak: FILE.svg or FILE.png (needs gnuplot)",
     .set = slc_picture_option},
    {"json", "FILE", 0, SLC_OPTION_TEXT, FIELD(json), NULL, 0,
     "Write what the table says, and what changes, as JSON; '-': standard output"},
    {"output", "FILE", 0, SLC_OPTION_TEXT, FIELD(output), NULL, 0, "Write the plan as JSON; '-': standard output",
     .letter = 'o'},
    {0},
};
static_assert(sizeof option_rows / sizeof *option_rows <= MOST_OPTIONS, "each option has a place in `typed`");

static const char doc[] =
    "Plans a training step: how each layer is sharded, and when each block is sent.\v"
    "Examples:\n"
    "  sluice plan --profile profile.json --budget 900MiB -o plan.json\n"
    "  sluice plan --profile gpt3.json --world 64 --budget 60GiB --effort 20\n"
    "  sluice plan --profile profile.json --budget 60% --force h.3=fsdp,h.4..h.6=sdp\n"
    "  sluice plan --profile profile.json --compare a.json b.json\n"
    "  sluice plan --profile profile.json --world 4 --pipeline auto --micro-batches 2\n"
    "  sluice plan --profile profile.json --world 4 --pipeline 4 --micro-batches 8 -o stages.json\n"
    "Then: sluice sim, sluice check, sluice trace.\n"
    "More: docs/what-a-plan-says.md";

static sluice_status take_second(void *options, char *file)
{
    plan_options *o = options;
    if (o->second || !o->compare)
        return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\" follows no option%s", file,
                         o->compare ? "; --compare takes two plans" : "; two plans are compared by --compare A B");
    o->second = file;
    return SLUICE_OK;
}

/* Refuses the options that make a plan beside --compare, because the plans that it compares are made already. */
static sluice_status check_compare(const plan_options *o)
{
    static const char *const taken[] = {"profile", "compare", "world", "lossy", "json"};
    if (!o->second)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--compare %s: the plan to compare it with is missing; give --compare "
                         "A.json B.json",
                         o->compare);
    for (const slc_option *row = option_rows; row->name; row++) {
        size_t k = 0;
        while (k < sizeof taken / sizeof *taken && strcmp(taken[k], row->name)) k++;
        if (k == sizeof taken / sizeof *taken && slc_option_typed(option_rows, o->typed, row->name))
            return slc_error(SLUICE_ERR_ARGUMENT, "--compare takes two plans that are made; leave --%s out", row->name);
    }
    return SLUICE_OK;
}

/* Refuses the options that --pipeline has no use for: stages are planned on paper, without choices of layers. */
static sluice_status check_pipeline(const plan_options *o)
{
    static const char *const refused[] = {"recipe", "shorter", "force", "schedule", "effort", "time-limit", "picture"};
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
        if (slc_option_typed(option_rows, o->typed, refused[k]))
            return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline plans stages on paper; leave --%s out", refused[k]);
    return SLUICE_OK;
}

static sluice_status check_options(void *options)
{
    const plan_options *o = options;
    if (!o->profile) return slc_error(SLUICE_ERR_ARGUMENT, "--profile FILE is missing; sluice profile writes one");
    if (o->compare) return check_compare(o);
    if (o->shorter && !o->recipe)
        return slc_error(SLUICE_ERR_ARGUMENT, "--shorter: give --recipe FILE too, whose lengths change");
    sluice_status status =
        o->pipeline.stages || o->pipeline.weighs ? check_pipeline(o) : slc_pipeline_options_check(&o->pipeline);
    if (!status && o->pipeline.weighs && strcmp(o->pipeline.cuts, "auto"))
        status = slc_error(SLUICE_ERR_ARGUMENT, "--pipeline auto: pipelines of several shapes are weighed; leave "
                                                "--pipeline-cuts out");
    if (status) return status;
    if (o->lossy && !strcmp(o->lossy, "none") && !strcmp(o->strategy, "onebit"))
        return slc_error(SLUICE_ERR_ARGUMENT, "--strategy onebit with --lossy none: onebit is lossy");
    if (slc_is_standard_output(o->json) && slc_is_standard_output(o->output))
        return slc_error(SLUICE_ERR_ARGUMENT, "--json and --output cannot both write to standard output");
    return SLUICE_OK;
}

static void choose_recompute(const slc_job *job, const char *how, uint8_t *recompute)
{
    for (uint32_t l = 0; l < job->layer_count; l++) {
        bool can = job->can_recompute && job->can_recompute[l];
        recompute[l] = !can || !strcmp(how, "none") ? 0 : !strcmp(how, "all") ? 1 : 2;
    }
}

static void print_head(FILE *out, const slc_profile *profile)
{
    const slc_job *job = &profile->job;
    double parameters = 0;
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (!slc_looks_up(&job->units[u])) parameters += (double)profile->parameters[u];
    fprintf(out, "%s (%s)\n%u layers, %.1f M parameters; %u rank%s, %u micro-batch%s\n\n", profile->model,
            profile->source, job->layer_count, parameters / 1e6, job->world, job->world == 1 ? "" : "s",
            job->micro_batches, job->micro_batches == 1 ? "" : "es");
}

static sluice_status write_plan(const slc_profile *profile, const slc_plan_answer *answer, const char *path)
{
    slc_plan_forecast forecast = answer->forecast;
    forecast.why = *answer->member ? answer->member : NULL;
    if (!slc_is_standard_output(path)) return slc_plan_write(&profile->job, answer->plan, &forecast, path);
    char *text = NULL;
    sluice_status status = slc_plan_to_json(&profile->job, answer->plan, &forecast, &text);
    if (!status && (fputs(text, stdout) < 0 || fflush(stdout)))
        status = slc_error(SLUICE_ERR_IO, "standard output: %s", strerror(errno));
    free(text);
    return status;
}

/* ---- Comparing ---- */

/* Prints what changes from `plans[0]` to `plans[1]`, and adds it to `json`, unless that is NULL, as "comparison". */
static sluice_status compare_plans(FILE *out, const slc_profile *profile, const slc_plan *const plans[2],
                                   const char *const names[2], json_t *json)
{
    slc_comparison comparison;
    sluice_status status = slc_comparison_make(profile, plans, names, &comparison);
    if (status) return status;
    slc_comparison_print(out, &comparison);
    if (json && json_object_set_new(json, "comparison", slc_comparison_json(&comparison)))
        status = slc_error(SLUICE_ERR_MEMORY, "the comparison as JSON");
    slc_comparison_fini(&comparison);
    return status;
}

static sluice_status compare_files(slc_plan_files *files, const char *second, const char *json)
{
    slc_plan *other = NULL;
    json_t *content = json_object();
    sluice_status status = content ? slc_plan_files_read(files) : slc_error(SLUICE_ERR_MEMORY, "comparison");
    if (!status) status = slc_plan_read(&files->profile->job, second, &other);
    if (!status) {
        const slc_plan *const plans[] = {files->plan, other};
        const char *const names[] = {files->plan_path, second};
        status = compare_plans(slc_is_standard_output(json) ? stderr : stdout, files->profile, plans, names, content);
    }
    if (!status && json) status = slc_result_file_write_json(json, content);
    json_decref(content);
    slc_plan_destroy(other);
    slc_plan_files_fini(files);
    return status;
}

/* ---- A whole run ---- */

/* A run as a recipe describes it: its length, and the micro-batches of its steps. */
typedef struct {
    bool wanted;
    uint64_t steps;
    slc_recipe_sizes sizes;
    bool drops; /* layers, as `depth` says */
    slc_recipe_depth depth;
    slc_plan_lengths lengths;
} whole_run;

/* The profile is of a step with the most micro-batches that the recipe has. */
static sluice_status read_recipe(const plan_options *options, slc_profile *profile, whole_run *run)
{
    const char *path = options->recipe;
    slc_training_options o;
    char most[24];
    slc_training_options_init(&o);
    sluice_status status = slc_training_option_set(&o, "recipe", path);
    if (!status && !slc_training_option_given(&o, "steps"))
        status = slc_error(SLUICE_ERR_ARGUMENT, "--recipe %s: steps: say how many the run has", path);
    snprintf(most, sizeof most, "%u", profile->job.micro_batches);
    if (!status && !slc_training_option_given(&o, "micro-batches"))
        status = slc_training_option_set(&o, "micro-batches", most);
    if (!status) status = slc_error_context(slc_batch_options_check(&o), "--recipe %s", path);
    if (!status) status = slc_error_context(slc_depth_options_check_numbers(&o), "--recipe %s", path);
    if (!status)
        status = slc_error_context(slc_plan_lengths_read(&o, options->budget, options->shorter, &run->lengths),
                                   "--recipe %s", path);
    if (status) return status;
    profile->job.micro_batches = (uint32_t)o.micro_batches;
    run->wanted = true;
    run->steps = o.steps;
    run->sizes = slc_length_options_sizes(&o, run->lengths.longest ? run->lengths.longest : 1);
    run->drops = slc_depth_options_drop_layers(&o);
    run->depth = slc_depth_options_recipe(&o);
    return SLUICE_OK;
}

/* ---- From a profile to a plan ---- */

typedef struct {
    const plan_options *options;
    const slc_profile *profile;
    whole_run *run;
    json_t *ways; /* that --pipeline auto has weighed; NULL: none were */
    slc_plan_request request;
    slc_plan_answer answer, unforced; /* `unforced` has a plan only with --force */
    slc_strategy *forced;             /* [units] */
    uint8_t *recompute;               /* [L] */
    slc_other_choice *others;         /* [units] */
    double took_s;
} planning;

static void planning_fini(planning *p)
{
    slc_plan_destroy(p->answer.plan);
    slc_plan_destroy(p->unforced.plan);
    free(p->forced);
    free(p->recompute);
    free(p->others);
}

static sluice_status prepare(planning *p)
{
    const plan_options *o = p->options;
    const slc_job *job = &p->profile->job;
    p->request = (slc_plan_request){.strategy = o->strategy,
                                    .schedule = o->schedule,
                                    .times = &p->profile->times,
                                    .effort_s = o->effort_s,
                                    .time_limit_s = o->time_limit_s};
    p->recompute = calloc((size_t)job->layer_count + 1, sizeof *p->recompute);
    p->forced = calloc((size_t)job->unit_count + 1, sizeof *p->forced);
    p->others = calloc((size_t)job->unit_count + 1, sizeof *p->others);
    if (!p->recompute || !p->forced || !p->others) return slc_error(SLUICE_ERR_MEMORY, "layers");
    choose_recompute(job, o->recompute, p->recompute);
    p->request.recompute = p->recompute;
    sluice_status status = slc_engine_updates(SLUICE_UPDATES_BY_SETTING, &p->request.updates);
    if (!status && o->budget)
        status = slc_error_context(slc_parse_budget(o->budget, &p->request.budget_bytes, &p->request.budget_of_dp),
                                   "--budget");
    if (!status && o->force) status = slc_error_context(slc_strategies_from_list(job, o->force, p->forced), "--force");
    return status;
}

static sluice_status make_plans(planning *p)
{
    const slc_job *job = &p->profile->job;
    const char *force = p->options->force;
    const uint64_t start = slc_clock_ns();
    sluice_status status = force ? slc_plan_for_budget(job, &p->request, &p->unforced) : SLUICE_OK;
    if (force) p->request.forced = p->forced;
    if (!status) {
        status = slc_plan_for_budget(job, &p->request, &p->answer);
        if (status && force) status = slc_error_context(status, "--force %s", force);
    }
    p->took_s = slc_seconds(slc_clock_ns() - start);
    return status;
}

/* The next best choices cost time beyond that of the plan, which a time limit does not allow. */
static sluice_status weigh_others(planning *p, slc_shown_plan *shown)
{
    if (p->options->time_limit_s > 0) return SLUICE_OK;
    shown->others = p->others;
    return slc_decisions_weigh_others(shown, &p->request, OTHERS_SHARE * p->answer.forecast.effort_s, p->others);
}

static sluice_status print_change(const planning *p, FILE *out, json_t *json)
{
    char forced[256];
    const slc_plan *const plans[] = {p->unforced.plan, p->answer.plan};
    const char *const names[] = {"as planned without --force", forced};
    if (!p->unforced.plan) return SLUICE_OK;
    snprintf(forced, sizeof forced, "with --force %.200s", p->options->force);
    fputc('\n', out);
    return compare_plans(out, p->profile, plans, names, json);
}

/* Plans for steps that draw their layers, as the whole plan was asked for otherwise. */
static sluice_status plan_drawn(void *context, const slc_times *times, slc_plan **out)
{
    const planning *p = context;
    slc_plan_request request = p->request;
    slc_plan_answer answer = {0};
    request.times = times;
    sluice_status status = slc_plan_for_budget(&p->profile->job, &request, &answer);
    *out = answer.plan;
    return status;
}

static sluice_status print_run(planning *p, FILE *out, json_t *json)
{
    char words[120];
    slc_plan_lengths *lengths = &p->run->lengths;
    const slc_whole_run run = {.plans = &lengths->plans,
                               .sizes = p->run->sizes,
                               .depth = p->run->drops ? &p->run->depth : NULL,
                               .steps = p->run->steps,
                               .plan_drawn = plan_drawn,
                               .planner = p,
                               .set_times = slc_plan_lengths_set_times,
                               .context = lengths};
    slc_run_phases phases = {0};
    if (!p->run->wanted) return SLUICE_OK;
    const slc_phase_plan whole = {p->profile, p->answer.plan};
    sluice_status status = slc_plan_lengths_plan(lengths, whole, &p->request, p->answer.budget_bytes);
    if (!status) status = slc_run_phases_find(&run, &phases);
    if (!status) slc_run_phases_print(out, &phases);
    slc_plan_lengths_words(lengths, words, sizeof words);
    if (!status && *words) fprintf(out, "  %s\n", words);
    if (!status && json_object_set_new(json, "phases", slc_run_phases_json(&phases)))
        status = slc_error(SLUICE_ERR_MEMORY, "the phases as JSON");
    slc_run_phases_free(&phases);
    return status;
}

/* Adds the ways that were weighed, if there were any. */
static sluice_status add_ways(json_t *json, json_t *ways)
{
    return ways && json_object_set(json, "weighed", ways)
               ? slc_error(SLUICE_ERR_MEMORY, "the ways that were weighed as JSON")
               : SLUICE_OK;
}

static sluice_status print_plans(planning *p, FILE *out, slc_outcome *files)
{
    const plan_options *o = p->options;
    const slc_plan_answer *answer = &p->answer;
    slc_shown_plan shown = {.profile = p->profile,
                            .plan = answer->plan,
                            .forecast = answer->forecast,
                            .budget_bytes = answer->budget_bytes,
                            .chosen = answer->member,
                            .note = answer->note,
                            .timed = true};
    json_t *json = NULL;
    sluice_status status = weigh_others(p, &shown);
    print_head(out, p->profile);
    if (!status) status = slc_plan_table(out, &shown);
    fprintf(out, "planned    in %.2f s\n", p->took_s);
    if (!status && !(json = slc_decisions_json(&shown))) status = slc_error(SLUICE_ERR_MEMORY, "the plan as JSON");
    if (!status) status = print_run(p, out, json);
    if (!status) status = print_change(p, out, json);
    if (!status) status = add_ways(json, p->ways);
    if (!status && o->json) slc_outcome_add(files, slc_result_file_write_json(o->json, json));
    json_decref(json);
    return status;
}

static sluice_status plan_and_print(const plan_options *o, const slc_profile *profile, whole_run *run, json_t *ways)
{
    planning p = {.options = o, .profile = profile, .run = run, .ways = ways};
    slc_outcome files = {0};
    FILE *out = slc_is_standard_output(o->output) || slc_is_standard_output(o->json) ? stderr : stdout;
    sluice_status status = prepare(&p);
    if (!status) status = make_plans(&p);
    if (!status) status = print_plans(&p, out, &files);
    if (!status && o->picture)
        slc_outcome_add(&files,
                        slc_memory_picture_draw(out, profile, p.answer.plan, p.answer.budget_bytes, o->picture));
    if (!status && o->output) slc_outcome_add(&files, write_plan(profile, &p.answer, o->output));
    planning_fini(&p);
    return status ? status : slc_outcome_status(&files);
}

static sluice_status print_comparison(const plan_options *o)
{
    slc_plan_files files = {.profile_path = o->profile, .plan_path = o->compare, .lossy = o->lossy, .world = o->world};
    return compare_files(&files, o->second, o->json);
}

static sluice_status plan_pipeline(const plan_options *o, slc_profile *profile, json_t *ways)
{
    slc_pipelined made;
    FILE *out = slc_is_standard_output(o->json) || slc_is_standard_output(o->output) ? stderr : stdout;
    slc_outcome files = {0};
    const uint64_t start = slc_clock_ns();
    sluice_status status = slc_pipelined_make(&o->pipeline, profile, o->strategy, o->recompute, o->budget, &made);
    if (!status) {
        slc_pipelined_print(out, &made);
        fprintf(out, "planned    in %.2f s\n", slc_seconds(slc_clock_ns() - start));
    }
    slc_outcome_add(&files, status);
    if (!status && o->json) {
        json_t *json = slc_pipelined_json(&made);
        status = add_ways(json, ways);
        if (status) json_decref(json);
        slc_outcome_add(&files, status ? status : slc_result_file_write_json(o->json, json));
    }
    if (!status && o->output) slc_outcome_add(&files, slc_pipelined_write(&made, o->output));
    slc_pipelined_fini(&made);
    return slc_outcome_status(&files);
}

/* Prints what was weighed, and plans the chosen way as if it had been asked for. */
static sluice_status weigh_and_plan(plan_options *o, slc_profile *profile, whole_run *run)
{
    slc_weighing weighing;
    FILE *out = slc_is_standard_output(o->json) || slc_is_standard_output(o->output) ? stderr : stdout;
    sluice_status status = slc_pipelines_weigh(&o->pipeline, profile, o->strategy, o->recompute, o->budget, &weighing);
    if (status) return status;
    const slc_weighed *chosen = &weighing.ways[weighing.chosen];
    slc_weighing_print(out, &weighing);
    json_t *ways = slc_weighing_json(&weighing);
    if (!ways) return slc_error(SLUICE_ERR_MEMORY, "the ways that were weighed as JSON");
    if (chosen->schedule) {
        o->pipeline.stages = chosen->stages;
        o->pipeline.schedule = chosen->schedule;
        o->pipeline.micro_batches = chosen->micro_batches;
        status = plan_pipeline(o, profile, ways);
    } else {
        profile->job.micro_batches = chosen->micro_batches;
        status = plan_and_print(o, profile, run, ways);
    }
    json_decref(ways);
    return status;
}

static sluice_status make_plan(plan_options *o)
{
    slc_profile *profile = NULL;
    whole_run run = {false};
    sluice_status status = slc_profile_read(o->profile, &profile);
    if (!status && o->recipe) status = read_recipe(o, profile, &run);
    if (!status && o->world) status = slc_profile_set_world(profile, o->world);
    if (!o->lossy && !strcmp(o->strategy, "onebit")) o->lossy = "onebit";
    if (!status && o->lossy) status = slc_profile_set_compressed(profile, !strcmp(o->lossy, "onebit"));
    if (!status)
        status = o->pipeline.weighs   ? weigh_and_plan(o, profile, &run)
                 : o->pipeline.stages ? plan_pipeline(o, profile, NULL)
                                      : plan_and_print(o, profile, &run, NULL);
    slc_plan_lengths_fini(&run.lengths);
    slc_profile_destroy(profile);
    return status;
}

static int run_plan(int argc, char **argv)
{
    static const slc_command_line line = {.rows = option_rows,
                                          .arguments = "[B.json]",
                                          .typed = offsetof(plan_options, typed),
                                          .take = take_second,
                                          .check = check_options,
                                          .doc = doc};
    plan_options o = {0};
    slc_command_line_parse(&line, argc, argv, &o);
    sluice_status status = o.compare ? print_comparison(&o) : make_plan(&o);
    return status ? slc_fail("sluice plan") : 0;
}

const sluice_command slc_command_plan = {"plan", "plans a step from a profile: strategies and schedule", run_plan};
