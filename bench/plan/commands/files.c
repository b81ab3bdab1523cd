/* Reads a profile and its plan, simulates the plan, writes the timeline.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/plan/commands/files.h"

#include "bench/cli/output/result_file.h"
#include "lib/base/status.h"
#include "sched/simulate/trace_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) SLC_OPTION_FIELD(slc_plan_files, name)

#define FILE_ROWS                                                                                                      \
    {"profile",           "FILE", 0, SLC_OPTION_TEXT,                                                                  \
     FIELD(profile_path), NULL,   0, "The profile that the plan was made from (sluice profile)"},                      \
        {"plan", "FILE", 0, SLC_OPTION_TEXT, FIELD(plan_path), NULL, 0, "The plan (sluice plan)"},                     \
        {"world",                                                                                                      \
         "N",                                                                                                          \
         0,                                                                                                            \
         SLC_OPTION_COUNT,                                                                                             \
         FIELD(world),                                                                                                 \
         NULL,                                                                                                         \
         0,                                                                                                            \
         "Ranks, where the plan is for more or fewer than the profile's",                                              \
         1,                                                                                                            \
         SLC_PROFILE_WORLD_MAX},                                                                                       \
    {                                                                                                                  \
        "lossy", "WHAT", 0, SLC_OPTION_WORD, FIELD(lossy), NULL, 0, "none or onebit (default: as the plan was made)",  \
            .choices = "none,onebit"                                                                                   \
    }

static const slc_option file_rows[] = {FILE_ROWS, {0}};
static const slc_option shown_rows[] = {FILE_ROWS, SLC_PIPELINE_OPTION_ROWS(slc_plan_files, pipeline, 0), {0}};

static sluice_status check_options(void *options)
{
    slc_plan_files *files = options;
    if (!files->profile_path) return slc_error(SLUICE_ERR_ARGUMENT, "--profile FILE is missing");
    if (!files->plan_path) return slc_error(SLUICE_ERR_ARGUMENT, "--plan FILE is missing");
    files->outline = slc_plan_outline_read(files->plan_path);
    return SLUICE_OK;
}

static sluice_status check_shown(void *options)
{
    const slc_plan_files *files = options;
    sluice_status status = slc_pipeline_options_check(&files->pipeline);
    if (files->pipeline.weighs)
        return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline auto: sluice plan weighs pipelines; give off, or a number of "
                                              "stages");
    if (status || !files->pipeline.stages) return status ? status : check_options(options);
    if (!files->profile_path) return slc_error(SLUICE_ERR_ARGUMENT, "--profile FILE is missing");
    if (files->plan_path || files->lossy)
        return slc_error(SLUICE_ERR_ARGUMENT, "--pipeline plans by itself; leave --%s out",
                         files->plan_path ? "plan" : "lossy");
    return SLUICE_OK;
}

const slc_command_line slc_plan_files_line = {.rows = file_rows, .check = check_options};
const slc_command_line slc_plan_or_pipeline_line = {.rows = shown_rows, .check = check_shown};

static bool wants_compressed(const slc_plan_files *files)
{
    if (files->lossy) return !strcmp(files->lossy, "onebit");
    return files->profile->compressed || files->outline.compressed;
}

sluice_status slc_plan_files_read(slc_plan_files *files)
{
    sluice_status status = slc_profile_read(files->profile_path, &files->profile);
    if (!status && files->world) status = slc_profile_set_world(files->profile, files->world);
    if (!status) status = slc_profile_set_compressed(files->profile, wants_compressed(files));
    if (!status) status = slc_plan_read(&files->profile->job, files->plan_path, &files->plan);
    return status;
}

void slc_plan_files_fini(slc_plan_files *files)
{
    slc_plan_destroy(files->plan);
    slc_profile_destroy(files->profile);
    free(files->items);
    files->plan = NULL;
    files->profile = NULL;
    files->items = NULL;
}

sluice_status slc_plan_files_simulate(slc_plan_files *files, const slc_simulation *options)
{
    sluice_status status = slc_plan_files_read(files);
    if (status) return status;
    const uint32_t count = files->plan->train.item_count;
    const slc_profile *profile = files->profile;
    files->items = calloc((size_t)count + 1, sizeof *files->items);
    if (!files->items) return slc_error(SLUICE_ERR_MEMORY, "times of %u items", count);
    status = slc_simulate_items(&profile->job, &profile->times, files->plan, options, &files->forecast, files->items);
    return slc_error_context(status, "plan %s", files->plan_path);
}

bool slc_plan_files_has_stages(const slc_plan_files *files)
{
    return files->pipeline.stages || files->outline.staged;
}

/* Reads a plan of stages, which says how many ranks it is for. */
static sluice_status read_stages(slc_plan_files *files, slc_pipelined *made)
{
    const slc_plan_outline *outline = &files->outline;
    const uint64_t ranks = (uint64_t)outline->stages * outline->replicas;
    if (files->world && files->world != ranks)
        return slc_error(SLUICE_ERR_ARGUMENT, "--world %u: plan %s is for %llu ranks", files->world, files->plan_path,
                         (unsigned long long)ranks);
    sluice_status status = slc_profile_set_compressed(files->profile, wants_compressed(files));
    return status ? status : slc_pipelined_read(files->profile, files->plan_path, outline, made);
}

sluice_status slc_plan_files_pipeline(slc_plan_files *files, slc_pipelined *made)
{
    *made = (slc_pipelined){0};
    sluice_status status = slc_profile_read(files->profile_path, &files->profile);
    if (!status && !files->pipeline.stages) return read_stages(files, made);
    if (!status && files->world) status = slc_profile_set_world(files->profile, files->world);
    return status ? status : slc_pipelined_make(&files->pipeline, files->profile, NULL, NULL, NULL, made);
}

sluice_status slc_plan_files_trace(const slc_plan_files *files, uint32_t steps, const char *path)
{
    slc_trace *trace = NULL;
    char *text = NULL, name[256];
    snprintf(name, sizeof name, "simulated: %.100s, %u ranks, %s", files->profile->model, files->profile->job.world,
             files->plan->schedule);
    sluice_status status = slc_trace_create(&files->profile->job, files->plan, &trace);
    if (!status) {
        slc_trace_process(trace, 0, name);
        status = slc_trace_simulated(trace, 0, &files->forecast, files->items, steps);
    }
    if (!status) status = slc_trace_text(trace, &text);
    if (!status) status = slc_result_file_write_text(path, text);
    free(text);
    slc_trace_destroy(trace);
    return status;
}
