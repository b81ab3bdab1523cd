/* A rank's nth collective is found by counting if its record is whole, and else by the row's count of collectives,
 * which holds when nothing was being written while the record was read. compare_test.c covers this file. */
#include "bench/nccl/watch/members.h"

#include "lib/base/bisect.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STILL_MS = 50,        /* a call takes far less to write all of its record */
    STREAM_PER_THREAD = 2 /* CUDA's handle */
};

bool slc_nccl_process_is_dead(const slc_nccl_process *process)
{
    return process->state == SLC_NCCL_GONE || process->state == SLC_NCCL_ENDED;
}

bool slc_nccl_member_has_left(const slc_nccl_member *member)
{
    uint32_t state = member->row->state;
    return state == SLC_RECORD_ROW_FINALIZED || state == SLC_RECORD_ROW_DESTROYED || state == SLC_RECORD_ROW_ABORTED;
}

const slc_nccl_entry *slc_nccl_member_collective(const slc_nccl_member *member, uint64_t ordinal)
{
    if (!member->first || ordinal < member->first) return NULL;
    return ordinal - member->first < member->collective_count ? member->collectives[ordinal - member->first] : NULL;
}

bool slc_nccl_same_stream(const slc_nccl_entry *a, const slc_nccl_entry *b)
{
    return a->stream == b->stream && (a->stream != STREAM_PER_THREAD || (a->thread && a->thread == b->thread));
}

const slc_nccl_member *slc_nccl_member_of(const slc_nccl_communicator *communicator, int rank)
{
    SLC_BISECT(size_t, low, 0, communicator->member_count, communicator->members[low].rank < rank);
    bool found = low < communicator->member_count && communicator->members[low].rank == rank;
    return found ? &communicator->members[low] : NULL;
}

const char *slc_nccl_ordinal_name(const slc_nccl_communicator *communicator)
{
    for (size_t i = 0; i < communicator->member_count; i++) {
        const slc_nccl_member *m = &communicator->members[i];
        if (m->exchange_count || m->failed_count || m->row->calls != m->row->collectives) return "collective";
    }
    return "operation";
}

/* Finds the node of a process and a device, or adds it. The nodes of a process follow each other. */
static size_t node_of(slc_nccl_members *all, size_t process_index, int device, double quiet_s)
{
    for (size_t i = all->node_count; i-- > 0 && all->nodes[i].process_index == process_index;)
        if (all->nodes[i].device == device) return i;
    const slc_nccl_process *process = &all->records->processes[process_index];
    all->nodes[all->node_count] =
        (slc_nccl_node){process, process_index, device, quiet_s, slc_nccl_process_is_dead(process)};
    return all->node_count++;
}

/* A collective without elements has no number of its own: NCCL discards it, and ranks need not agree on it. */
static bool is_numbered(const slc_nccl_entry *entry)
{
    return entry->operation <= SLC_RECORD_RECEIVE && (entry->count || entry->operation >= SLC_RECORD_SPLIT);
}

static bool is_collective(const slc_nccl_entry *entry)
{
    return entry->operation <= SLC_RECORD_SPLIT && is_numbered(entry) && !(entry->flags & SLC_RECORD_FAILED);
}

static bool is_exchange(const slc_nccl_entry *entry)
{
    return (entry->operation == SLC_RECORD_SEND || entry->operation == SLC_RECORD_RECEIVE) &&
           !(entry->flags & SLC_RECORD_FAILED);
}

static double seconds_between(int64_t earlier_ns, int64_t later_ns)
{
    return later_ns > earlier_ns ? (double)(later_ns - earlier_ns) * 1e-9 : 0;
}

/* Tells which of the rank's collectives the first one kept is, and how many it called. */
static void count_collectives(slc_nccl_member *m, bool numbers_agree)
{
    const slc_record_communicator *row = m->row;
    uint64_t kept = m->collective_count + m->exchange_count + m->failed_count;
    m->whole = m->last ? numbers_agree && m->last->number == kept : row->calls == 0;
    m->still = m->quiet_s * 1000 >= STILL_MS && (!kept || m->last->number == row->calls);
    if (m->whole)
        m->first = 1;
    else if (m->collective_count && row->calls == row->collectives && numbers_agree)
        m->first = m->collectives[0]->number;
    else if (m->still && m->collective_count && row->collectives >= m->collective_count + m->failed_collectives)
        m->first = row->collectives - m->failed_collectives - m->collective_count + 1;
    m->called = m->first ? m->first + m->collective_count - 1 : row->collectives;
}

/* Fills the lists of a process's ranks, which lie in `of_row` by the number of their row. Returns where free places in
 * the members' lists begin. */
static const slc_nccl_entry **sort_entries(const slc_nccl_process *process, slc_nccl_member **of_row, uint64_t *last,
                                           bool *numbers_agree, const slc_nccl_entry **place)
{
    for (size_t i = 0; i < process->entry_count; i++) {
        const slc_nccl_entry *entry = &process->entries[i];
        slc_nccl_member *m = entry->communicator < process->header.communicators ? of_row[entry->communicator] : NULL;
        if (!m) continue;
        m->collective_count += is_collective(entry);
        m->exchange_count += is_exchange(entry);
    }
    for (uint32_t r = 0; r < process->header.communicators; r++) {
        slc_nccl_member *m = of_row[r];
        if (!m) continue;
        m->collectives = place;
        m->exchanges = place + m->collective_count;
        place += m->collective_count + m->exchange_count;
        m->collective_count = m->exchange_count = 0;
    }
    for (size_t i = 0; i < process->entry_count; i++) {
        const slc_nccl_entry *entry = &process->entries[i];
        slc_nccl_member *m = entry->communicator < process->header.communicators ? of_row[entry->communicator] : NULL;
        if (!m) continue;
        m->touched_ns = entry->time_ns;
        if (!is_numbered(entry)) continue;
        uint64_t *before = &last[entry->communicator];
        if (*before && entry->number != *before + 1) numbers_agree[entry->communicator] = false;
        *before = entry->number;
        m->last = entry;
        if (is_collective(entry))
            m->collectives[m->collective_count++] = entry;
        else if (is_exchange(entry))
            m->exchanges[m->exchange_count++] = entry;
        else {
            m->failed = entry;
            m->failed_count++;
            m->failed_collectives += entry->operation <= SLC_RECORD_SPLIT;
        }
    }
    return place;
}

