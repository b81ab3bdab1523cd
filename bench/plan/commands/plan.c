/* `sluice plan`: makes a plan from a profile, as a table for people and as a file.
 * tests/command/plan_table_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/outcome.h"
#include "bench/cli/options/command_line.h"
#include "bench/plan/pictures/memory_picture.h"
#include "bench/plan/pictures/picture.h"
#include "bench/plan/words/table.h"
#include "lib/base/clock.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"
#include "lib/plan/request.h"
#include "lib/plan/roles.h"
#include "lib/engine/settings.h"
#include "sched/planner.h"
#include "sched/scheduler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *profile, *budget, *strategy, *schedule, *recompute, *lossy, *output, *picture;
    uint32_t world; /* 0: the profile's */
    double time_limit_s, effort_s;
} plan_options;

#define FIELD(name) SLC_OPTION_FIELD(plan_options, name)

static const slc_option option_rows[] = {
    {"profile", "FILE", 0, SLC_OPTION_TEXT, FIELD(profile), NULL, 0, "Profile to plan for (sluice profile writes one)"},
    {"world", "N", 0, SLC_OPTION_COUNT, FIELD(world), NULL, 0, "Ranks (default: the profile's)", 1,
     SLC_PROFILE_WORLD_MAX},
    {"budget", "SIZE", 0, SLC_OPTION_TEXT, FIELD(budget), NULL, 0,
     "Bytes a rank may use, as 900MiB, or 60% of what dp needs (default: none)"},
    {"strategy", "NAME=auto,dp,oss,sdp,fsdp,onebit,mixed", 0, SLC_OPTION_TEXT, FIELD(strategy), "auto", 0,
     "auto, dp, oss, sdp, fsdp, onebit, mixed, random:SEED or a JSON file"},
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
    {"picture", "FILE", 0, SLC_OPTION_SET, FIELD(picture), NULL, 0,
     "Draw memory over the step and by layer at its peak: FILE.svg or FILE.png (needs gnuplot)",
     .set = slc_picture_option},
    {"output", "FILE", 0, SLC_OPTION_TEXT, FIELD(output), NULL, 0, "Write the plan as JSON; '-': standard output",
     .letter = 'o'},
    {0},
};

static const char doc[] = "Plans a training step: how each layer is sharded, and when each block is sent.\v"
                          "Examples:\n"
                          "  sluice plan --profile profile.json --budget 900MiB -o plan.json\n"
                          "  sluice plan --profile gpt3.json --world 64 --budget 60GiB --effort 20\n"
                          "  sluice plan --profile profile.json --budget 60% --strategy fsdp --schedule one_ahead\n"
                          "  sluice plan --profile profile.json --budget 80% --lossy onebit\n"
                          "  sluice plan --profile profile.json --budget 60% --picture memory.svg\n"
                          "Then: sluice sim, sluice check, sluice trace.\n"
                          "More: docs/what-a-plan-says.md";

static sluice_status check(void *options)
{
    const plan_options *o = options;
    if (!o->profile) return slc_error(SLUICE_ERR_ARGUMENT, "--profile FILE is missing; sluice profile writes one");
    if (o->lossy && !strcmp(o->lossy, "none") && !strcmp(o->strategy, "onebit"))
        return slc_error(SLUICE_ERR_ARGUMENT, "--strategy onebit with --lossy none: onebit is lossy");
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

static sluice_status plan_and_print(const plan_options *o, const slc_profile *profile, FILE *out)
{
    slc_plan_request request = {.strategy = o->strategy,
                                .schedule = o->schedule,
                                .times = &profile->times,
                                .effort_s = o->effort_s,
                                .time_limit_s = o->time_limit_s};
    slc_plan_answer answer = {0};
    uint8_t *recompute = calloc((size_t)profile->job.layer_count + 1, 1);
    if (!recompute) return slc_error(SLUICE_ERR_MEMORY, "layers");
    choose_recompute(&profile->job, o->recompute, recompute);
    request.recompute = recompute;
    sluice_status status = slc_engine_updates(SLUICE_UPDATES_BY_SETTING, &request.updates);
    if (!status && o->budget)
        status =
            slc_error_context(slc_parse_budget(o->budget, &request.budget_bytes, &request.budget_of_dp), "--budget");
    uint64_t start = slc_clock_ns();
    if (!status) status = slc_plan_for_budget(&profile->job, &request, &answer);
    double took = slc_seconds(slc_clock_ns() - start);
    if (!status) {
        const slc_shown_plan shown = {profile,     answer.plan, answer.forecast, answer.budget_bytes, answer.member,
                                      answer.note, true};
        print_head(out, profile);
        status = slc_plan_table(out, &shown);
        fprintf(out, "planned    in %.2f s\n", took);
        slc_outcome files = {0};
        if (!status && o->picture)
            slc_outcome_add(&files,
                            slc_memory_picture_draw(out, profile, answer.plan, answer.budget_bytes, o->picture));
        if (!status && o->output) slc_outcome_add(&files, write_plan(profile, &answer, o->output));
        if (!status) status = slc_outcome_status(&files);
    }
    slc_plan_destroy(answer.plan);
    free(recompute);
    return status;
}

static int run_plan(int argc, char **argv)
{
    static const slc_command_line line = {.rows = option_rows, .check = check, .doc = doc};
    plan_options o = {0};
    slc_profile *profile = NULL;
    slc_command_line_parse(&line, argc, argv, &o);
    sluice_status status = slc_profile_read(o.profile, &profile);
    if (!status && o.world) status = slc_profile_set_world(profile, o.world);
    if (!o.lossy && !strcmp(o.strategy, "onebit")) o.lossy = "onebit";
    if (!status && o.lossy) status = slc_profile_set_compressed(profile, !strcmp(o.lossy, "onebit"));
    if (!status) status = plan_and_print(&o, profile, slc_is_standard_output(o.output) ? stderr : stdout);
    slc_profile_destroy(profile);
    return status ? slc_fail("sluice plan") : 0;
}

const sluice_command slc_command_plan = {"plan", "plans a step from a profile: strategies and schedule", run_plan};
