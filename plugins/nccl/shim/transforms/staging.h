/* The device memory that fusing and compressing work in: SLUICE_SHIM_STAGING bytes on each GPU of the process,
 * allocated for the first communicator there and freed after the last one. Each communicator has a share. Private to
 * plugins/nccl/shim. Any thread. */
#pragma once

#include "plugins/nccl/shim/transforms/device.h"

enum { SLC_SHIM_STAGING_UNIT = 256 };

/* A communicator's share; all zero: none. Its holder does not move it. */
typedef struct slc_shim_staging_share {
    const slc_shim_gpu *gpu;
    slc_shim_cu_address memory;
    uint64_t begin, bytes; /* in the GPU's staging; multiples of SLC_SHIM_STAGING_UNIT */
    uint64_t peak;         /* bytes that were in use at once */
    struct slc_shim_staging_share *next;
} slc_shim_staging_share;

/* Takes half of what is free in one piece, so that something is left for later communicators; no bytes if nothing is
 * left. `limit` bytes are allocated if the GPU has none yet. In the GPU's context. */
sluice_status slc_shim_staging_take(const slc_shim_gpu *gpu, uint64_t limit, slc_shim_staging_share *share);

/* Gives back the part of the share beyond its first `bytes` bytes. */
void slc_shim_staging_shrink(slc_shim_staging_share *share, uint64_t bytes);

/* Gives a share back. Nothing may work on its memory any more. The GPU's memory stays allocated. */
void slc_shim_staging_give(slc_shim_staging_share *share);

/* Frees the GPU's memory if no communicator has a share of it. In the GPU's context; it may wait for all that runs
 * on the GPU, so that nobody calls it while other ranks wait for this one. */
void slc_shim_staging_free_unused(const slc_shim_gpu *gpu);

/* Notes that so many bytes of a share are in use. Returns what shares of its GPU had in use, at most; 0: no more than
 * before. */
uint64_t slc_shim_staging_note(slc_shim_staging_share *share, uint64_t used);

/* Called in a forked process: nothing is allocated there. */
void slc_shim_staging_child(void);
