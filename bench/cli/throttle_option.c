/* Parses both parts of a throttle. tests/command/mistakes_test.sh covers this file. */
#include "bench/cli/throttle_option.h"

#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

sluice_status slc_throttle_check(const char *text)
{
    double value;
    if (!*text) return SLUICE_OK;
    char *copy = strdup(text);
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "--throttle");
    char *latency = strchr(copy, ',');
    if (latency) *latency++ = 0;
    sluice_status status = slc_parse_bandwidth(copy, &value);
    if (!status && latency) status = slc_parse_seconds(latency, &value);
    free(copy);
    return slc_error_context(status, "--throttle");
}
