/* The transport that ranks with this device use if nobody has chosen one. */
#pragma once

#include <sluice/world.h>

/* Sets the transport nccl for the device "cuda", unless SLUICE_COMM_TRANSPORT says something; else `config` stays as it
 * is. */
void slc_choose_transport(const char *device, sluice_world_config *config);
