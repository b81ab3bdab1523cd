/* A signature sums up in one number what an operation moves, and where. Ranks compare signatures to see whether they
 * submitted the same operations. collectives_test.c covers this file. */
#include "lib/comm/lane/signature.h"

#include "lib/comm/lane/geometry.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
    return hash * 0xff51afd7ed558ccdu;
}

static uint64_t mix_group(uint64_t hash, const slc_compress_group *group)
{
    for (uint32_t i = 0; i < group->count; i++)
        hash = mix(mix(hash, group->shapes[i].count), group->shapes[i].scale_elements);
    return hash;
}

static uint64_t mix_rows(uint64_t hash, const slc_comm *comm, const slc_rows *rows)
{
    hash = mix(mix(hash, rows->row_elements), rows->row_count);
    return mix(mix(hash, rows->most), (uint64_t)((const char *)rows->lists - comm->attached.base));
}

uint64_t slc_op_signature(const slc_comm *comm, const slc_op *op, bool skipped)
{
    uint64_t hash = mix((uint64_t)op->kind * 2 + skipped, (uint64_t)op->dtype);
    if (op->kind == SLC_BARRIER) return hash;
    hash = mix(mix(hash, op->elements), op->block_elements);
    hash = mix(mix(hash, op->first_block), op->block_count);
    hash = mix(hash, (uint64_t)op->widen * 4 + (uint64_t)op->src_layout * 2 + (uint64_t)op->dst_layout);
    hash = mix(hash, (uint64_t)((const char *)op->src - comm->attached.base));
    if (op->kind == SLC_COMPRESSED_EXCHANGE)
        return mix(mix_group(hash, op->group), (uint64_t)((const char *)op->dst - comm->attached.base));
    if (slc_moves_rows(op)) return mix_rows(hash, comm, op->rows);
    return op->kind == SLC_ALL_REDUCE || op->kind == SLC_BROADCAST ? mix(hash, (uint64_t)op->root) : hash;
}

bool slc_peers_ready(slc_comm *comm, slc_active_op *active)
{
    const slc_neighbours *neighbours = comm->neighbours;
    for (int i = 0; i < neighbours->count; i++) {
        const slc_lane_words *words = slc_peer_words(comm, neighbours->list[i]);
        uint32_t ready = atomic_load_explicit(&words->ready, memory_order_acquire);
        if ((int32_t)(ready - (active->wire + 1)) < 0) return false;
    }
    for (int i = 0; i < neighbours->count; i++) {
        int rank = neighbours->list[i];
        uint64_t theirs = atomic_load_explicit(&slc_peer_words(comm, rank)->signature[active->wire % SLC_SIGNATURES],
                                               memory_order_relaxed);
        if (theirs == active->signature) continue;
        slc_failure_set(comm->failure, SLUICE_ERR_MISMATCH, SLC_TELL_FACT,
                        "rank %d and rank %d submitted different operations where rank %d has \"%s\" (kind, type, "
                        "blocks, place in the arena or whether it is skipped differ): submit the same ones in the same "
                        "order on every rank",
                        slc_rank_in_world(comm, rank), slc_rank_in_world(comm, comm->rank),
                        slc_rank_in_world(comm, comm->rank), slc_op_name(&active->op));
        return false;
    }
    return true;
}
