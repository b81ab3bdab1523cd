/* Parameters of which the layer that adds them reads some rows only: the caller says which before each micro-batch. */
#include "lib/engine/row_lists.h"
#include "lib/engine/runtime.h"

#include "lib/base/status.h"

#include <string.h>

static bool looks_up(const sluice_param *param)
{
    return param->row_elements > 0;
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

sluice_status sluice_rows_set(sluice_param *param, const int32_t *rows, uint64_t count, int32_t *places)
{
    sluice_status status = slc_runtime_require(param ? param->rt : NULL, true, "rows_set");
    if (status) return status;
    if (!looks_up(param))
        return slc_error(SLUICE_ERR_ARGUMENT, "rows_set of \"%s\": it was added without row_elements", param->name);
    status = check_time(param);
    if (!status) status = check_rows(param, rows, count, places);
    if (status) return status;
    uint64_t row_count = param->count / param->row_elements;
    if (!slc_row_list_make(param->marks, row_count, rows, count, param->most_rows, NULL, NULL)) return too_many(param);
    if (count) memmove(places, rows, count * sizeof *rows);
    param->rows_set++;
    return SLUICE_OK;
}

void slc_rows_forget(sluice_runtime *rt)
{
    for (uint32_t p = 0; p < rt->param_count; p++) rt->params[p]->rows_set = 0;
}

sluice_status slc_rows_check(const sluice_runtime *rt, uint32_t micro_batch)
{
    for (uint32_t p = 0; p < rt->param_count; p++)
        if (looks_up(rt->params[p]) && rt->params[p]->rows_set <= micro_batch)
            return slc_error(SLUICE_ERR_ORDER,
                             "parameter \"%s\": which rows micro-batch %u reads is not known; call sluice_rows_set "
                             "before its first layer",
                             rt->params[p]->name, micro_batch);
    return SLUICE_OK;
}
