/* Draining: everything that a step has begun is applied, and its verdict told.
 * tests/engine/engine_test.c covers this file. */
#include "lib/engine/step/drain.h"

#include "lib/engine/measure/marks.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/pass.h"
#include "lib/engine/step/words.h"

bool slc_agrees_late(const sluice_runtime *rt)
{
    return rt->current.plan->train.items[rt->agreement.item].late;
}

sluice_status slc_runtime_drain(sluice_runtime *rt)
{
    bool pending = slc_pass_pending(&rt->train);
    slc_measure_unlike(rt->measure);
    slc_writer_wait(&rt->writer, SLC_NONE, rt->comm); /* what comes between steps may write anything */
    sluice_status status = slc_pass_drain(rt, &rt->train);
    if (!status) slc_marks_read(rt);
    if (!status && pending && slc_agrees_late(rt)) {
        slc_step_state *step = &rt->steps[rt->train.parity ^ 1];
        slc_pass_words_learn(step);
        status = slc_engine_check_finite(rt, step);
    }
    if (!status) {
        status = slc_engine_check_exchanges(rt);
        if (!slc_is_stage(&rt->stage)) slc_runtime_alike(rt, status); /* no other stage knows */
    }
    return slc_runtime_fail(rt, status);
}
