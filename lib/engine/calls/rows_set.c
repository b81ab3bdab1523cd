/* Takes the caller's word, before each micro-batch, which rows of a parameter it reads.
 * tests/engine/engine_rows_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/engine/rows/look_up.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/pass.h"
#include "lib/engine/step/messages.h"
#include "lib/engine/stages/stage_evaluation.h"
#include "lib/engine/step/stage_rows.h"

#include <string.h>

/* Returns true if the first slot of a micro-batch is next, and sets *micro_batch to its number. In evaluation each pass
 * is a micro-batch. */
static bool between_micro_batches(const sluice_runtime *rt, uint32_t *micro_batch)
{
    const slc_pass *pass = &rt->train;
    *micro_batch = 0;
    if (rt->mode == SLC_IN_EVALUATION) return rt->at.cursor == rt->evaluate.slot_count;
    if (rt->mode != SLC_IN_STEP || rt->at.cursor >= pass->slot_count || rt->at.state != SLC_BETWEEN_SLOTS) return false;
    const slc_item *next = &pass->program->items[pass->slots[rt->at.cursor]];
    *micro_batch = slc_step_ordinal(&rt->steps[pass->parity], rt->job.micro_batches, next->micro_batch);
    return next->slot == 0;
}

/* In a pipeline the rows of a step's micro-batches are set one after another, before its first slot. */
static sluice_status check_time_in_stage(const sluice_param *param)
{
    const sluice_runtime *rt = param->rt;
    if (rt->mode == SLC_IN_EVALUATION && rt->at.cursor == rt->evaluate.slot_count && !param->rows_set) return SLUICE_OK;
    if (rt->mode == SLC_IN_STEP && !rt->at.cursor && rt->at.state == SLC_BETWEEN_SLOTS &&
        param->rows_set < rt->job.micro_batches)
        return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_ORDER,
        "rows_set of \"%s\": in a pipeline it must be called for each of the %u micro-batches of a step, on "
        "every rank, before the step's first slot",
        param->name, rt->job.micro_batches);
}

static sluice_status check_time(const sluice_param *param)
{
    uint32_t micro_batch;
    if (slc_is_stage(&param->rt->stage)) return check_time_in_stage(param);
    if (!between_micro_batches(param->rt, &micro_batch))
        return slc_error(SLUICE_ERR_ORDER,
                         "rows_set of \"%s\": must be called before a micro-batch: after step_begin or "
                         "evaluate_begin, or after the last slot of the one before",
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

/* A parameter that is not split has one gradient for all uses, so a row's place is its number. */
static bool set_rows(sluice_param *param, const int32_t *rows, uint64_t count, int32_t *places)
{
    uint64_t row_count = param->count / param->row_elements;
    if (param == param->rt->stage.rows.param) return slc_stage_rows_set(param->rt, rows, count, places);
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
    if (!param->row_elements)
        return slc_error(SLUICE_ERR_ARGUMENT, "rows_set of \"%s\": it was added without row_elements", param->name);
    status = check_time(param);
    if (!status) status = check_rows(param, rows, count, places);
    const bool evaluated = slc_is_stage(&param->rt->stage) && param->rt->mode == SLC_IN_EVALUATION;
    if (!status && evaluated) status = slc_stage_messages_finish(param->rt); /* which still read the last rows */
    if (status) return status;
    if (!set_rows(param, rows, count, places)) return too_many(param);
    param->rows_set++;
    sluice_runtime *rt = param->rt;
    if (evaluated) return slc_runtime_fail(rt, slc_stage_evaluation_rows(rt));
    return rt->mode == SLC_IN_STEP ? slc_runtime_fail(rt, slc_pass_go_on(rt, &rt->train)) : SLUICE_OK;
}
