/* `sluice check` tells whether a plan may run, and how well it is packed. Reading a plan validates it; the output says
 * what was checked. tests/command/plan/plan_tools_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/plan/commands/files.h"
#include "bench/cli/output/result_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    slc_plan_files files;
    const char *json;
} check_options;

typedef struct {
    uint64_t slots, operations, messages, late, blocks, waits, claims, wrapping;
} counts;

static const slc_option option_rows[] = {
    {"json", "FILE", 1, SLC_OPTION_TEXT, SLC_OPTION_FIELD(check_options, json), NULL, 0,
     "Write the figures as JSON; '-': standard output"},
    {0},
};

static counts count_items(const slc_program *program)
{
    counts c = {.claims = program->claim_count};
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        *(item->kind == SLC_ITEM_SLOT ? &c.slots : slc_is_message(item->kind) ? &c.messages : &c.operations) += 1;
        c.late += item->late;
        c.blocks += item->block_count;
        c.waits += item->after_count;
    }
    for (uint32_t i = 0; i < program->claim_count; i++) c.wrapping += slc_claim_wraps(program, &program->claims[i]);
    return c;
}

static double packing_loss(const slc_plan *plan)
{
    return plan->lower_bound ? (double)plan->arena_bytes / (double)plan->lower_bound - 1 : 0;
}

static uint64_t resident_bytes(const slc_plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < plan->static_count; s++) bytes += plan->statics[s].end_byte - plan->statics[s].first_byte;
    return bytes;
}

static void print_findings(FILE *out, const slc_plan_files *files)
{
    const slc_job *job = &files->profile->job;
    const slc_plan *plan = files->plan;
    counts step = count_items(&plan->train), pass = count_items(&plan->evaluate);
    fprintf(out, "%s is a valid plan for %s: %s, %u ranks, %u layers, %u units, %u micro-batch%s, schedule %s\n",
            files->plan_path, files->profile_path, files->profile->model, job->world, job->layer_count, job->unit_count,
            job->micro_batches, job->micro_batches > 1 ? "es" : "", plan->schedule);
    fprintf(out,
            "checked of a step, of an evaluation pass and of what follows what:\n"
            "  every slot in order, every operation once and complete   %" PRIu64 " slots, %" PRIu64
            " operations (%" PRIu64 " late) on %" PRIu64 " blocks; %" PRIu64 " and %" PRIu64 "\n"
            "  data is there before it is used, also across steps       %" PRIu64 " waits; %" PRIu64 "\n"
            "  memory is claimed while it is used, and by nobody else   %" PRIu64 " claims (%" PRIu64
            " into the next step) of %u buffers; %" PRIu64 "\n"
            "  no item waits for a later one: no timing can stall it\n",
            step.slots, step.operations, step.late, step.blocks, pass.slots, pass.operations, step.waits, pass.waits,
            step.claims, step.wrapping, plan->buffer_count, pass.claims);
    fprintf(out,
            "arena        %12.1f MiB, of which %.1f MiB stay for good\n"
            "lower bound  %12.1f MiB: no packing of these lifetimes is smaller\n"
            "packing loss %12.2f %%\n",
            (double)plan->arena_bytes / 0x1p20, (double)resident_bytes(plan) / 0x1p20,
            (double)plan->lower_bound / 0x1p20, 100 * packing_loss(plan));
    if (job->reserved_bytes)
        fprintf(out, "reserved     %12.1f MiB by the program itself, beside the arena\n",
                (double)job->reserved_bytes / 0x1p20);
}

static sluice_status write_json(const check_options *o)
{
    const slc_plan *plan = o->files.plan;
    if (!o->json) return SLUICE_OK;
    counts step = count_items(&plan->train);
    return slc_result_file_write_json(
        o->json,
        json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "valid", 1, "slots", (json_int_t)step.slots,
                  "operations", (json_int_t)step.operations, "blocks", (json_int_t)step.blocks, "waits",
                  (json_int_t)step.waits, "claims", (json_int_t)step.claims, "arena_bytes",
                  (json_int_t)plan->arena_bytes, "resident_bytes", (json_int_t)resident_bytes(plan),
                  "lower_bound_bytes", (json_int_t)plan->lower_bound, "packing_loss", packing_loss(plan)));
}

static sluice_status check_plan(check_options *o)
{
    sluice_status status = slc_plan_files_read(&o->files);
    if (status) return status;
    print_findings(slc_is_standard_output(o->json) ? stderr : stdout, &o->files);
    return write_json(o);
}

/* ---- Stages ---- */

