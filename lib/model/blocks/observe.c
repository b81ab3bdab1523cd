/* The public calls of observing a model. observation_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/model/batch/micro_batch.h"
#include "lib/model/model.h"

#include <math.h>

static sluice_status not_made(const char *call)
{
    return slc_error(SLUICE_ERR_UNSUPPORTED,
                     "%s: the model was not made to be observed; set "
                     "sluice_model_options.observe",
                     call);
}

sluice_status sluice_model_observe(sluice_model *m, bool on)
{
    if (!m) return slc_model_lacks("model_observe", "model");
    if (!m->observation.wanted) return not_made("model_observe");
    m->observation.on = on;
    return SLUICE_OK;
}

sluice_status sluice_model_observed(sluice_model *m, uint32_t block, double *norm_ratio, double *cosine)
{
    if (!m || !norm_ratio || !cosine) return slc_model_lacks("model_observed", m ? "place for the result" : "model");
    if (!m->observation.wanted) return not_made("model_observed");
    if (block >= m->config.layers)
        return slc_error(SLUICE_ERR_ARGUMENT, "model_observed: block %u of %u, counted from 0", block,
                         m->config.layers);
    sluice_status status = slc_micro_batch_wait(m->memory);
    const float *row = (const float *)m->observation.memory.base + block * m->observation.each;
    const uint64_t rows = m->observation.rows[block];
    *norm_ratio = *cosine = 0;
    for (uint64_t i = 0; !status && i < rows; i++) *norm_ratio += (double)row[2 * i], *cosine += (double)row[2 * i + 1];
    *norm_ratio = rows ? *norm_ratio / (double)rows : (double)NAN;
    *cosine = rows ? *cosine / (double)rows : (double)NAN;
    return status;
}
