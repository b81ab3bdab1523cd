/* The device of a test that needs the host's: opened before a group of tests and closed after it. */
#pragma once

#include "lib/device/device.h"

static slc_device *device;

static inline int open_device(void **state)
{
    (void)state;
    return slc_device_open("cpu", &device);
}

static inline int close_device(void **state)
{
    (void)state;
    slc_device_close(device);
    return 0;
}
