/* A checkpoint of a compressed optimizer holds more than values and states: errors and local arrays, which differ from
 * rank to rank, and the numbers of its progress. tests/checkpoint/onebit_checkpoint_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/engine/checkpoint/checkpoint.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/replan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)SLC_MANIFEST_NUMBERS_MAX >= (int)SLC_PROGRESS_MAX, "a manifest holds all numbers");
_Static_assert((int)SLC_MANIFEST_OWN_MAX >= 2 + (int)SLC_LOCAL_MAX, "a manifest holds all arrays of a rank's own");

uint32_t slc_checkpoint_own_names(const sluice_runtime *rt, const char *names[SLC_MANIFEST_OWN_MAX])
{
    uint32_t count = 0;
    if (!rt->compression.on) return 0;
    names[count++] = "error_worker";
    names[count++] = "error_server";
    for (int i = 0; i < SLC_LOCAL_MAX; i++)
        if (rt->onebit.local_name[i]) names[count++] = rt->onebit.local_name[i];
    return count;
}

uint64_t slc_checkpoint_own(const sluice_param *param, const char *name, float **data)
{
    uint64_t count = 0;
    return !param->frozen && slc_onebit_state(param, name, data, &count) ? count : 0;
}

sluice_status slc_checkpoint_own_reset(sluice_runtime *rt)
{
    const char *names[SLC_MANIFEST_OWN_MAX];
    uint32_t count = slc_checkpoint_own_names(rt, names);
    sluice_status status = rt->compression.on ? slc_onebit_reset_errors(rt) : SLUICE_OK;
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        for (uint32_t i = 2; !status && i < count; i++) {
            float *data = NULL;
            uint64_t elements = slc_checkpoint_own(rt->model.params[p], names[i], &data);
            if (elements) status = slc_fill_zero(&rt->compute, data, sizeof *data * elements);
        }
    return status ? status : slc_stream_synchronize(&rt->compute);
}

/* Returns true if any step has left a parameter out. */
static bool has_missed(const sluice_runtime *rt)
{
    bool any = false;
    for (uint32_t p = 0; p < rt->model.param_count; p++) any |= rt->model.params[p]->missed > 0;
    return any;
}

void slc_checkpoint_progress_save(const sluice_runtime *rt, slc_manifest *out)
{
    const slc_compressed *o = &rt->onebit;
    double values[SLC_PROGRESS_MAX];
    if (!rt->compression.on) return;
    o->progress_save(o->context, SLC_NONE, values);
    out->progress_count = o->progress_count;
    for (uint32_t i = 0; i < o->progress_count; i++)
        out->progress[i] = (slc_manifest_number){(char *)o->progress_name[i], values[i]};
    out->number_count = o->parameter_progress_count - (has_missed(rt) ? 0 : o->counted_progress_count);
    for (uint32_t i = 0; i < out->number_count; i++) out->number_names[i] = (char *)o->parameter_progress_name[i];
    for (uint32_t p = 0; o->parameter_progress_count && p < rt->model.param_count; p++)
        if (!rt->model.params[p]->frozen) o->progress_save(o->context, p, out->params[p].numbers);
}

sluice_status slc_checkpoint_progress_join(sluice_runtime *rt, slc_manifest *out)
{
    const size_t each = out->number_count, count = each * rt->model.param_count;
    if (!slc_is_stage(&rt->stage) || !each) return SLUICE_OK;
    double *own = calloc(count, sizeof *own), *all = calloc(count * (size_t)rt->size, sizeof *all);
    sluice_status status =
        own && all
            ? SLUICE_OK
            : slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "numbers of %u parameters", rt->model.param_count));
    for (uint32_t p = 0; !status && p < rt->model.param_count; p++)
        memcpy(own + p * each, out->params[p].numbers, each * sizeof *own);
    if (!status) status = sluice_world_all_gather(rt->world, own, count * sizeof *own, all);
    for (uint32_t p = 0; !status && p < rt->model.param_count; p++) {
        const size_t holder = (size_t)rt->model.params[p]->holder * (size_t)rt->replicas;
        memcpy(out->params[p].numbers, all + holder * count + p * each, each * sizeof *own);
    }
    free(own);
    free(all);
    return status;
}

static sluice_status other_numbers(const sluice_runtime *rt)
{
    return slc_error(SLUICE_ERR_FORMAT, "$.progress or $.numbers: optimizer %s keeps other numbers",
                     rt->optimizer.name);
}

static sluice_status check_names(const sluice_runtime *rt, const slc_manifest *from)
{
    const slc_compressed *o = &rt->onebit;
    uint32_t job = rt->compression.on ? o->progress_count : 0,
             each = rt->compression.on ? o->parameter_progress_count : 0;
    uint32_t counted = each ? o->counted_progress_count : 0;
    if (from->progress_count != job || (from->number_count != each && from->number_count != each - counted))
        return other_numbers(rt);
    for (uint32_t i = 0; i < job; i++)
        if (strcmp(from->progress[i].name, o->progress_name[i])) return other_numbers(rt);
    for (uint32_t i = 0; i < from->number_count; i++)
        if (strcmp(from->number_names[i], o->parameter_progress_name[i])) return other_numbers(rt);
    return SLUICE_OK;
}

/* Gives the optimizer the job's numbers and then those of each parameter: takes them, or only says whether it would. */
static sluice_status give_numbers(sluice_runtime *rt, const slc_manifest *from, sluice_param *const *params, bool take)
{
    const slc_compressed *o = &rt->onebit;
    double job[SLC_PROGRESS_MAX] = {0}, values[SLC_PROGRESS_MAX] = {0};
    for (uint32_t i = 0; i < from->progress_count; i++) job[i] = from->progress[i].value;
    sluice_status status =
        take ? o->progress_load(o->context, SLC_NONE, job) : o->progress_check(o->context, job, SLC_NONE, job);
    for (uint32_t p = 0; !status && o->parameter_progress_count && p < from->param_count; p++) {
        if (params[p]->frozen) continue;
        for (uint32_t i = 0; i < o->parameter_progress_count; i++)
            values[i] = i < from->number_count ? from->params[p].numbers[i] : NAN;
        status = take ? o->progress_load(o->context, params[p]->number, values)
                      : o->progress_check(o->context, job, params[p]->number, values);
    }
    return status;
}

sluice_status slc_checkpoint_progress_check(sluice_runtime *rt, const slc_manifest *from, sluice_param *const *params)
{
    sluice_status status = check_names(rt, from);
    if (status || !rt->compression.on) return status;
    status = give_numbers(rt, from, params, false);
    if (status != SLUICE_ERR_ARGUMENT) return status;
    return slc_error(SLUICE_ERR_FORMAT, "$.progress or $.numbers: %s", sluice_last_error());
}

sluice_status slc_checkpoint_progress_load(sluice_runtime *rt, const slc_manifest *from, sluice_param *const *params)
{
    if (!rt->compression.on) return SLUICE_OK;
    sluice_status status = give_numbers(rt, from, params, true);
    slc_phase_join_replicas(rt);
    return status ? status : slc_phase_follow(rt);
}
