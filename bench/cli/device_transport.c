/* tests/command/gpu/several_gpus_link_test.sh covers this file. */
#include "bench/cli/device_transport.h"

#include <stdlib.h>
#include <string.h>

void slc_choose_transport(const char *device, sluice_world_config *config)
{
    if (!strcmp(device, "cuda") && !getenv("SLUICE_COMM_TRANSPORT")) config->transport = "nccl";
}
