/* Pinned memory, and how much of it the process has. streams_test.c covers this file. */
#include "lib/device/device.h"
#include "lib/device/ops.h"

#include <stdatomic.h>

static atomic_uint_least64_t pinned_bytes; /* of devices that run ahead */

sluice_status slc_pinned_create(slc_device *device, size_t bytes, slc_pinned *out)
{
    *out = (slc_pinned){.bytes = bytes, .device = device};
    sluice_status status = device->ops->pinned_create(device, bytes, &out->base);
    if (status) *out = (slc_pinned){0};
    if (device->ops->kind != SLC_DEVICE_HOST) atomic_fetch_add(&pinned_bytes, out->bytes);
    return status;
}

void slc_pinned_destroy(slc_pinned *pinned)
{
    if (pinned->device) pinned->device->ops->pinned_destroy(pinned->device, pinned->base);
    if (pinned->device && pinned->device->ops->kind != SLC_DEVICE_HOST) atomic_fetch_sub(&pinned_bytes, pinned->bytes);
    *pinned = (slc_pinned){0};
}

uint64_t slc_pinned_bytes(void)
{
    return atomic_load(&pinned_bytes);
}
