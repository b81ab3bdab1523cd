/* Reads the plan and its profile as a tool would read them from files, so that what a run shows is what `sluice plan`
 * shows of the same two files. tests/command/plan/plan_table_test.sh covers this file. */
#include "bench/plan/words/run_plan.h"

#include "bench/plan/words/table.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static void print_head(FILE *out, const sluice_plan_report *report, bool compressed, const char *kept)
{
    if (compressed)
        fprintf(out, "plan of the compressed phase, from %s\n", report->measured ? "measured times" : "sizes");
    else if (kept)
        fprintf(out, "plan of %s\n", kept);
    else if (report->measured)
        fprintf(out, "plan from measured times\n");
    else
        fprintf(out, "plan from sizes: %s\n",
                report->provisional ? "times are known after three steps" : "its schedule needs no times");
}

static slc_plan_distance distance_of(const sluice_plan_report *report)
{
    return (slc_plan_distance){.known = report->distance_known,
                               .part_s = {[SLC_DISTANCE_UNPROVEN] = report->unproven_s,
                                          [SLC_DISTANCE_CHOICES] = report->choices_s,
                                          [SLC_DISTANCE_BLOCKS] = report->blocks_s,
                                          [SLC_DISTANCE_ORDER] = report->order_s,
                                          [SLC_DISTANCE_LATENCY] = report->latency_s,
                                          [SLC_DISTANCE_PACKING] = report->packing_s,
                                          [SLC_DISTANCE_OUTSIDE] = report->distance_outside_s}};
}

static slc_planning_end ended_of(const sluice_plan_report *report)
{
    int end = SLC_PLANNING_TIME_LIMIT;
    while (end && strcmp(slc_planning_end_name((slc_planning_end)end), report->ended)) end--;
    return (slc_planning_end)end;
}

static sluice_status show_taken(const slc_run_plan *texts, const sluice_plan_report *report, const char *kept,
                                FILE *out, json_t **json)
{
    slc_profile *profile = NULL;
    slc_plan *plan = NULL;
    sluice_status status = slc_profile_from_json(texts->profile, strlen(texts->profile), &profile);
    if (!status) status = slc_plan_from_json(&profile->job, texts->plan, strlen(texts->plan), &plan);
    if (!status) {
        const slc_shown_plan shown = {.profile = profile,
                                      .plan = plan,
                                      .forecast = {.step_s = report->step_s,
                                                   .exposed_s = report->exposed_s,
                                                   .compute_s = report->compute_s,
                                                   .communication_s = report->communication_s,
                                                   .outside_s = report->outside_s,
                                                   .bound_s = report->bound_s,
                                                   .searched_s = report->searched_s,
                                                   .effort_s = report->effort_s,
                                                   .ended = ended_of(report),
                                                   .distance = distance_of(report)},
                                      .budget_bytes = report->budget_bytes,
                                      .chosen = report->chosen,
                                      .note = report->note,
                                      .timed = report->measured};
        print_head(out, report, profile->job.compressed, kept);
        status = slc_plan_table(out, &shown);
        fflush(out);
        *json = slc_decisions_json(&shown);
        if (!status && !*json) status = slc_error(SLUICE_ERR_MEMORY, "the plan as JSON");
    }
    slc_plan_destroy(plan);
    slc_profile_destroy(profile);
    return status;
}

sluice_status slc_run_plan_show(sluice_runtime *rt, const char *model, const char *kept, FILE *out, slc_run_plan *taken)
{
    sluice_plan_report report = SLUICE_INIT(sluice_plan_report);
    *taken = (slc_run_plan){0};
    sluice_status status = sluice_runtime_plan(rt, &report);
    if (!status) status = sluice_runtime_plan_json(rt, model, &taken->plan, &taken->profile);
    if (!status) status = show_taken(taken, &report, kept, out, &taken->json);
    if (status) slc_run_plan_free(taken);
    return status;
}

void slc_run_plan_free(slc_run_plan *taken)
{
    free(taken->plan);
    free(taken->profile);
    json_decref(taken->json);
    *taken = (slc_run_plan){0};
}
