/* Claims and releases memory as the plan says, item by item. tests/engine/engine_test.c covers this file. */
#include "lib/engine/step/claims.h"

#include "lib/engine/check/check.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/state.h"

sluice_status slc_pass_claims(sluice_runtime *rt, slc_pass *pass, uint32_t item, bool begin)
{
    const uint32_t *list = begin ? pass->begins : pass->ends, *first = begin ? pass->begin_first : pass->end_first;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = first[item]; !status && i < first[item + 1]; i++) {
        const slc_claim *claim = &pass->program->claims[list[i]];
        if (begin) status = slc_engine_claim(rt, claim);
        if (!status && rt->check) status = slc_check_claim(rt, claim, begin);
        if (!status && !begin) status = slc_engine_release(rt, claim);
    }
    return status;
}