static void print_stages(FILE *out, const slc_plan_files *files, const slc_pipelined *made)
{
    const slc_staged_plan *staged = made->plan.staged;
    fprintf(out,
            "%s is a valid plan for %s: %s, %u stages of %u rank%s, %u layers, %u micro-batch%s, schedule %s\n"
            "checked of each stage, of a step and an evaluation pass:\n"
            "  every slot in order, every operation once and complete\n"
            "  data is there before it is used, and memory claimed while it is used\n"
            "checked of all stages together:\n"
            "  both ends of each channel have the same messages, in one order\n"
            "  no timing lets stages wait for each other, even where a send is over only once it is received\n\n"
            "  stage     slots  operations  messages     waits    claims   arena MiB   loss\n",
            files->plan_path, files->profile_path, files->profile->model, staged->stages, files->profile->job.world,
            files->profile->job.world > 1 ? "s" : "", files->profile->job.layer_count,
            files->profile->job.micro_batches, files->profile->job.micro_batches > 1 ? "es" : "", staged->schedule);
    for (uint32_t s = 0; s < staged->stages; s++) {
        const slc_plan *plan = staged->plans[s];
        const counts step = count_items(&plan->train);
        fprintf(out, "  %5u  %8" PRIu64 "  %10" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %10.1f  %4.1f%%\n",
                s, step.slots, step.operations, step.messages, step.waits, step.claims,
                (double)plan->arena_bytes / 0x1p20, 100 * packing_loss(plan));
    }
}

static json_t *stage_json(const slc_plan *plan)
{
    const counts step = count_items(&plan->train);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "slots", (json_int_t)step.slots,
                     "operations", (json_int_t)step.operations, "messages", (json_int_t)step.messages, "blocks",
                     (json_int_t)step.blocks, "waits", (json_int_t)step.waits, "claims", (json_int_t)step.claims,
                     "arena_bytes", (json_int_t)plan->arena_bytes, "resident_bytes", (json_int_t)resident_bytes(plan),
                     "lower_bound_bytes", (json_int_t)plan->lower_bound, "packing_loss", packing_loss(plan));
}

static sluice_status write_stages(const check_options *o, const slc_staged_plan *staged)
{
    json_t *stages = o->json ? json_array() : NULL;
    for (uint32_t s = 0; o->json && s < staged->stages; s++)
        json_array_append_new(stages, stage_json(staged->plans[s]));
    return o->json ? slc_result_file_write_json(o->json, json_pack("{s:b, s:o}", "valid", 1, "stages", stages))
                   : SLUICE_OK;
}

static sluice_status check_stages(check_options *o)
{
    slc_pipelined made;
    sluice_status status = slc_plan_files_pipeline(&o->files, &made);
    if (!status) print_stages(slc_is_standard_output(o->json) ? stderr : stdout, &o->files, &made);
    if (!status) status = write_stages(o, made.plan.staged);
    slc_pipelined_fini(&made);
    return status;
}

static int run_check(int argc, char **argv)
{
    check_options o = {0};
    const slc_command_line line = {
        .rows = option_rows,
        .shared = &slc_plan_files_line,
        .shared_field = offsetof(check_options, files),
        .doc = "Validates a plan against the profile it was made from.\v"
               "Shares no code with the planner. The exit code is 0 for a valid plan and 2 for any other, with a line "
               "that says what is wrong and where.\n\n"
               "Examples:\n"
               "  sluice check --profile profile.json --plan plan.json\n"
               "  sluice check --profile profile.json --plan plan.json --json -\n"
               "  sluice check --profile profile.json --plan stages.json\n"
               "More: docs/timelines.md",
    };
    slc_command_line_parse(&line, argc, argv, &o);
    sluice_status status = slc_plan_files_has_stages(&o.files) ? check_stages(&o) : check_plan(&o);
    slc_plan_files_fini(&o.files);
    return status ? slc_fail("sluice check") : 0;
}

const sluice_command slc_command_check = {"check", "validates a plan and says how well it is packed", run_check};
