/* Each rank's sends and receives are sorted by their peer; then the two ends of a pair are walked together. Nothing is
 * kept for pairs that exchange nothing, for a large communicator has very many.
 * compare_test.c covers this file. */
#include "bench/nccl/watch/faults.h"

#include "lib/base/bisect.h"
#include "lib/base/status.h"

#include <inttypes.h>
#include <stdlib.h>

/* A rank's sends (or receives), sorted by their peer and, for each peer, in the order in which they were called. */
typedef struct {
    const slc_nccl_entry **rows;
    size_t count;
} ends;

/* A rank's sends (or receives) with one peer. */
typedef struct {
    const slc_nccl_entry *const *rows;
    size_t count;
} ends_with_peer;

typedef struct {
    const slc_nccl_members *all;
    const slc_nccl_communicator *communicator;
    double stall_s;
    slc_nccl_waits *waits;
    ends *sends, *receives; /* of each member */
    const slc_nccl_member *from, *to;
    const slc_nccl_entry *sent, *received; /* the earliest pair whose sizes differ, `from` its sender */
    uint64_t ordinal;
    int64_t unequal_ns;
} matching;

static void free_ends(ends *e, size_t count)
{
    for (size_t i = 0; e && i < count; i++) free(e[i].rows);
    free(e);
}

static int by_peer(const void *a, const void *b)
{
    const slc_nccl_entry *x = *(const slc_nccl_entry *const *)a, *y = *(const slc_nccl_entry *const *)b;
    if (x->peer != y->peer) return x->peer < y->peer ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static sluice_status sort_by_peer(const slc_nccl_member *m, unsigned operation, ends *e)
{
    e->rows = malloc((m->exchange_count + 1) * sizeof *e->rows);
    if (!e->rows) return slc_error(SLUICE_ERR_MEMORY, "matching sends");
    for (size_t i = 0; i < m->exchange_count; i++)
        if (m->exchanges[i]->operation == operation) e->rows[e->count++] = m->exchanges[i];
    qsort(e->rows, e->count, sizeof *e->rows, by_peer);
    return SLUICE_OK;
}

static size_t first_of_peer(const ends *e, int64_t peer)
{
    SLC_BISECT(size_t, low, 0, e->count, e->rows[low]->peer < peer);
    return low;
}

static ends_with_peer ends_with(const ends *e, int peer)
{
    size_t first = first_of_peer(e, peer);
    return (ends_with_peer){e->rows + first, first_of_peer(e, (int64_t)peer + 1) - first};
}

/* Returns the number, from 1 on, that the first kept end has among all sends (or all receives) of the rank with this
 * peer. 0: it cannot be known. */
static uint64_t first_ordinal(const slc_nccl_member *m, ends_with_peer e)
{
    if (m->whole) return 1;
    if (!e.count) return 0;
    return e.rows[0]->operation == SLC_RECORD_SEND ? e.rows[0]->receive : e.rows[0]->send;
}

static uint64_t bytes_of(const slc_nccl_entry *entry)
{
    return entry->count * slc_nccl_dtype_bytes(entry->dtype);
}

static void look_for_unequal(matching *m, const slc_nccl_member *from, const slc_nccl_member *to,
                             const slc_nccl_entry *sent, const slc_nccl_entry *received, uint64_t ordinal)
{
    if (bytes_of(sent) == bytes_of(received)) return;
    int64_t sent_ns = sent->time_ns + from->process->header.realtime_minus_monotonic_ns;
    int64_t received_ns = received->time_ns + to->process->header.realtime_minus_monotonic_ns;
    int64_t when = sent_ns > received_ns ? sent_ns : received_ns;
    if (m->sent && m->unequal_ns <= when) return;
    m->from = from;
    m->to = to;
    m->sent = sent;
    m->received = received;
    m->ordinal = ordinal;
    m->unequal_ns = when;
}

static sluice_status match_pair(matching *m, const slc_nccl_member *from, const slc_nccl_member *to)
{
    const slc_nccl_member *members = m->communicator->members;
    ends_with_peer s = ends_with(&m->sends[from - members], to->rank);
    ends_with_peer r = ends_with(&m->receives[to - members], from->rank);
    uint64_t s_first = first_ordinal(from, s), r_first = first_ordinal(to, r);
    if (!s_first || !r_first) return SLUICE_OK; /* the oldest are lost, and nobody counted */
    uint64_t s_next = s_first + s.count, r_next = r_first + r.count;
    for (uint64_t n = s_first > r_first ? s_first : r_first; n < s_next && n < r_next; n++)
        look_for_unequal(m, from, to, s.rows[n - s_first], r.rows[n - r_first], n);
    if (s_next == r_next) return SLUICE_OK;
    slc_nccl_wait wait = {.communicator = m->communicator};
    if (s_next > r_next) {
        wait.kind = SLC_NCCL_WAITS_FOR_RECEIVE;
        wait.from = from;
        wait.to = to;
        wait.ordinal = r_next;
        wait.entry = r_next >= s_first ? s.rows[r_next - s_first] : NULL;
    } else {
        wait.kind = SLC_NCCL_WAITS_FOR_SEND;
        wait.from = to;
        wait.to = from;
        wait.ordinal = s_next;
        wait.entry = s_next >= r_first ? r.rows[s_next - r_first] : NULL;
    }
    return slc_nccl_waits_add(m->waits, m->all, m->stall_s, &wait);
}

/* Matches the pairs in which this rank sends, and those in which it receives what its peer has no send for. */
static sluice_status match_member(matching *m, const slc_nccl_member *one)
{
    const slc_nccl_communicator *c = m->communicator;
    const ends *sends = &m->sends[one - c->members], *receives = &m->receives[one - c->members];
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < sends->count; i++) {
        if (i && sends->rows[i]->peer == sends->rows[i - 1]->peer) continue;
        const slc_nccl_member *to = slc_nccl_member_of(c, sends->rows[i]->peer);
        if (to) status = match_pair(m, one, to);
    }
    for (size_t i = 0; !status && i < receives->count; i++) {
        if (i && receives->rows[i]->peer == receives->rows[i - 1]->peer) continue;
        const slc_nccl_member *from = slc_nccl_member_of(c, receives->rows[i]->peer);
        if (from && !ends_with(&m->sends[from - c->members], one->rank).count) status = match_pair(m, from, one);
    }
    return status;
}

