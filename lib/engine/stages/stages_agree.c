/* Words are sums of integers, so it does not matter how they are added up. tests/engine/pipeline_test.c covers
 * this file. */
#include "lib/engine/stages/stages_agree.h"

#include "lib/base/clock.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/agreement.h"
#include "lib/engine/step/pass.h"

static void add_up(const sluice_runtime *rt, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        int64_t sum = 0;
        for (int r = 0; r < rt->size; r++) sum += rt->stage.all_words[(uint64_t)r * count + i];
        rt->agreement.words[i] = sum;
    }
}

sluice_status slc_stages_agree(sluice_runtime *rt, slc_pass *pass, slc_step_state *step)
{
    const uint64_t count = slc_agreement_words(&rt->job);
    if (!slc_is_stage(&rt->stage)) return SLUICE_OK;
    sluice_status status = slc_pass_wait_before(rt, pass, rt->agreement.item, &step->exposed_s);
    if (!status) status = slc_agreement_begin(rt, step);
    const uint64_t came_ns = slc_clock_ns();
    if (!status) status = sluice_world_all_gather(rt->world, rt->agreement.words, 8 * count, rt->stage.all_words);
    step->stage.end_s += slc_seconds(slc_clock_ns() - came_ns);
    if (status) return status;
    add_up(rt, count);
    status = slc_agreement_end(rt, step);
    if (status) return status;
    slc_gate_post(&rt->stage.agreed, rt->stage.agreements);
    slc_comm_notify(rt->comm);
    return SLUICE_OK;
}
