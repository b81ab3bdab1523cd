/* What a compressed optimizer keeps beside its states, read and written by name: residues and arrays of each rank's
 * own, and the numbers of its progress. */
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/onebit/phase.h"

#include "lib/base/status.h"

#include <string.h>

/* ---- Arrays of each rank's own ---- */

/* Where a parameter stands in its unit: which tensor, and what lies before it where tensors are exchanged as one. */
typedef struct {
    uint32_t index;
    uint64_t before;
    bool last;
} position;

static position find_position(const sluice_param *param)
{
    const slc_unit_state *unit = &param->rt->units[param->unit];
    position at = {0};
    while (unit->params[at.index] != param) at.before += unit->params[at.index++]->count;
    at.last = at.index + 1 == unit->param_count;
    return at;
}

static void worker_error(const sluice_param *param, const slc_onebit *onebit, float **data, uint64_t *count)
{
    position at = find_position(param);
    uint32_t tensor = param->rt->fuses ? 0 : at.index;
    const slc_compress_shape *shape = &onebit->group.shapes[tensor];
    uint64_t padded = slc_compress_chunk(shape) * shape->ranks, before = param->rt->fuses ? at.before : 0;
    bool to_the_end = !param->rt->fuses || at.last;
    if (data) slc_compress_fold(&param->rt->compute, shape, shape->ranks, &onebit->workers[tensor]);
    if (data) *data = onebit->workers[tensor].sum + before;
    *count = to_the_end ? padded - before : param->count;
}

/* Of tensors that are exchanged as one, all of it is the first one's. */
static void server_error(const sluice_param *param, const slc_onebit *onebit, float **data, uint64_t *count)
{
    uint32_t index = find_position(param).index, tensor = param->rt->fuses ? 0 : index;
    const slc_compress_shape *shape = &onebit->group.shapes[tensor];
    if (data) slc_compress_fold(&param->rt->compute, shape, 1, &onebit->servers[tensor]);
    if (data) *data = onebit->servers[tensor].sum;
    *count = index == tensor ? slc_compress_chunk(shape) : 0;
}

/* Where tensors are exchanged as one, the last one's goes on to the end of the padding. */
static void local_array(const sluice_param *param, const slc_onebit *onebit, int i, float **data, uint64_t *count)
{
    position at = find_position(param);
    if (data) *data = onebit->parts[i][at.index];
    *count = param->rt->fuses && at.last ? onebit->group.shapes[0].count - at.before : param->count;
}

bool slc_onebit_state(const sluice_param *param, const char *name, float **data, uint64_t *count)
{
    const sluice_runtime *rt = param->rt;
    const slc_onebit *onebit = rt->units[param->unit].onebit;
    if (!onebit || rt->units[param->unit].strategy != SLC_ONEBIT) return false;
    if (!strcmp(name, "error_worker")) {
        worker_error(param, onebit, data, count);
        return true;
    }
    if (!strcmp(name, "error_server")) {
        server_error(param, onebit, data, count);
        return true;
    }
    for (int i = 0; i < SLC_LOCAL_MAX; i++) {
        if (!rt->onebit.local_name[i] || strcmp(name, rt->onebit.local_name[i]) || !onebit->local[i]) continue;
        local_array(param, onebit, i, data, count);
        return true;
    }
    return false;
}

uint32_t slc_onebit_state_names(const sluice_param *param, const char *names[SLC_ONEBIT_STATES_MAX])
{
    const char *all[SLC_ONEBIT_STATES_MAX] = {"error_worker", "error_server"};
    uint64_t elements;
    uint32_t count = 0;
    for (int i = 0; i < SLC_LOCAL_MAX; i++) all[2 + i] = param->rt->onebit.local_name[i];
    for (int i = 0; i < SLC_ONEBIT_STATES_MAX; i++)
        if (all[i] && slc_onebit_state(param, all[i], NULL, &elements)) names[count++] = all[i];
    return count;
}

/* ---- Progress ---- */

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

/* All the numbers of which one is named. */
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
