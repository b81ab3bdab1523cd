/* The arrays that a rank has for itself next to the optimizer's states, found by name: residues and local arrays.
 * tests/onebit/optimizer_names_test.c covers this file. */
#include "lib/engine/onebit/onebit.h"
#include "lib/engine/runtime.h"
#include "lib/plan/strategy_table.h"

#include <stdio.h>
#include <string.h>

/* The place of a parameter in its unit: which tensor it is, and how many elements come before it if tensors are
 * exchanged as one. */
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
    uint32_t tensor = param->rt->compression.fuses ? 0 : at.index;
    const slc_compress_shape *shape = &onebit->all.group.shapes[tensor];
    uint64_t padded = slc_compress_chunk(shape) * shape->ranks, before = param->rt->compression.fuses ? at.before : 0;
    bool to_the_end = !param->rt->compression.fuses || at.last;
    if (data) slc_compress_fold(&param->rt->compute, shape, shape->ranks, &onebit->all.workers[tensor]);
    if (data) *data = onebit->all.workers[tensor].sum + before;
    *count = to_the_end ? padded - before : param->count;
}

/* Finds a parameter's part of this rank's error as a server. If tensors are exchanged as one, the first parameter has
 * all of it, and the others have none. */
static void server_error(const sluice_param *param, const slc_onebit *onebit, float **data, uint64_t *count)
{
    uint32_t index = find_position(param).index, tensor = param->rt->compression.fuses ? 0 : index;
    const slc_compress_shape *shape = &onebit->all.group.shapes[tensor];
    if (data) slc_compress_fold(&param->rt->compute, shape, 1, &onebit->all.servers[tensor]);
    if (data) *data = onebit->all.servers[tensor].sum;
    *count = index == tensor ? slc_compress_chunk(shape) : 0;
}

/* Finds a parameter's part of a local array. If tensors are exchanged as one, the last parameter's part goes on to the
 * end of the padding. */
static void local_array(const sluice_param *param, const slc_onebit *onebit, int i, float **data, uint64_t *count)
{
    position at = find_position(param);
    if (data) *data = onebit->all.parts[i][at.index];
    *count = param->rt->compression.fuses && at.last ? onebit->all.group.shapes[0].count - at.before : param->count;
}

bool slc_onebit_state(const sluice_param *param, const char *name, float **data, uint64_t *count)
{
    const sluice_runtime *rt = param->rt;
    if (param->unit == SLC_NONE) return false; /* another stage keeps it */
    const slc_onebit *onebit = rt->units[param->unit].onebit;
    if (!onebit || !slc_exchanges(rt->units[param->unit].strategy)) return false;
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

void slc_append_name(char *names, size_t size, const char *name)
{
    const size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", used ? ", " : "", name);
}
