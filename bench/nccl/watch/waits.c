/* Waits make a graph of nodes. A node for which others wait and which waits for nobody is the cause; if there is no
 * such node, ranks wait for each other in a circle. compare_test.c covers this file. */
#include "bench/nccl/watch/waits.h"

#include "lib/base/array.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PAIRS = 1 << 18 }; /* waits of one kind in a communicator, after which a rank gets one each way */

static bool is_alive(const slc_nccl_member *m)
{
    return !slc_nccl_process_is_dead(m->process);
}

/* Returns true if the program gave the communicator up itself, and ended in order. */
static bool was_given_up(const slc_nccl_communicator *c)
{
    bool aborted = false;
    for (size_t i = 0; i < c->member_count; i++) {
        if (c->members[i].process->state != SLC_NCCL_ENDED) return false;
        aborted = aborted || c->members[i].row->state == SLC_RECORD_ROW_ABORTED;
    }
    return aborted;
}

/* True if nothing that `to` does can end the wait. */
static bool is_hopeless(const slc_nccl_wait *w)
{
    if (!w->to) return false;
    if (w->kind == SLC_NCCL_WAITS_FOR_THE_DEAD) return false;
    return !is_alive(w->to) || w->to->row->state == SLC_RECORD_ROW_FINALIZED ||
           w->to->row->state == SLC_RECORD_ROW_DESTROYED;
}

static bool is_ripe(const slc_nccl_members *all, double stall_s, const slc_nccl_wait *w)
{
    if (is_hopeless(w)) return true;
    if (all->nodes[w->from->node].quiet_s < stall_s) return false;
    return !w->to || w->to->quiet_s >= stall_s;
}

sluice_status slc_nccl_waits_add(slc_nccl_waits *waits, const slc_nccl_members *all, double stall_s,
                                 const slc_nccl_wait *wait)
{
    bool to_is_alive = wait->to && is_alive(wait->to);
    if (wait->from->vanished || (wait->to && wait->to->vanished)) return SLUICE_OK;
    if (is_alive(wait->from) ? slc_nccl_member_has_left(wait->from) : to_is_alive || was_given_up(wait->communicator))
        return SLUICE_OK;
    if (!SLC_ROOM_FOR_ONE(waits->rows, waits->count)) return slc_error(SLUICE_ERR_MEMORY, "comparing ranks");
    slc_nccl_wait *w = &waits->rows[waits->count++];
    *w = *wait;
    w->ripe = is_ripe(all, stall_s, w);
    return SLUICE_OK;
}

/* Waits of one kind in a communicator. */
typedef struct {
    const slc_nccl_members *all;
    const slc_nccl_communicator *communicator;
    double stall_s;
    slc_nccl_wait_kind kind;
    slc_nccl_waits *waits;
    size_t first;                /* of the waits */
    const slc_nccl_member *from; /* of the last one */
    bool *is_waited_for;         /* each member */
} wait_pairs;

static sluice_status add_pair(wait_pairs *pairs, const slc_nccl_member *from, const slc_nccl_member *to,
                              uint64_t ordinal)
{
    slc_nccl_waits *waits = pairs->waits;
    bool *is_waited_for = &pairs->is_waited_for[to - pairs->communicator->members];
    size_t count = waits->count;
    if (count - pairs->first >= MOST_PAIRS && pairs->from == from && *is_waited_for) return SLUICE_OK;
    sluice_status status = slc_nccl_waits_add(
        waits, pairs->all, pairs->stall_s,
        &(slc_nccl_wait){
            pairs->kind, pairs->communicator, from, to, ordinal,
            pairs->kind == SLC_NCCL_WAITS_FOR_COLLECTIVE ? slc_nccl_member_collective(from, ordinal) : NULL, false});
    if (waits->count == count) return status;
    pairs->from = from;
    *is_waited_for = true;
    return status;
}

/* Finds the waits for collectives: ranks that called more of them wait for those that called fewest. */
static sluice_status find_collective_waits(wait_pairs *pairs)
{
    const slc_nccl_communicator *c = pairs->communicator;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < c->member_count; i++)
        if (!c->members[i].vanished && c->members[i].called < least) least = c->members[i].called;
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < c->member_count; i++) {
        const slc_nccl_member *from = &c->members[i];
        if (from->called <= least) continue;
        for (size_t k = 0; !status && k < c->member_count; k++)
            if (c->members[k].called == least) status = add_pair(pairs, from, &c->members[k], least + 1);
    }
    return status;
}

static sluice_status find_waits_for_the_dead(wait_pairs *pairs)
{
    const slc_nccl_communicator *c = pairs->communicator;
    sluice_status status = SLUICE_OK;
    for (size_t k = 0; !status && k < c->member_count; k++) {
        const slc_nccl_member *from = &c->members[k];
        if (!is_alive(from)) continue;
        for (size_t i = 0; !status && i < c->member_count; i++) {
            const slc_nccl_member *to = &c->members[i];
            if (to->process->state != SLC_NCCL_GONE || slc_nccl_member_has_left(to)) continue;
            if (from->called <= to->called) status = add_pair(pairs, from, to, from->called);
        }
    }
    return status;
}

/* A rank that creates the communicator waits for all that have not come. */
static sluice_status find_creation_waits(const slc_nccl_members *all, const slc_nccl_communicator *c, double stall_s,
                                         slc_nccl_waits *waits)
{
    sluice_status status = SLUICE_OK;
    if (c->member_count >= (size_t)c->size) return status;
    for (size_t i = 0; !status && i < c->member_count; i++) {
        const slc_nccl_member *from = &c->members[i];
        if (from->row->state != SLC_RECORD_ROW_CREATING || !is_alive(from)) continue;
        status = slc_nccl_waits_add(waits, all, stall_s,
                                    &(slc_nccl_wait){SLC_NCCL_WAITS_FOR_CREATION, c, from, NULL, 0, NULL, false});
    }
    return status;
}

static sluice_status find_pairs(const slc_nccl_members *all, const slc_nccl_communicator *communicator, double stall_s,
                                slc_nccl_wait_kind kind, slc_nccl_waits *waits)
{
    wait_pairs pairs = {all, communicator, stall_s, kind, waits, waits->count, NULL, NULL};
    pairs.is_waited_for = calloc(communicator->member_count, sizeof *pairs.is_waited_for);
    if (!pairs.is_waited_for) return slc_error(SLUICE_ERR_MEMORY, "comparing ranks");
    bool collective = kind == SLC_NCCL_WAITS_FOR_COLLECTIVE;
    sluice_status status = collective ? find_collective_waits(&pairs) : find_waits_for_the_dead(&pairs);
    free(pairs.is_waited_for);
    return status;
}

sluice_status slc_nccl_waits_find(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                  double stall_s, slc_nccl_waits *waits)
{
    sluice_status status = find_pairs(all, communicator, stall_s, SLC_NCCL_WAITS_FOR_COLLECTIVE, waits);
    if (!status) status = find_creation_waits(all, communicator, stall_s, waits);
    if (!status) status = find_pairs(all, communicator, stall_s, SLC_NCCL_WAITS_FOR_THE_DEAD, waits);
    return status;
}
