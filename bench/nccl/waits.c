/* Waits make a graph of nodes. Whoever others wait for and who waits for nobody is the cause; where there is no such
 * node, ranks wait for each other in a circle. */
#include "bench/nccl/waits.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static bool is_alive(const slc_nccl_member *m)
{
    return !slc_nccl_process_is_dead(m->process);
}

/* Did the program give the communicator up itself, and end in order? */
static bool was_given_up(const slc_nccl_communicator *c)
{
    bool aborted = false;
    for (size_t i = 0; i < c->member_count; i++) {
        if (c->members[i].process->state != SLC_NCCL_ENDED) return false;
        aborted = aborted || c->members[i].row->state == SLC_RECORD_ROW_ABORTED;
    }
    return aborted;
}

/* Nothing that `to` does will end the wait. */
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
    if (waits->count == waits->room) {
        size_t room = 2 * waits->room + 64;
        slc_nccl_wait *rows = realloc(waits->rows, room * sizeof *rows);
        if (!rows) return slc_error(SLUICE_ERR_MEMORY, "comparing ranks");
        waits->rows = rows;
        waits->room = room;
    }
    slc_nccl_wait *w = &waits->rows[waits->count++];
    *w = *wait;
    if (w->to) w->rank = w->to->rank;
    w->ripe = is_ripe(all, stall_s, w);
    return SLUICE_OK;
}

/* Those that called more wait for those that called least. */
static sluice_status find_collective_waits(const slc_nccl_members *all, const slc_nccl_communicator *c, double stall_s,
                                           slc_nccl_waits *waits)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < c->member_count; i++)
        if (!c->members[i].vanished && c->members[i].called < least) least = c->members[i].called;
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < c->member_count; i++) {
        const slc_nccl_member *from = &c->members[i];
        if (from->called <= least) continue;
        for (size_t k = 0; !status && k < c->member_count; k++) {
            const slc_nccl_member *to = &c->members[k];
            if (to->called != least) continue;
            status = slc_nccl_waits_add(waits, all, stall_s,
                                        &(slc_nccl_wait){SLC_NCCL_WAITS_FOR_COLLECTIVE, c, from, to, 0, least + 1,
                                                         slc_nccl_member_collective(from, least + 1), false});
        }
    }
    return status;
}

static sluice_status find_creation_waits(const slc_nccl_members *all, const slc_nccl_communicator *c, double stall_s,
                                         slc_nccl_waits *waits)
{
    sluice_status status = SLUICE_OK;
    size_t at = 0;
    for (int rank = 0; !status && rank < c->size; rank++) {
        if (at < c->member_count && c->members[at].rank == rank) {
            at++;
            continue;
        }
        for (size_t i = 0; !status && i < c->member_count; i++) {
            const slc_nccl_member *from = &c->members[i];
            if (from->row->state != SLC_RECORD_ROW_CREATING || !is_alive(from)) continue;
            status =
                slc_nccl_waits_add(waits, all, stall_s,
                                   &(slc_nccl_wait){SLC_NCCL_WAITS_FOR_CREATION, c, from, NULL, rank, 0, NULL, false});
        }
    }
    return status;
}

static sluice_status find_waits_for_the_dead(const slc_nccl_members *all, const slc_nccl_communicator *c,
                                             double stall_s, slc_nccl_waits *waits)
{
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < c->member_count; i++) {
        const slc_nccl_member *to = &c->members[i];
        if (to->process->state != SLC_NCCL_GONE || slc_nccl_member_has_left(to)) continue;
        for (size_t k = 0; !status && k < c->member_count; k++) {
            const slc_nccl_member *from = &c->members[k];
            if (!is_alive(from) || from->called > to->called) continue;
            status = slc_nccl_waits_add(
                waits, all, stall_s,
                &(slc_nccl_wait){SLC_NCCL_WAITS_FOR_THE_DEAD, c, from, to, 0, from->called, NULL, false});
        }
    }
    return status;
}

sluice_status slc_nccl_waits_find(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                  double stall_s, slc_nccl_waits *waits)
{
    sluice_status status = find_collective_waits(all, communicator, stall_s, waits);
    if (!status) status = find_creation_waits(all, communicator, stall_s, waits);
    if (!status) status = find_waits_for_the_dead(all, communicator, stall_s, waits);
    return status;
}
