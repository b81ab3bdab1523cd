/* sched/schedulers/schedulers_test.c covers this file. */
#include "sched/order/layer_users.h"

#include <stdlib.h>

static bool is_repeated(const slc_unit *unit, uint32_t use)
{
    for (uint32_t i = 0; i < use; i++)
        if (unit->uses[i].layer == unit->uses[use].layer) return true;
    return false;
}

static void list_units(slc_layer_users *out, const slc_job *job)
{
    uint32_t *first = out->first;
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t i = 0; i < job->units[u].use_count; i++)
            if (!is_repeated(&job->units[u], i)) first[job->units[u].uses[i].layer + 2]++;
    for (uint32_t l = 0; l < job->layer_count; l++) first[l + 2] += first[l + 1];
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t i = 0; i < job->units[u].use_count; i++)
            if (!is_repeated(&job->units[u], i)) out->units[first[job->units[u].uses[i].layer + 1]++] = u;
}

bool slc_layer_users_init(slc_layer_users *out, const slc_job *job)
{
    size_t uses = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) uses += job->units[u].use_count;
    *out = (slc_layer_users){.units = malloc((uses + 1) * sizeof *out->units),
                             .first = calloc((size_t)job->layer_count + 2, sizeof *out->first)};
    if (!out->units || !out->first) {
        slc_layer_users_fini(out);
        return false;
    }
    list_units(out, job);
    return true;
}

void slc_layer_users_fini(slc_layer_users *users)
{
    free(users->units);
    free(users->first);
    *users = (slc_layer_users){0};
}