static sluice_status write_unequal(const matching *m, slc_nccl_findings *findings)
{
    slc_nccl_finding *f;
    sluice_status status = slc_nccl_finding_begin(findings, SLC_NCCL_FOUND_UNEQUAL, m->all, m->communicator, &f);
    if (status) return status;
    FILE *out = f->out;
    fprintf(out, ": rank %d sent ", m->from->rank);
    slc_nccl_write_data(out, m->sent);
    fprintf(out, " to rank %d", m->to->rank);
    slc_nccl_write_caller(out, m->from, m->sent);
    fprintf(out, ", and rank %d receives ", m->to->rank);
    slc_nccl_write_data(out, m->received);
    slc_nccl_write_caller(out, m->to, m->received);
    fprintf(out, " for it: send %" PRIu64 " between the two", m->ordinal);
    f->number = m->ordinal;
    f->time_ns = m->unequal_ns;
    f->hint = "a send and its receive must have the same count and dtype; they belong together by their order between "
              "the two ranks";
    slc_nccl_finding_involve(f, m->all, m->from);
    slc_nccl_finding_involve(f, m->all, m->to);
    json_t *pair =
        json_pack("{s:i, s:o, s:i, s:o}", "from", m->from->rank, "send", slc_nccl_call_json(m->from, m->sent), "to",
                  m->to->rank, "receive", slc_nccl_call_json(m->to, m->received));
    slc_nccl_finding_set(f, "pair", pair);
    return slc_nccl_finding_end(findings);
}

sluice_status slc_nccl_match_exchanges(const slc_nccl_members *all, const slc_nccl_communicator *communicator,
                                       double stall_s, slc_nccl_findings *findings, slc_nccl_waits *waits)
{
    size_t count = communicator->member_count, exchanges = 0;
    for (size_t i = 0; i < count; i++) exchanges += communicator->members[i].exchange_count;
    if (!exchanges) return SLUICE_OK;
    matching m = {.all = all, .communicator = communicator, .stall_s = stall_s, .waits = waits};
    m.sends = calloc(count, sizeof *m.sends);
    m.receives = calloc(count, sizeof *m.receives);
    sluice_status status = m.sends && m.receives ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "matching sends");
    for (size_t i = 0; !status && i < count; i++) {
        const slc_nccl_member *member = &communicator->members[i];
        status = sort_by_peer(member, SLC_RECORD_SEND, &m.sends[i]);
        if (!status) status = sort_by_peer(member, SLC_RECORD_RECEIVE, &m.receives[i]);
    }
    for (size_t i = 0; !status && i < count; i++) status = match_member(&m, &communicator->members[i]);
    if (!status && m.sent) status = write_unequal(&m, findings);
    free_ends(m.sends, count);
    free_ends(m.receives, count);
    return status;
}
