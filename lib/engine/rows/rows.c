/* Parameters of which the layer that adds them reads some rows only: the caller says which before each micro-batch. */
#include "lib/engine/rows/look_up.h"

#include "lib/base/log.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

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
    for (uint32_t p = 0; p < rt->param_count; p++) {
        sluice_param *param = rt->params[p];
        if (!looks_up(param)) continue;
        any = true;
        if (param->rows_unit != SLC_NONE) continue;
        param->marks = calloc(1, slc_row_marks_bytes(param->count / param->row_elements));
        if (!param->marks) return slc_error(SLUICE_ERR_MEMORY, "rows of \"%s\"", param->name);
        say_joint(rt, param->name,
                  rt->fuses ? "this optimizer exchanges all parameters as one buffer" : "no other layer uses it");
    }
    if (!any) say_joint(rt, "everything", "no layer only looks rows up in a tied parameter (row_elements)");
    return SLUICE_OK;
}

/* In front of the first slot of a micro-batch, of which step this is; in evaluation each pass is one. */
static bool between_micro_batches(const sluice_runtime *rt, uint32_t *micro_batch)
{
    const slc_pass *pass = &rt->train;
    *micro_batch = 0;
    if (rt->mode == SLC_IN_EVALUATION) return rt->cursor == rt->evaluate.slot_count;
    if (rt->mode != SLC_IN_STEP || rt->cursor >= pass->slot_count || rt->phase != SLC_BETWEEN_SLOTS) return false;
    const slc_item *next = &pass->program->items[pass->slots[rt->cursor]];
    *micro_batch = next->micro_batch;
    return next->slot == 0;
}

static sluice_status check_time(const sluice_param *param)
{
    uint32_t micro_batch;
    if (!between_micro_batches(param->rt, &micro_batch))
        return slc_error(SLUICE_ERR_ORDER,
                         "rows_set of \"%s\": must be called in front of a micro-batch: behind step_begin or "
                         "evaluate_begin, or behind the last slot of the one before",
                         param->name);
    if (param->rows_set > micro_batch)
        return slc_error(SLUICE_ERR_ORDER, "rows_set of \"%s\": its rows are set for this micro-batch already (%u)",
                         param->name, micro_batch);
    return SLUICE_OK;
}

static sluice_status check_rows(const sluice_param *param, const int32_t *rows, uint64_t count, const int32_t *places)
{
    uint64_t row_count = param->count / param->row_elements;
    if (count && (!rows || !places))
        return slc_error(SLUICE_ERR_ARGUMENT, "rows_set of \"%s\": no rows or no places given", param->name);
    for (uint64_t i = 0; i < count; i++)
        if (rows[i] < 0 || (uint64_t)rows[i] >= row_count)
            return slc_error(SLUICE_ERR_ARGUMENT, "rows_set of \"%s\": number %llu is row %d; there are rows 0 to %llu",
                             param->name, (unsigned long long)i, rows[i], (unsigned long long)row_count - 1);
    return SLUICE_OK;
}

static sluice_status too_many(const sluice_param *param)
{
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "rows_set of \"%s\": more than %llu different rows; give most_rows as many as a micro-batch may "
                     "have when the parameter is added",
                     param->name, (unsigned long long)param->most_rows);
}

/* One gradient for all uses: a row's place is its number. */
static bool set_rows(sluice_param *param, const int32_t *rows, uint64_t count, int32_t *places)
{
    uint64_t row_count = param->count / param->row_elements;
    if (param->rows_unit != SLC_NONE)
        return slc_look_up_set(param->rt->units[param->rows_unit].look_up, rows, count, places);
    if (!slc_row_list_make(param->marks, row_count, rows, count, param->most_rows, NULL, NULL)) return false;
    if (count) memmove(places, rows, count * sizeof *rows);
    return true;
}

sluice_status sluice_rows_set(sluice_param *param, const int32_t *rows, uint64_t count, int32_t *places)
{
    sluice_status status = slc_runtime_require(param ? param->rt : NULL, true, "rows_set");
    if (status) return status;
    if (!looks_up(param))
        return slc_error(SLUICE_ERR_ARGUMENT, "rows_set of \"%s\": it was added without row_elements", param->name);
    status = check_time(param);
    if (!status) status = check_rows(param, rows, count, places);
    if (status) return status;
    if (!set_rows(param, rows, count, places)) return too_many(param);
    param->rows_set++;
    sluice_runtime *rt = param->rt;
    return rt->mode == SLC_IN_STEP ? slc_runtime_fail(rt, slc_pass_go_on(rt, &rt->train)) : SLUICE_OK;
}

void slc_look_ups_forget(sluice_runtime *rt)
{
    for (uint32_t p = 0; p < rt->param_count; p++) rt->params[p]->rows_set = 0;
}

sluice_status slc_look_ups_check(const sluice_runtime *rt, uint32_t micro_batch)
{
    for (uint32_t p = 0; p < rt->param_count; p++)
        if (looks_up(rt->params[p]) && rt->params[p]->rows_set <= micro_batch)
            return slc_error(SLUICE_ERR_ORDER,
                             "parameter \"%s\": which rows micro-batch %u reads is not known; call sluice_rows_set "
                             "before its first layer",
                             rt->params[p]->name, micro_batch);
    return SLUICE_OK;
}

static bool is_known(const sluice_runtime *rt, const slc_item *item)
{
    if (item->kind != SLC_ITEM_GATHER_WINDOW) return true;
    const sluice_param *param = rt->units[item->unit].looked_up;
    return !param || param->rows_set > item->micro_batch;
}

uint32_t slc_look_ups_known(const sluice_runtime *rt, const slc_program *program, const uint32_t *operations,
                            uint32_t count)
{
    uint32_t known = 0;
    while (known < count && is_known(rt, &program->items[operations[known]])) known++;
    return known;
}
