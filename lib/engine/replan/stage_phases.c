/* The plans of all phases of a pipeline's stage are made at commit; a new phase takes its own. The stage's layers,
 * units and channels are the same in all of them. tests/engine/pipeline_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"

slc_plan_answer slc_stage_take_plan(slc_stage_phase *phase, uint64_t budget_bytes)
{
    const slc_plan_answer answer = {
        .plan = phase->own.plan, .budget_bytes = budget_bytes, .forecast = {.step_s = phase->cut.step_s}};
    phase->own.plan = NULL;
    return answer;
}

void slc_stage_keep_prediction(sluice_runtime *rt)
{
    const slc_stages_cut *cut = &rt->stage.now->cut;
    const slc_stage_step *slowest = cut->steps;
    if (!cut->timed) return;
    for (uint32_t s = 1; s < rt->stage.stages; s++)
        if (cut->steps[s].compute_s > slowest->compute_s) slowest = &cut->steps[s];
    const double waiting_s = slowest->idle_s + slowest->exposed_s;
    rt->current.predicted = (sluice_step_parts){.step_s = cut->step_s,
                                                .compute_s = slowest->compute_s,
                                                .waiting_s = waiting_s,
                                                .outside_s = cut->step_s - slowest->compute_s - waiting_s,
                                                .transfer_s = slowest->transfer_s};
}

sluice_status slc_stage_plan_phase(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    slc_stage_phase *before = stage->now, *next = stage->phases;
    while (!slc_job_in_phase(&rt->job, &next->phase)) next++;
    const slc_plan_answer answer = slc_stage_take_plan(next, rt->current.budget_bytes);
    stage->now = next;
    rt->job = next->own.job;
    slc_job_set_phase(&stage->whole, &next->phase);
    sluice_status status = slc_engine_swap_plan(rt, &answer, NULL, &before->own.plan);
    if (!status) slc_stage_keep_prediction(rt);
    return status;
}
