/* Words are sums of integers, so it does not matter how they are added up. tests/engine/pipeline_test.c covers
 * this file. */
#include "lib/engine/stages/stages_agree.h"

#include "lib/base/clock.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/agreement.h"
#include "lib/engine/step/pass.h"
#include "lib/plan/roles.h"
#include "lib/plan/strategy_table.h"

#include <string.h>

bool slc_stages_exchange(const sluice_runtime *rt)
{
    const slc_job *job = &rt->stage.whole;
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (slc_exchanges(slc_unit_strategy(job, &job->units[u], rt->stage.now->cut.strategies[u]))) return true;
    return false;
}

/* Returns word number `i` of the ranks first, first + every, ... */
static int64_t sum_of(const sluice_runtime *rt, uint64_t i, int first, int every)
{
    const uint64_t count = slc_agreement_stage_words(rt);
    int64_t sum = 0;
    for (int r = first; r < rt->size; r += every) sum += rt->stage.all_words[(uint64_t)r * count + i];
    return sum;
}

/* Gradients are summed over all ranks; the bins of own gradients over the stages of this rank's replica. */
static void add_up(sluice_runtime *rt, slc_step_state *step)
{
    const uint64_t agreed = slc_agreement_words(&rt->job);
    for (uint64_t i = 0; i < agreed; i++) rt->agreement.words[i] = sum_of(rt, i, 0, 1);
    for (uint64_t i = agreed; i < slc_agreement_stage_words(rt); i++)
        step->own_bins[i - agreed] = sum_of(rt, i, rt->replica, rt->replicas);
}

sluice_status slc_stages_agree(sluice_runtime *rt, slc_pass *pass, slc_step_state *step)
{
    const uint64_t count = slc_agreement_stage_words(rt), agreed = slc_agreement_words(&rt->job);
    if (!slc_is_stage(&rt->stage)) return SLUICE_OK;
    sluice_status status = slc_pass_wait_before(rt, pass, rt->agreement.item, &step->exposed_s);
    if (!status) status = slc_agreement_begin(rt, step);
    memcpy(rt->agreement.words + agreed, step->own_bins, 8 * (count - agreed));
    const uint64_t came_ns = slc_clock_ns();
    if (!status) status = sluice_world_all_gather(rt->world, rt->agreement.words, 8 * count, rt->stage.all_words);
    step->stage.end_s += slc_seconds(slc_clock_ns() - came_ns);
    if (status) return status;
    add_up(rt, step);
    status = slc_agreement_end(rt, step);
    if (status) return status;
    slc_gate_post(&rt->stage.agreed, rt->stage.agreements);
    slc_comm_notify(rt->comm);
    return SLUICE_OK;
}
