/* `sluice trace`: writes a plan's timeline from the simulator, as events for a viewer or as a picture.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/outcome.h"
#include "bench/plan/commands/files.h"
#include "bench/plan/pictures/picture.h"
#include "bench/plan/words/budget_text.h"
#include "bench/plan/words/quantities.h"
#include "bench/plan/pictures/timeline_picture.h"
#include "lib/base/status.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    slc_plan_files files;
    const char *output, *picture, *budget;
    uint32_t steps;
} trace_options;

#define FIELD(name) SLC_OPTION_FIELD(trace_options, name)

static const slc_option option_rows[] = {
    {"output", "FILE", 1, SLC_OPTION_TEXT, FIELD(output), NULL, 0,
     "Write the timeline as JSON for Perfetto or chrome://tracing; '-': standard output", .letter = 'o'},
    {"picture", "FILE", 1, SLC_OPTION_SET, FIELD(picture), NULL, 0,
     "Draw one step: FILE.svg or FILE.png (needs gnuplot)", .set = slc_picture_option},
    {"budget", "SIZE", 1, SLC_OPTION_TEXT, FIELD(budget), NULL, 0,
     "With --picture: show this budget as a line, as 900MiB, or 60% of the least that dp works in"},
    {"steps", "N", 1, SLC_OPTION_COUNT, FIELD(steps), "2", 0, "Steps in the timeline", 1, 1000},
    {0},
};

static sluice_status check_options(void *options)
{
    const trace_options *o = options;
    if ((!o->output || o->picture) && slc_plan_files_has_stages(&o->files))
        return slc_error(SLUICE_ERR_ARGUMENT, "stages have no picture but that of sluice sim; give -o FILE");
    if (!o->output && !o->picture) return slc_error(SLUICE_ERR_ARGUMENT, "give -o FILE or --picture FILE");
    if (o->budget && !o->picture) return slc_error(SLUICE_ERR_ARGUMENT, "--budget goes with --picture");
    return SLUICE_OK;
}

static sluice_status draw(const trace_options *o)
{
    const slc_plan *plan = o->files.plan;
    const slc_forecast *f = &o->files.forecast;
    const slc_item_times *items = o->files.items;
    const slc_profile *profile = o->files.profile;
    slc_memory_series memory;
    char title[512], step[24], exposed[24];
    snprintf(title, sizeof title, "%.100s, %u ranks, %s: step %s, of which compute waits %s (%.1f %%)", profile->model,
             profile->job.world, plan->schedule, slc_plan_seconds(f->step_s, step),
             slc_plan_seconds(f->exposed_s, exposed), 100 * f->exposed_s / f->step_s);
    slc_exposure *exposures = calloc((size_t)plan->train.item_count + 1, sizeof *exposures);
    if (!exposures) return slc_error(SLUICE_ERR_MEMORY, "waits of %u items", plan->train.item_count);
    uint64_t budget_bytes;
    sluice_status status = slc_plan_read_budget(&profile->job, o->budget, &budget_bytes);
    if (!status) status = slc_simulate_memory(plan, items, f->step_s, &memory);
    if (!status) {
        const slc_trace_picture picture = {.title = title,
                                           .job = &profile->job,
                                           .plan = plan,
                                           .times = &profile->times,
                                           .items = items,
                                           .exposures = exposures,
                                           .exposure_count = slc_exposures(plan, items, f, exposures),
                                           .memory = &memory,
                                           .step_s = f->step_s,
                                           .budget_bytes = budget_bytes};
        status = slc_trace_picture_draw(&picture, o->picture);
        slc_memory_series_fini(&memory);
    }
    free(exposures);
    return status;
}

static sluice_status write_all(const trace_options *o)
{
    slc_outcome outcome = {0};
    if (o->output) slc_outcome_add(&outcome, slc_plan_files_trace(&o->files, o->steps, o->output));
    if (o->picture) slc_outcome_add(&outcome, draw(o));
    return slc_outcome_status(&outcome);
}

static sluice_status trace_pipeline(trace_options *o)
{
    slc_pipelined made;
    sluice_status status = slc_plan_files_pipeline(&o->files, &made);
    if (!status) status = slc_pipelined_trace(&made, o->steps, o->output);
    slc_pipelined_fini(&made);
    return status;
}

static sluice_status trace_plan(trace_options *o)
{
    sluice_status status = slc_plan_files_simulate(&o->files, NULL);
    if (!status && !(o->files.forecast.step_s > 0))
        status = slc_error(SLUICE_ERR_ARGUMENT, "profile %s: all times are 0, there is nothing to show",
                           o->files.profile_path);
    return status ? status : write_all(o);
}

static int run_trace(int argc, char **argv)
{
    trace_options o = {0};
    const slc_command_line line = {
        .rows = option_rows,
        .check = check_options,
        .shared = &slc_plan_or_pipeline_line,
        .shared_field = offsetof(trace_options, files),
        .doc = "Shows the timeline of a plan, as the simulator runs it.\v"
               "Lanes for compute, communication and updates, an arrow from what a slot waited for to the slot, and "
               "memory by category. Open the JSON at https://ui.perfetto.dev or chrome://tracing. Of a real run, "
               "`sluice train --trace FILE` writes the same. With --pipeline: of all its stages.\n\n"
               "Examples:\n"
               "  sluice trace --profile profile.json --plan plan.json -o step.json\n"
               "  sluice trace --profile profile.json --plan plan.json --picture step.svg\n"
               "  sluice trace --profile profile.json --pipeline 4 --micro-batches 8 -o stages.json\n"
               "More: docs/timelines.md",
    };
    slc_command_line_parse(&line, argc, argv, &o);
    sluice_status status = slc_plan_files_has_stages(&o.files) ? trace_pipeline(&o) : trace_plan(&o);
    slc_plan_files_fini(&o.files);
    return status ? slc_fail("sluice trace") : 0;
}

const sluice_command slc_command_trace = {"trace", "shows the timeline of a plan", run_trace};
