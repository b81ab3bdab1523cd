/* tests/engine/pipeline_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/plan/request.h"

#include <stdlib.h>

sluice_status slc_stages_cut_make_room(slc_stages_cut *cut, uint32_t units, uint32_t stages)
{
    cut->strategies = calloc((size_t)units + 1, sizeof *cut->strategies);
    cut->held = calloc((size_t)units + 1, sizeof *cut->held);
    cut->steps = calloc((size_t)stages + 1, sizeof *cut->steps);
    return cut->strategies && cut->held && cut->steps
               ? SLUICE_OK
               : slc_error(SLUICE_ERR_MEMORY, "strategies of %u units in %u stages", units, stages);
}

void slc_stages_cut_fini(slc_stages_cut *cut)
{
    free(cut->strategies);
    free(cut->held);
    free(cut->steps);
    cut->strategies = NULL;
    cut->held = NULL;
    cut->steps = NULL;
}
