/* The numbers of NVIDIA's own header, for nccl_abi_test.c. Our header comes after it: it then declares every function
 * again with NVIDIA's types, and the compiler refuses a prototype that differs. nccl_abi_test.c covers this file. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nccl.h>
/* The parts of the device interface that are included here are C; those about the network are C++ and would come with
 * gin.h. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#define _NCCL_DEVICE_GIN_SESSION_H_
#define _NCCL_DEVICE_GIN_H_
#define _NCCL_DEVICE_GIN__TYPES_H_
#include <nccl_device/core.h>
#include <nccl_device/impl/core__types.h>
#include <nccl_device/impl/lsa_barrier__types.h>
#include <nccl_device/impl/gin_barrier__types.h>
#include <nccl_device/impl/ll_a2a__types.h>
#pragma GCC diagnostic pop

#include "plugins/nccl/nccl_abi.h"
#include "plugins/nccl/abi_numbers.h"

#include <string.h>

const abi_number abi_theirs[] = {ABI_NUMBERS};
const size_t abi_theirs_count = sizeof abi_theirs / sizeof *abi_theirs;

void abi_theirs_initial(abi_initial *out)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    memcpy(out->config, &config, sizeof config);
    memcpy(out->info, &info, sizeof info);
}
