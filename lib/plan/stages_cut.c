/* tests/engine/pipeline_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/plan/request.h"

#include <stdlib.h>

sluice_status slc_stages_cut_make_room(slc_stages_cut *cut, uint32_t units)
{
    cut->strategies = calloc((size_t)units + 1, sizeof *cut->strategies);
    cut->held = calloc((size_t)units + 1, sizeof *cut->held);
    return cut->strategies && cut->held ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "strategies of %u units", units);
}

void slc_stages_cut_fini(slc_stages_cut *cut)
{
    free(cut->strategies);
    free(cut->held);
    cut->strategies = NULL;
    cut->held = NULL;
}
