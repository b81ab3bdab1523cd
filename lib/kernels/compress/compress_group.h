/* Tensors that are exchanged together, each by the rules of compress.h: one packet for each rank carries all of them.
 *
 * The packet for rank k lies at k * stride. Inside it, tensor i has its own packet at offsets[i]; they follow each
 * other without gaps, so that small tensors cost no more bytes than their bits and scales. A tensor of count 0 has
 * none. For tensor i, slc_compress_worker and slc_compress_apply get `packets + offsets[i]` and the group's stride.
 *
 * The workers' residues of all tensors lie in one block of memory and the servers' in another, each array at a
 * multiple of 64 bytes, with bins, which for a worker are the first of a room; zeroed memory means no error. */
#pragma once

#include "lib/kernels/compress/compress.h"

typedef struct slc_compress_group {
    uint32_t count;                   /* above 0 */
    const slc_compress_shape *shapes; /* a copy that the group owns; all for the same number of ranks */
    uint64_t *offsets;                /* in bytes, [count] */
    uint64_t packet_bytes;            /* bytes that a message carries; may be 0: then there is nothing to exchange */
    uint64_t stride;                  /* bytes between packets; a multiple of 64, above 0 */
} slc_compress_group;

/* Memory of the stream's device for numbers of a tensor, from one kernel of an update to the next; it keeps nothing. */
typedef struct {
    int64_t bins[2][SLC_NORM_BINS];
    int64_t most;
    double product;
    sluice_step_words told;
} slc_compress_room;

/* Returns the room whose first bins the worker's residue has. */
static inline slc_compress_room *slc_compress_room_of(const slc_residue *worker)
{
    return (slc_compress_room *)(void *)worker->bins;
}

/* Makes a group; end it with slc_compress_group_fini, which may be called on a zeroed group and repeatedly. Errors:
 * ARGUMENT (no tensors, different numbers of ranks, slc_compress_check), MEMORY. */
sluice_status slc_compress_group_init(slc_compress_group *group, uint32_t count, const slc_compress_shape *shapes);
void slc_compress_group_fini(slc_compress_group *group);

uint64_t slc_compress_group_worker_bytes(const slc_compress_group *group);
uint64_t slc_compress_group_server_bytes(const slc_compress_group *group);

/* Finds the residues of each tensor in the given memory, which has the bytes above and is aligned to 64. Either memory
 * may be NULL; its residues are then not filled. */
void slc_compress_group_residues(const slc_compress_group *group, void *worker_memory, void *server_memory,
                                 slc_residue *workers, slc_residue *servers);
