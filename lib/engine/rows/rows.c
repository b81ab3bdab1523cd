/* Parameters of which the layer that adds them reads some rows only: their marks, and whether rows are known.
 * tests/engine/engine_rows_test.c covers this file. */
#include "lib/engine/rows/look_up.h"

#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/engine/runtime.h"

#include <stdlib.h>

static bool looks_up(const sluice_param *param)
{
    return param->row_elements > 0;
}

static void say_joint(const sluice_runtime *rt, const char *name, const char *why)
{
    if (rt->rank == 0 && rt->config.tied == SLUICE_TIED_SPLIT)
        slc_log(SLC_LOG_WARN, "tied split: %s stays joint: %s", name, why);
}

sluice_status slc_look_ups_commit(sluice_runtime *rt)
{
    bool any = false;
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        sluice_param *param = rt->model.params[p];
        if (!looks_up(param)) continue;
        any = true;
        if (param->rows_unit != SLC_NONE) continue;
        param->marks = calloc(1, slc_row_marks_bytes(param->count / param->row_elements));
        if (!param->marks) return slc_error(SLUICE_ERR_MEMORY, "rows of \"%s\"", param->name);
        say_joint(rt, param->name,
                  rt->compression.fuses ? "this optimizer exchanges all parameters as one buffer"
                                        : "no other layer uses it");
    }
    if (!any) say_joint(rt, "everything", "no layer only looks rows up in a tied parameter (row_elements)");
    return SLUICE_OK;
}

void slc_look_ups_forget(sluice_runtime *rt)
{
    for (uint32_t p = 0; p < rt->model.param_count; p++) rt->model.params[p]->rows_set = 0;
}

sluice_status slc_look_ups_check(const sluice_runtime *rt, uint32_t micro_batch)
{
    /* A stage of a pipeline has several micro-batches under way, so all of the step's are to be known. */
    if (slc_is_stage(&rt->stage) && rt->mode == SLC_IN_STEP) micro_batch = rt->job.micro_batches - 1;
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        if (looks_up(rt->model.params[p]) && rt->model.params[p]->rows_set <= micro_batch)
            return slc_error(SLUICE_ERR_ORDER,
                             "parameter \"%s\": which rows micro-batch %u reads is not known; call sluice_rows_set "
                             "before its first layer",
                             rt->model.params[p]->name, micro_batch);
    return SLUICE_OK;
}

static bool is_known(const sluice_runtime *rt, const slc_program *program, const slc_item *item)
{
    if (item->kind != SLC_ITEM_GATHER_WINDOW) return true;
    const sluice_param *param = rt->units[item->unit].looked_up;
    const bool trains = program == rt->train.program;
    const slc_step_state *step = &rt->steps[rt->train.parity];
    const uint32_t micro_batch =
        trains ? slc_step_ordinal(step, rt->job.micro_batches, item->micro_batch) : item->micro_batch;
    return !param || micro_batch == SLC_NONE || param->rows_set > micro_batch;
}

uint32_t slc_look_ups_known(const sluice_runtime *rt, const slc_program *program, const uint32_t *operations,
                            uint32_t count)
{
    uint32_t known = 0;
    while (known < count && is_known(rt, program, &program->items[operations[known]])) known++;
    return known;
}
