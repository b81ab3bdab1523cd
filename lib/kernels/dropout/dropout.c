/* The check of dropout settings that all kernels with dropout share. */
#include "lib/kernels/dropout/dropout.h"

#include "lib/base/status.h"

sluice_status slc_dropout_check(const slc_dropout *dropout, const char *kernel)
{
    if (!dropout || (dropout->probability >= 0 && dropout->probability <= 65535.0f / 65536)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "kernel %s: drops with probability %g; give one from 0 to 65535/65536",
                     kernel, (double)dropout->probability);
}
