/* `sluice sim`: predicts how long a plan's step takes, and where compute waits for communication.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/plan/words/exposed_table.h"
#include "bench/cli/outcome.h"
#include "bench/plan/commands/files.h"
#include "bench/cli/output/result_file.h"
#include "lib/base/status.h"
#include "sched/simulate/trace_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { TRACED_STEPS = 2, MOST_LINES = 12 };

typedef struct {
    slc_plan_files files;
    slc_simulation simulation;
    const char *trace, *json;
} sim_options;

#define FIELD(name) SLC_OPTION_FIELD(sim_options, name)

static const slc_option option_rows[] = {
    {"spread", "X", 1, SLC_OPTION_REAL, FIELD(simulation.spread), "0", 0,
     "Multiply every duration by a random factor in 1 - X to 1 + X", 0, 0.99, .note = ": exact"},
    {"seed", "N", 1, SLC_OPTION_COUNT, FIELD(simulation.seed), "0", 0, "Seed of those factors", 0, 1e15},
    {"passes", "N", 1, SLC_OPTION_COUNT, FIELD(simulation.passes), NULL, 0,
     "Steps to simulate at most (default: until they repeat)", 2, 1e6},
    {"trace", "FILE", 2, SLC_OPTION_TEXT, FIELD(trace), NULL, 0,
     "Write a timeline for Perfetto or chrome://tracing; '-': standard output"},
    {"json", "FILE", 2, SLC_OPTION_TEXT, FIELD(json), NULL, 0, "Write the figures as JSON; '-': standard output"},
    {0},
};

static void put_row(FILE *out, const char *name, double s, const slc_forecast *f, const char *what)
{
    fprintf(out, "  %-15s %12.3f ms %6.1f %%%s%s\n", name, s * 1e3, f->step_s > 0 ? 100 * s / f->step_s : 0,
            *what ? "   " : "", what);
}

static void print_forecast(FILE *out, const slc_plan_files *files)
{
    const slc_job *job = &files->profile->job;
    const slc_forecast *f = &files->forecast;
    fprintf(out, "%s, %u ranks, %u layers, %u units, schedule %s: %u items, simulated for %u steps%s\n",
            files->profile->model, job->world, job->layer_count, job->unit_count, files->plan->schedule,
            files->plan->train.item_count, f->passes, f->steady ? " until they repeat" : "");
    put_row(out, "step", f->step_s, f, "");
    put_row(out, "compute", f->compute_s, f, "slots, as communication beside them lengthens them");
    put_row(out, "exposed", f->exposed_s, f, "compute waits");
    if (f->outside_s > 0) put_row(out, "outside", f->outside_s, f, "the program does other things than slots");
    put_row(out, "communication", f->communication_s, f, "on the link, lengthened too");
    put_row(out, "update", f->update_s, f, "optimizer, on the communication thread");
    fprintf(out, "  %-15s %12.1f MiB of %.1f MiB of arena\n", "peak", (double)f->peak_bytes / 0x1p20,
            (double)files->plan->arena_bytes / 0x1p20);
}

static sluice_status write_json(const sim_options *o, const slc_exposure *exposures, uint32_t count)
{
    const slc_job *job = &o->files.profile->job;
    const slc_forecast *f = &o->files.forecast;
    const slc_item *plan_items = o->files.plan->train.items;
    if (!o->json) return SLUICE_OK;
    json_t *exposed = json_array();
    for (uint32_t e = 0; e < count; e++) {
        char slot[SLC_ITEM_LABEL], cause[SLC_ITEM_LABEL], busy[SLC_ITEM_LABEL];
        slc_item_label(job, &plan_items[exposures[e].slot], slot);
        if (exposures[e].cause != SLC_NONE) slc_item_label(job, &plan_items[exposures[e].cause], cause);
        if (exposures[e].busy != SLC_NONE) slc_item_label(job, &plan_items[exposures[e].busy], busy);
        json_array_append_new(exposed, json_pack("{s:s, s:s?, s:s?, s:b, s:f, s:f}", "slot", slot, "waits_for",
                                                 exposures[e].cause == SLC_NONE ? NULL : cause, "meanwhile",
                                                 exposures[e].busy == SLC_NONE ? NULL : busy, "of_the_step_before",
                                                 exposures[e].previous, "from_s", exposures[e].from_s, "s",
                                                 exposures[e].to_s - exposures[e].from_s));
    }
    return slc_result_file_write_json(
        o->json, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:b, s:o}", "step_s", f->step_s, "exposed_s",
                           f->exposed_s, "compute_s", f->compute_s, "outside_s", f->outside_s, "communication_s",
                           f->communication_s, "update_s", f->update_s, "peak_bytes", (json_int_t)f->peak_bytes,
                           "arena_bytes", (json_int_t)o->files.plan->arena_bytes, "passes", (json_int_t)f->passes,
                           "steady", f->steady, "exposed", exposed));
}

static sluice_status show_simulation(const sim_options *o)
{
    const slc_plan *plan = o->files.plan;
    const slc_forecast *f = &o->files.forecast;
    bool to_stdout = slc_is_standard_output(o->json) || slc_is_standard_output(o->trace);
    FILE *out = to_stdout ? stderr : stdout;
    slc_exposure *exposures = calloc((size_t)plan->train.item_count + 1, sizeof *exposures);
    if (!exposures) return slc_error(SLUICE_ERR_MEMORY, "waits of %u items", plan->train.item_count);
    uint32_t count = slc_exposures(plan, o->files.items, f, exposures);
    print_forecast(out, &o->files);
    sluice_status status =
        slc_exposed_table(out, &o->files.profile->job, plan, exposures, count, f->step_s, MOST_LINES);
    slc_outcome outcome = {0};
    slc_outcome_add(&outcome, status);
    slc_outcome_add(&outcome, write_json(o, exposures, count));
    if (o->trace) slc_outcome_add(&outcome, slc_plan_files_trace(&o->files, TRACED_STEPS, o->trace));
    free(exposures);
    return slc_outcome_status(&outcome);
}

/* ---- Pipelines ---- */

