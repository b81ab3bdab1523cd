/* Cuts as the user writes them. pipeline_plan_test.c covers this file. */
#include "sched/pipeline/pipeline_plan.h"

#include "lib/base/status.h"

#include <string.h>

static bool find_layer(const slc_job *job, const char *name, size_t length, uint32_t *out)
{
    for (uint32_t l = 0; l < job->layer_count; l++)
        if (strlen(job->layers[l]) == length && !memcmp(job->layers[l], name, length)) {
            *out = l;
            return true;
        }
    return false;
}

/* One layer, which must come after the one before it. */
static sluice_status take_layer(const slc_job *job, const char *name, size_t length, uint32_t before, uint32_t *out)
{
    if (!find_layer(job, name, length, out))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "no layer is called \"%.*s\"; the first layers of further stages are %s to %s", (int)length,
                         name, job->layers[job->layer_count > 1], job->layers[job->layer_count - 1]);
    if (*out > before) return SLUICE_OK;
    if (before + 1 < job->layer_count)
        return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\" does not come after \"%s\"; from \"%s\" on every layer does",
                         job->layers[*out], job->layers[before], job->layers[before + 1]);
    return slc_error(SLUICE_ERR_ARGUMENT, "\"%s\" does not come after \"%s\", which is the last layer",
                     job->layers[*out], job->layers[before]);
}

sluice_status slc_pipeline_cuts_read(const slc_job *job, const char *text, uint32_t pieces, uint32_t *first_layer)
{
    uint32_t count = 1;
    for (const char *c = text; *c; c++) count += *c == ',';
    count += *text != 0;
    if (count != pieces)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "\"%s\" has %u name%s; %u pieces of the model need %u, the first layer of each piece but the "
                         "first",
                         text, count - 1, count == 2 ? "" : "s", pieces, pieces - 1);
    first_layer[0] = 0;
    for (uint32_t p = 1; p < pieces; p++) {
        const size_t length = strcspn(text, ",");
        sluice_status status = take_layer(job, text, length, first_layer[p - 1], &first_layer[p]);
        if (status) return status;
        text += length + (text[length] == ',');
    }
    return SLUICE_OK;
}
