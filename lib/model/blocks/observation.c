/* Each block has its own part of one piece of memory, which every observed micro-batch overwrites.
 * observation_test.c covers this file. */
#include "lib/model/blocks/observation.h"

#include "lib/base/status.h"

#include <stdlib.h>

static uint64_t all_bytes(const sluice_model *m)
{
    return m->config.layers * slc_observation_bytes(m);
}

sluice_status slc_observation_reserve(sluice_model *m)
{
    if (!m->observation.wanted || m->apart) return SLUICE_OK;
    return sluice_runtime_reserve(m->rt, "what blocks change", all_bytes(m));
}

sluice_status slc_observation_create(sluice_model *m)
{
    slc_observation *o = &m->observation;
    if (!o->wanted) return SLUICE_OK;
    o->each = slc_observation_bytes(m) / sizeof(float);
    o->rows = calloc(m->config.layers, sizeof *o->rows);
    if (!o->rows) return slc_error(SLUICE_ERR_MEMORY, "what blocks change");
    return slc_pinned_create(m->device, all_bytes(m), &o->memory);
}

void slc_observation_destroy(sluice_model *m)
{
    slc_pinned_destroy(&m->observation.memory);
    free(m->observation.rows);
}

float *slc_observation_take(sluice_model *m, uint32_t block)
{
    m->observation.rows[block] = m->rows;
    return (float *)m->observation.memory.base + block * m->observation.each;
}
