/* collectives_test.c covers this file. */
#include "lib/comm/lane/scratch.h"

uint64_t slc_scratch_slot_bytes(int size, uint64_t block_bytes)
{
    uint64_t part = block_bytes / (uint64_t)size;
    return (part + 63) / 64 * 64 * (uint64_t)(size - 1);
}

static uint64_t stride(const slc_comm *comm)
{
    return comm->scratch.bytes / comm->depth / 64 * 64;
}

uint64_t slc_scratch_part_bytes(const slc_comm *comm)
{
    return stride(comm) / (uint64_t)(comm->size - 1) / 64 * 64;
}

char *slc_scratch_part(const slc_comm *comm, const slc_active_op *active, uint64_t block, int peer)
{
    uint64_t place = (uint64_t)(peer < comm->rank ? peer : peer - 1);
    return comm->scratch.base + active->window[block % comm->depth].slot * stride(comm) +
           place * slc_scratch_part_bytes(comm);
}

bool slc_scratch_left(const slc_comm *comm)
{
    return comm->scratch.taken - comm->scratch.freed < comm->depth;
}

uint32_t slc_scratch_take(slc_comm *comm)
{
    return comm->scratch.taken++ % comm->depth;
}

void slc_scratch_free(slc_comm *comm, uint32_t slot)
{
    comm->scratch.idle |= 1u << slot;
    uint32_t oldest = 1u << comm->scratch.freed % comm->depth;
    while (comm->scratch.idle & oldest) {
        comm->scratch.idle &= ~oldest;
        comm->scratch.freed++;
        oldest = 1u << comm->scratch.freed % comm->depth;
    }
}
