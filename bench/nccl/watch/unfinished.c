/* A stream writes the number of an operation when it has finished it. That orders what follows in the same stream
 * alone: if several streams are in use, a lower number may be written last, and nothing is told.
 * compare_test.c covers this file. */
#include "bench/nccl/watch/faults.h"

#include "lib/base/status.h"

#include <stdlib.h>

static bool is_on_stream(const slc_nccl_entry *entry)
{
    return entry->operation != SLC_RECORD_SPLIT;
}

/* Returns true if the sends and receives of the communicator lie in the stream of this entry. */
static bool shares_one_stream(const slc_nccl_member *m, const slc_nccl_entry *entry)
{
    for (size_t i = 0; i < m->exchange_count; i++)
        if (!slc_nccl_same_stream(m->exchanges[i], entry)) return false;
    return true;
}

/* Returns true if NCCL, on a communicator that does not block, has not said that it launched the operation; then no
 * stream says that it is finished either. */
static bool may_be_unlaunched(const slc_nccl_member *m, const slc_nccl_entry *entry)
{
    return m->row->unlaunched && entry->number >= m->row->unlaunched;
}

/* The first collective after those that the stream says it has finished; NULL: there is none, or it cannot be told. */
static const slc_nccl_entry *first_after_done(const slc_nccl_member *m)
{
    const slc_nccl_entry *first = NULL;
    for (size_t i = m->collective_count; i-- > 0;) {
        const slc_nccl_entry *entry = m->collectives[i];
        if (!is_on_stream(entry)) continue;
        if ((entry->flags & SLC_RECORD_CAPTURED) || (first && !slc_nccl_same_stream(entry, first))) return NULL;
        if (entry->number <= m->row->done) return first && shares_one_stream(m, first) ? first : NULL;
        first = entry;
    }
    return m->row->done || !m->whole || !first || !shares_one_stream(m, first) ? NULL : first;
}

/* The first collective of the rank that is not finished, or NULL: all are, or it cannot be told. */
static const slc_nccl_entry *first_unfinished(const slc_nccl_member *m)
{
    const slc_nccl_entry *first = first_after_done(m);
    return first && may_be_unlaunched(m, first) ? NULL : first;
}

/* Returns true if every rank has called the same, and none moves. */
static bool may_hang(const slc_nccl_members *all, const slc_nccl_communicator *c, double stall_s)
{
    if (c->member_count != (size_t)c->size) return false;
    for (size_t i = 0; i < c->member_count; i++) {
        const slc_nccl_member *m = &c->members[i];
        if (!m->process->header.done_is_written || m->row->state != SLC_RECORD_ROW_READY) return false;
        if (slc_nccl_process_is_dead(m->process) || m->called != c->members[0].called) return false;
        if (all->nodes[m->node].quiet_s < stall_s) return false;
    }
    return true;
}

static sluice_status write_unfinished(const slc_nccl_members *all, const slc_nccl_communicator *c,
                                      const slc_nccl_entry *const *entries, slc_nccl_findings *findings, int *ranks)
{
    slc_nccl_finding *f;
    sluice_status status = slc_nccl_finding_begin(findings, SLC_NCCL_FOUND_UNFINISHED, all, c, &f);
    if (status) return status;
    FILE *out = f->out;
    const slc_nccl_member *one = NULL;
    const slc_nccl_entry *entry = NULL;
    for (size_t i = 0; i < c->member_count; i++) {
        slc_nccl_finding_involve(f, all, &c->members[i]);
        if (!entries[i] || (entry && entry->number <= entries[i]->number)) continue;
        one = &c->members[i];
        entry = entries[i];
    }
    size_t count = 0;
    for (size_t i = 0; i < c->member_count; i++) {
        if (!entries[i] || entries[i]->number != entry->number) continue;
        ranks[count++] = c->members[i].rank;
        slc_nccl_finding_append(f, "ranks", slc_nccl_member_json(&c->members[i]));
    }
    fputs(": every rank called ", out);
    slc_nccl_write_call(out, entry);
    slc_nccl_write_caller(out, one, entry);
    fprintf(out, ", and the stream%s of ", count == 1 ? "" : "s");
    slc_nccl_write_ranks(out, ranks, count);
    fprintf(out, " ha%s not finished it, %.0f s after the last call", count == 1 ? "s" : "ve", one->quiet_s);
    f->number = entry->number;
    slc_nccl_finding_not_before(f, one, entry);
    f->hint =
        "the calls agree: look for what the streams wait for (another kernel, an event, another communicator) and, "
        "with NCCL_DEBUG=INFO, at the network";
    return slc_nccl_finding_end(findings);
}

sluice_status slc_nccl_find_unfinished(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                       double stall_s, slc_nccl_findings *findings)
{
    size_t count = communicator->member_count;
    if (!may_hang(all, communicator, stall_s)) return SLUICE_OK;
    const slc_nccl_entry **entries = calloc(count, sizeof *entries);
    int *ranks = calloc(count, sizeof *ranks);
    sluice_status status = entries && ranks ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "comparing ranks");
    bool some = false;
    for (size_t i = 0; !status && i < count; i++) {
        entries[i] = first_unfinished(&communicator->members[i]);
        some = some || entries[i];
    }
    if (some) status = write_unfinished(all, communicator, entries, findings, ranks);
    free(entries);
    free(ranks);
    return status;
}
