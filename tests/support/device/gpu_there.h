/* A GPU that a test of several processes may use. */
#pragma once

#include "lib/base/status.h"
#include "lib/device/device.h"
#include "tests/support/ranks.h"

#include <stdbool.h>

static inline int opens_gpu(int rank, int size, void *context)
{
    slc_device *device;
    (void)rank, (void)size, (void)context;
    if (slc_device_open("cuda", &device)) {
        printf("SKIP: %s\n", sluice_last_error());
        return 1;
    }
    slc_device_close(device);
    return 0;
}

/* Returns true if there is a GPU. A process of its own, which may take `limit_s`, tries to open it, because a device
 * may start threads. A build with a small NCCL over an emulated GPU has ranks use that; without one a line says that
 * several ranks are skipped. */
static inline bool gpu_is_there(int limit_s)
{
    const bool there = run_ranks(1, opens_gpu, NULL, limit_s) == 0;
#if defined(SLUICE_TEST_NCCL)
    setenv("SLUICE_COMM_NCCL", SLUICE_TEST_NCCL, 1);
#else
    printf("SKIP: several ranks: this build has no small NCCL over an emulated GPU\n");
#endif
    return there;
}
