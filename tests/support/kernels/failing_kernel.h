/* Kernels that fail when they are told to. The linker puts a function in the place of the check that every
 * kernel of the host begins with (--wrap=slc_host_check). */
#pragma once

#include "lib/device/device.h"

#include <sluice/status.h>
#include <stdint.h>

sluice_status __wrap_slc_host_check(const sluice_stream *stream, const char *kernel);

static const sluice_status planted = SLUICE_ERR_SYSTEM; /* what a kernel fails with that was told to */

/* From now on call number `at` fails, counted from 1 over all threads; 0: none. Returns how many there were since the
 * last time. */
uint32_t plant(uint32_t at);

/* The name of the kernel that has failed since then, or NULL. */
const char *kernel_that_failed(void);
