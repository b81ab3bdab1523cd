/* Joins engine and sched, which never see each other: a runtime gets the planner.
 * tests/calls/every_call_test.c covers this file. */
#include "lib/engine/engine.h"
#include "lib/kernels/isa.h"
#include "lib/sluice/planner.h"
#include "lib/sluice/settings.h"
#include "sched/pipeline/pipeline_run.h"
#include "sched/planner.h"
#include "sched/scheduler.h"
#include "sched/simulate/simulate.h"

static sluice_status plan_for_budget(void *context, const slc_job *job, const slc_plan_request *request,
                                     slc_plan_answer *answer)
{
    (void)context;
    return slc_plan_for_budget(job, request, answer);
}

static sluice_status fuse_units(void *context, const slc_job *job, const slc_fuse_request *request, uint32_t *group)
{
    (void)context;
    return slc_fuse_units(job, request, group);
}

static sluice_status forecast_step(void *context, const slc_job *job, const slc_times *times, const slc_plan *plan,
                                   double *step_s)
{
    (void)context;
    slc_forecast forecast = {0};
    sluice_status status = slc_simulate(job, times, plan, NULL, &forecast);
    *step_s = forecast.step_s;
    return status;
}

static bool wants_times(void *context, const char *schedule)
{
    (void)context;
    return slc_scheduler_wants_times(schedule);
}

static sluice_status cut(void *context, const slc_job *job, const slc_stages_request *request, slc_stages_cut *out)
{
    (void)context;
    return slc_pipeline_cut(job, request, out);
}

static sluice_status stage_of(void *context, const slc_job *job, const slc_stages_request *request,
                              const slc_stages_cut *cuts, uint32_t stage, slc_stage_answer *out)
{
    (void)context;
    return slc_pipeline_stage(job, request, cuts, stage, out);
}

static void free_stage(void *context, slc_stage_answer *answer)
{
    (void)context;
    slc_pipeline_stage_free(answer);
}

slc_planner slc_library_planner(void)
{
    return (slc_planner){.plan = plan_for_budget,
                         .cut = cut,
                         .stage = stage_of,
                         .free_stage = free_stage,
                         .fuse = fuse_units,
                         .wants_times = wants_times,
                         .forecast = forecast_step,
                         .simple_schedule = slc_scheduler_serial.name};
}

sluice_status sluice_runtime_create(sluice_world *world, const sluice_config *config, sluice_runtime **out)
{
    slc_settings_warn_unknown(slc_all_settings, slc_all_settings_count);
    return slc_engine_create(world, config, slc_library_planner(), out);
}

const char *sluice_instruction_set(void)
{
    return slc_isa_name(slc_isa_level());
}
