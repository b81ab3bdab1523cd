/* lib/plan/json/plan_json_test.c covers this file. */
#include "lib/plan/effort/cancel.h"

#include "lib/base/status.h"

sluice_status slc_cancel_check(const slc_cancel *cancel)
{
    return slc_cancelled(cancel) ? slc_error(SLUICE_ERR_INTERRUPTED, "planning was cancelled") : SLUICE_OK;
}
