/* Tensors that are exchanged together, each by the rules of compress.h: one packet for a rank carries all of them.
 *
 * The packet for rank k lies at k * stride. In it tensor i has its own packet at offsets[i], one behind the other with
 * nothing between, so that small tensors cost no more bytes than their bits and scales; a tensor of count 0 has none.
 * slc_compress_worker and slc_compress_apply of tensor i get `packets + offsets[i]` and the group's stride.
 *
 * The residues of all tensors lie in one block of memory for the worker's and one for the server's, each array at a
 * multiple of 64 bytes; zeroed memory is no error. */
#ifndef SLC_KERNEL_COMPRESS_GROUP_H
#define SLC_KERNEL_COMPRESS_GROUP_H

#include "lib/kernels/compress/compress.h"

typedef struct slc_compress_group {
    uint32_t count;                   /* above 0 */
    const slc_compress_shape *shapes; /* a copy; all for the same number of ranks */
    uint64_t *offsets;                /* bytes */
    uint64_t packet_bytes;            /* that a message carries; may be 0: then there is nothing to exchange */
    uint64_t stride;                  /* between packets; a multiple of 64, above 0 */
} slc_compress_group;

/* Ended with slc_compress_group_fini, which may be called on a zeroed group and again. Errors: ARGUMENT (no tensors,
 * not all for the same number of ranks, slc_compress_check), MEMORY. */
sluice_status slc_compress_group_init(slc_compress_group *group, uint32_t count, const slc_compress_shape *shapes);
void slc_compress_group_fini(slc_compress_group *group);

uint64_t slc_compress_group_worker_bytes(const slc_compress_group *group);
uint64_t slc_compress_group_server_bytes(const slc_compress_group *group);

/* Finds the residues of each tensor in memory of so many bytes, aligned to 64. Either memory may be NULL: its residues
 * are not looked for. */
void slc_compress_group_residues(const slc_compress_group *group, void *worker_memory, void *server_memory,
                                 slc_residue *workers, slc_residue *servers);

#endif
