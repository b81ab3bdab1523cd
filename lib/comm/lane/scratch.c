/* The scratch into which blocks' messages arrive: `depth` slots of equal length, each with an equal part for every
 * peer, in rank order. Slots are taken in order, and a slot counts as free only when all that were taken before it are.
 */
#include "lib/comm/lane/lane.h"

uint64_t slc_scratch_slot_bytes(int size, uint64_t block_bytes)
{
    uint64_t part = block_bytes / (uint64_t)size;
    return (part + 63) / 64 * 64 * (uint64_t)(size - 1);
}

static uint64_t stride(const slc_comm *comm)
{
    return comm->scratch_bytes / comm->depth / 64 * 64;
}

uint64_t slc_scratch_part_bytes(const slc_comm *comm)
{
    return stride(comm) / (uint64_t)(comm->size - 1) / 64 * 64;
}

char *slc_scratch_part(const slc_comm *comm, const slc_active_op *run, uint64_t block, int peer)
{
    uint64_t place = (uint64_t)(peer < comm->rank ? peer : peer - 1);
    return comm->scratch + run->window[block % comm->depth].slot * stride(comm) + place * slc_scratch_part_bytes(comm);
}

bool slc_scratch_left(const slc_comm *comm)
{
    return comm->scratch_taken - comm->scratch_freed < comm->depth;
}

uint32_t slc_scratch_take(slc_comm *comm)
{
    return comm->scratch_taken++ % comm->depth;
}

void slc_scratch_free(slc_comm *comm, uint32_t slot)
{
    comm->scratch_idle |= 1u << slot;
    uint32_t oldest = 1u << comm->scratch_freed % comm->depth;
    while (comm->scratch_idle & oldest) {
        comm->scratch_idle &= ~oldest;
        comm->scratch_freed++;
        oldest = 1u << comm->scratch_freed % comm->depth;
    }
}
