/* The numbers of a compressed optimizer's progress, read and written by name.
 * tests/onebit/onebit_engine_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/drain.h"

#include <string.h>

typedef struct {
    uint32_t parameter, index, count;
    double values[SLC_PROGRESS_MAX];
} progress;

static sluice_status no_such_number(const sluice_runtime *rt, const sluice_param *param, const char *name,
                                    const char *call)
{
    const slc_compressed *o = &rt->onebit;
    const char *const *list = param ? o->parameter_progress_name : o->progress_name;
    const uint32_t count = param ? o->parameter_progress_count : o->progress_count;
    char names[256] = "";
    for (uint32_t i = 0; i < count; i++) slc_append_name(names, sizeof names, list[i]);
    return slc_error(SLUICE_ERR_ARGUMENT, "%s: optimizer %s keeps no number \"%s\" of a %s; it keeps %s", call,
                     rt->optimizer.name, name, param ? "parameter" : "job", *names ? names : "none");
}

/* Finds the numbers of the job, or of a parameter, and which of them has the name. */
static sluice_status find_progress(sluice_runtime *rt, const sluice_param *param, const char *name, const char *call,
                                   progress *out)
{
    sluice_status status = slc_runtime_require(rt, true, call);
    if (status) return status;
    if (rt->mode != SLC_IDLE) return slc_error(SLUICE_ERR_ORDER, "%s: must be called between steps", call);
    if (param && (param->rt != rt || param->frozen))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: \"%s\" is not trained by this runtime", call, param->name);
    const slc_compressed *o = &rt->onebit;
    *out = (progress){.parameter = param ? param->number : SLC_NONE,
                      .count = param ? o->parameter_progress_count : o->progress_count};
    const char *const *names = param ? o->parameter_progress_name : o->progress_name;
    while (out->index < out->count && strcmp(names[out->index], name)) out->index++;
    if (out->index == out->count) return no_such_number(rt, param, name, call);
    status = slc_runtime_drain(rt);
    if (!status) o->progress_save(o->context, out->parameter, out->values);
    return status;
}

sluice_status sluice_runtime_progress_read(sluice_runtime *rt, const sluice_param *param, const char *name,
                                           double *value)
{
    progress all;
    if (!name || !value) return slc_error(SLUICE_ERR_ARGUMENT, "progress_read: a name and a result are needed");
    sluice_status status = find_progress(rt, param, name, "progress_read", &all);
    if (!status) *value = all.values[all.index];
    return status;
}

sluice_status sluice_runtime_progress_write(sluice_runtime *rt, const sluice_param *param, const char *name,
                                            double value)
{
    progress all;
    if (!name) return slc_error(SLUICE_ERR_ARGUMENT, "progress_write: a name is needed");
    sluice_status status = find_progress(rt, param, name, "progress_write", &all);
    if (status) return status;
    all.values[all.index] = value;
    status = rt->onebit.progress_load(rt->onebit.context, all.parameter, all.values);
    return status ? status : slc_phase_follow(rt);
}