enum { PICTURE_WIDTH = 96 };

static sluice_status show_pipeline(const sim_options *o, const slc_pipelined *made)
{
    FILE *out = slc_is_standard_output(o->json) || slc_is_standard_output(o->trace) ? stderr : stdout;
    slc_outcome outcome = {0};
    slc_pipelined_print(out, made);
    fputc('\n', out);
    slc_pipelined_draw(out, made, PICTURE_WIDTH);
    if (o->json) slc_outcome_add(&outcome, slc_result_file_write_json(o->json, slc_pipelined_json(made)));
    if (o->trace) slc_outcome_add(&outcome, slc_pipelined_trace(made, TRACED_STEPS, o->trace));
    return slc_outcome_status(&outcome);
}

static sluice_status simulate_pipeline(sim_options *o)
{
    slc_pipelined made;
    sluice_status status = slc_plan_files_pipeline(&o->files, &made);
    if (!status) status = show_pipeline(o, &made);
    slc_pipelined_fini(&made);
    return status;
}

static sluice_status simulate_plan(sim_options *o)
{
    sluice_status status = slc_plan_files_simulate(&o->files, &o->simulation);
    return status ? status : show_simulation(o);
}

static sluice_status check_sim(void *options)
{
    const sim_options *o = options;
    if ((o->simulation.spread > 0 || o->simulation.passes) && slc_plan_files_has_stages(&o->files))
        return slc_error(SLUICE_ERR_ARGUMENT, "stages are simulated exactly; leave --spread and --passes out");
    return SLUICE_OK;
}

static int run_sim(int argc, char **argv)
{
    sim_options o = {0};
    const slc_command_line line = {
        .rows = option_rows,
        .check = check_sim,
        .shared = &slc_plan_or_pipeline_line,
        .shared_field = offsetof(sim_options, files),
        .doc =
            "Simulates a plan's steps with the times of its profile.\v"
            "Compute and communication are two lanes, as in the engine; where they overlap they slow each other "
            "down as the profile says. The table tells which layers wait, for what, largest first. With --pipeline all "
            "stages are simulated and drawn.\n\n"
            "Examples:\n"
            "  sluice sim --profile profile.json --plan plan.json\n"
            "  sluice sim --profile profile.json --plan plan.json --spread 0.1 --seed 3 --passes 50\n"
            "  sluice sim --profile profile.json --plan plan.json --trace step.json --json -\n"
            "  sluice sim --profile profile.json --pipeline 4 --micro-batches 8\n"
            "  sluice sim --profile profile.json --plan stages.json\n"
            "More: docs/timelines.md",
    };
    slc_command_line_parse(&line, argc, argv, &o);
    sluice_status status = slc_plan_files_has_stages(&o.files) ? simulate_pipeline(&o) : simulate_plan(&o);
    slc_plan_files_fini(&o.files);
    return status ? slc_fail("sluice sim") : 0;
}

const sluice_command slc_command_sim = {"sim", "simulates a plan: its step, and where compute waits", run_sim};