/* Notes for each rank and node of a process how long it has called nothing. */
static void tell_quiet(slc_nccl_members *all, const slc_nccl_process *process, slc_nccl_member **of_row,
                       double process_quiet_s)
{
    if (!process->entry_count) return;
    int64_t latest = process->entries[process->entry_count - 1].time_ns;
    int64_t oldest = process->entries[0].time_ns;
    for (uint32_t r = 0; r < process->header.communicators; r++) {
        slc_nccl_member *m = of_row[r];
        if (!m) continue;
        m->quiet_s = process_quiet_s + seconds_between(m->touched_ns ? m->touched_ns : oldest, latest);
        slc_nccl_node *node = &all->nodes[m->node];
        if (m->quiet_s < node->quiet_s) node->quiet_s = m->quiet_s;
    }
}

static const slc_nccl_entry **add_process(slc_nccl_members *all, size_t index, double quiet_s, size_t *member_count,
                                          const slc_nccl_entry **place)
{
    const slc_nccl_process *process = &all->records->processes[index];
    slc_nccl_member *of_row[SLC_RECORD_COMMUNICATORS] = {0};
    uint64_t last[SLC_RECORD_COMMUNICATORS] = {0};
    bool numbers_agree[SLC_RECORD_COMMUNICATORS];
    bool vanished = process->state == SLC_NCCL_ENDED && process->header.state != SLC_RECORD_ENDED;
    for (uint32_t r = 0; r < process->header.communicators; r++) {
        const slc_record_communicator *row = &process->communicators[r];
        numbers_agree[r] = true;
        if (!row->key || row->rank < 0 || row->state == SLC_RECORD_ROW_FREE || row->state == SLC_RECORD_ROW_FAILED)
            continue;
        of_row[r] = &all->members[(*member_count)++];
        *of_row[r] =
            (slc_nccl_member){.process = process,
                              .row = row,
                              .rank = row->rank,
                              .quiet_s = quiet_s,
                              .vanished = vanished,
                              .node = node_of(all, index, row->device, process->entry_count ? INFINITY : quiet_s)};
    }
    place = sort_entries(process, of_row, last, numbers_agree, place);
    tell_quiet(all, process, of_row, quiet_s);
    for (uint32_t r = 0; r < process->header.communicators; r++)
        if (of_row[r]) count_collectives(of_row[r], numbers_agree[r]);
    return place;
}

static int by_key_and_rank(const void *a, const void *b)
{
    const slc_nccl_member *x = a, *y = b;
    if (x->row->key != y->row->key) return x->row->key < y->row->key ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return x->called > y->called ? -1 : x->called < y->called; /* a file may have been given twice */
}

/* Makes communicators of the members, and drops a rank's second record. */
static void match_by_key(slc_nccl_members *all, size_t member_count)
{
    if (member_count) qsort(all->members, member_count, sizeof *all->members, by_key_and_rank);
    slc_nccl_communicator *c = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < member_count; i++) {
        slc_nccl_member *m = &all->members[i];
        bool same = c && c->key == m->row->key;
        if (same && c->members[c->member_count - 1].rank == m->rank) continue;
        all->members[kept] = *m;
        if (!same) {
            c = &all->communicators[all->communicator_count++];
            *c = (slc_nccl_communicator){.key = m->row->key, .members = &all->members[kept]};
        }
        kept++;
        c->member_count++;
        if (m->row->size > c->size) c->size = m->row->size;
    }
}

sluice_status slc_nccl_members_find(const slc_nccl_records *records, const double *quiet_s, slc_nccl_members *out)
{
    *out = (slc_nccl_members){.records = records};
    size_t rows = 0, entries = 0;
    for (size_t i = 0; i < records->count; i++) {
        rows += records->processes[i].header.communicators;
        entries += records->processes[i].entry_count;
    }
    out->members = calloc(rows + 1, sizeof *out->members);
    out->communicators = calloc(rows + 1, sizeof *out->communicators);
    out->nodes = calloc(rows + 1, sizeof *out->nodes);
    out->entries = malloc((entries + 1) * sizeof *out->entries);
    if (!out->members || !out->communicators || !out->nodes || !out->entries)
        return slc_error(SLUICE_ERR_MEMORY, "comparing ranks");
    const slc_nccl_entry **place = out->entries;
    size_t member_count = 0;
    for (size_t i = 0; i < records->count; i++) {
        bool dead = slc_nccl_process_is_dead(&records->processes[i]);
        place = add_process(out, i, dead ? INFINITY : quiet_s[i], &member_count, place);
    }
    match_by_key(out, member_count);
    return SLUICE_OK;
}

void slc_nccl_members_free(slc_nccl_members *members)
{
    free(members->members);
    free(members->communicators);
    free(members->nodes);
    free(members->entries);
    *members = (slc_nccl_members){0};
}
