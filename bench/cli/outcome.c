/* Joins the error lines of outputs. tests/command/output_test.sh covers this file. */
#include "bench/cli/outcome.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <string.h>

void slc_outcome_add(slc_outcome *outcome, sluice_status status)
{
    if (!status) return;
    size_t used = strlen(outcome->why);
    snprintf(outcome->why + used, sizeof outcome->why - used, "%s%s", used ? "; " : "", sluice_last_error());
    if (!outcome->status) outcome->status = status;
}

sluice_status slc_outcome_status(const slc_outcome *outcome)
{
    return outcome->status ? slc_error(outcome->status, "%s", outcome->why) : SLUICE_OK;
}
