/* The transforms that the user asked for, the same for all communicators of the process. Private to plugins/nccl/shim.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t fuse, compress; /* bytes; 0: off */
    uint64_t staging;        /* bytes of device memory for all communicators of a GPU */
    unsigned compress_after; /* all-reduces of a communicator that are sent whole before the first compressed one */
    bool unusable;           /* one of them was refused: this process tells the other ranks so */
} slc_shim_transforms_settings;

/* Reads the settings; a process does so once, before it has communicators, and again after a fork. */
const slc_shim_transforms_settings *slc_shim_transforms_read(void);

/* Returns the settings as they were last read. */
const slc_shim_transforms_settings *slc_shim_transforms_asked(void);
