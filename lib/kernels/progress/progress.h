/* Writes a number once all work before it in the stream is done, so that the host can read how far a device has come,
 * even after the device has failed. */
#pragma once

#include "lib/kernels/kernel.h"

/* `word` lies in pinned memory (slc_pinned_create); the host may read it at any time. */
sluice_status slc_progress(sluice_stream *stream, uint64_t *word, uint64_t number);

SLC_DEVICE_DECLARE(slc_progress);
