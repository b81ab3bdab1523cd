/* `sluice plan`: makes a plan from a profile, as a table for people and as a file. */
#include "bench/cli/command.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/outcome.h"
#include "bench/cli/parse.h"
#include "bench/plan/memory_picture.h"
#include "bench/plan/picture.h"
#include "bench/plan/table.h"
#include "lib/base/clock.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"
#include "lib/plan/request.h"
#include "lib/plan/roles.h"
#include "lib/engine/settings.h"
#include "sched/planner.h"
#include "sched/scheduler.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_PROFILE = 256,
    KEY_WORLD,
    KEY_BUDGET,
    KEY_STRATEGY,
    KEY_SCHEDULE,
    KEY_RECOMPUTE,
    KEY_LOSSY,
    KEY_EFFORT,
    KEY_TIME_LIMIT,
    KEY_PICTURE
};

typedef struct {
    const char *profile, *budget, *strategy, *schedule, *recompute, *lossy, *output, *picture;
    uint32_t world; /* 0: the profile's */
    double time_limit_s, effort_s;
} plan_options;

static const struct argp_option option_rows[] = {
    {"profile", KEY_PROFILE, "FILE", 0, "Profile to plan for (sluice profile writes one)", 0},
    {"world", KEY_WORLD, "N", 0, "Ranks (default: the profile's)", 0},
    {"budget", KEY_BUDGET, "SIZE", 0, "Bytes a rank may use, as 900MiB, or 60% of what dp needs (default: none)", 0},
    {"strategy", KEY_STRATEGY, "NAME=auto,dp,oss,sdp,fsdp,onebit,mixed", 0,
     "auto, dp, oss, sdp, fsdp, onebit, mixed, random:SEED or a JSON file (default auto)", 0},
    {"lossy", KEY_LOSSY, "WHAT=none,onebit", 0,
     "onebit: a step of a compressed optimizer, where layers may exchange their momentum compressed; none: no such "
     "step "
     "(default: as the profile says, with --strategy onebit: onebit)",
     0},
    {"schedule", KEY_SCHEDULE, "NAME", 0, "ilp, portfolio, or one of the others (default ilp; without GLPK portfolio)",
     0},
    {"recompute", KEY_RECOMPUTE, "HOW=auto,none,all", 0, "auto, none or all of the layers that can (default auto)", 0},
    {"effort", KEY_EFFORT, "S", 0,
     "Work that planning may do, in nominal seconds, so that equal input gives the equal plan anywhere "
     "(default: 0.9 for 48 layers, 4.5 for 126, twice that with recomputation)",
     0},
    {"time-limit", KEY_TIME_LIMIT, "S", 0,
     "Take the best plan found after so many seconds, which may differ from run to run (default: none)", 0},
    {"picture", KEY_PICTURE, "FILE", 0,
     "Draw memory over the step and by layer at its peak: FILE.svg or FILE.png (needs gnuplot)", 0},
    {"output", 'o', "FILE", 0, "Write the plan as JSON; '-': standard output", 0},
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

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    plan_options *o = state->input;
    char *end;
    switch (key) {
    case KEY_PROFILE: o->profile = arg; return 0;
    case KEY_BUDGET: o->budget = arg; return 0;
    case KEY_STRATEGY: o->strategy = arg; return 0;
    case KEY_SCHEDULE: o->schedule = arg; return 0;
    case KEY_RECOMPUTE: o->recompute = arg; return 0;
    case KEY_LOSSY: o->lossy = arg; return 0;
    case 'o': o->output = arg; return 0;
    case KEY_PICTURE:
        if (!slc_is_picture_path(arg)) argp_error(state, "--picture %s: the name must end in .svg or .png", arg);
        o->picture = arg;
        return 0;
    case KEY_WORLD: {
        errno = 0;
        unsigned long n = strtoul(arg, &end, 10);
        if (*end || arg[0] < '0' || arg[0] > '9' || errno || !n || n > SLC_PROFILE_WORLD_MAX)
            argp_error(state, "--world: \"%s\" is no number of ranks from 1 to %d", arg, SLC_PROFILE_WORLD_MAX);
        o->world = (uint32_t)n;
        return 0;
    }
    case KEY_EFFORT:
        if (slc_parse_seconds(arg, &o->effort_s) || o->effort_s <= 0)
            argp_error(state, "--effort: \"%s\" is no time above 0", arg);
        return 0;
    case KEY_TIME_LIMIT:
        if (slc_parse_seconds(arg, &o->time_limit_s) || o->time_limit_s <= 0)
            argp_error(state, "--time-limit: \"%s\" is no time above 0", arg);
        return 0;
    case ARGP_KEY_ARG: argp_error(state, "\"%s\": options only", arg); return 0;
    case ARGP_KEY_END:
        if (!o->profile) argp_error(state, "--profile FILE is missing; sluice profile writes one");
        if (strcmp(o->recompute, "auto") && strcmp(o->recompute, "none") && strcmp(o->recompute, "all"))
            argp_error(state, "--recompute %s: use auto, none or all", o->recompute);
        if (o->lossy && strcmp(o->lossy, "none") && strcmp(o->lossy, "onebit"))
            argp_error(state, "--lossy %s: use none or onebit", o->lossy);
        if (o->lossy && !strcmp(o->lossy, "none") && !strcmp(o->strategy, "onebit"))
            argp_error(state, "--strategy onebit with --lossy none: onebit is lossy");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
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
    static const struct argp parser = {.options = option_rows, .parser = parse_option, .doc = doc};
    plan_options o = {.strategy = "auto", .schedule = slc_schedule_default, .recompute = "auto"};
    slc_profile *profile = NULL;
    argp_err_exit_status = EXIT_USAGE;
    slc_parse(&parser, argc, argv, 0, &o);
    sluice_status status = slc_profile_read(o.profile, &profile);
    if (!status && o.world) status = slc_profile_set_world(profile, o.world);
    if (!o.lossy && !strcmp(o.strategy, "onebit")) o.lossy = "onebit";
    if (!status && o.lossy) status = slc_profile_set_compressed(profile, !strcmp(o.lossy, "onebit"));
    if (!status) status = plan_and_print(&o, profile, slc_is_standard_output(o.output) ? stderr : stdout);
    slc_profile_destroy(profile);
    return status ? slc_fail("sluice plan") : 0;
}

const sluice_command slc_command_plan = {"plan", "plans a step from a profile: strategies and schedule", run_plan};
