/* The running kernel's name for itself. */
#pragma once

#include <stdbool.h>

enum { SLC_BOOT_ID_BYTES = 40 };

/* Writes what /proc/sys/kernel/random/boot_id says: a name drawn when the kernel started, so that two hosts never have
 * the same, and one host has another after each start. If it cannot be read, returns false with "". Any thread. */
bool slc_boot_id(char out[SLC_BOOT_ID_BYTES]);
