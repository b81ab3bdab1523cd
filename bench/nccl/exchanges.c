/* Each rank's sends and receives are sorted by their peer; then the two ends of a pair are walked together. */
#include "bench/nccl/exchanges.h"

#include "lib/base/status.h"

#include <inttypes.h>
#include <stdlib.h>

/* A rank's sends to (or receives from) each peer, in order: those of peer p lie from first[p] up to first[p + 1]. */
typedef struct {
    const slc_nccl_entry **rows;
    size_t *first;
} ends;

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
    for (size_t i = 0; e && i < count; i++) {
        free(e[i].rows);
        free(e[i].first);
    }
    free(e);
}

static bool has_peer(const slc_nccl_communicator *c, const slc_nccl_entry *entry, unsigned operation)
{
    return entry->operation == operation && entry->peer >= 0 && entry->peer < c->size;
}

static sluice_status sort_by_peer(const slc_nccl_communicator *c, const slc_nccl_member *m, unsigned operation, ends *e)
{
    size_t peers = (size_t)c->size;
    e->rows = malloc((m->exchange_count + 1) * sizeof *e->rows);
    e->first = calloc(peers + 2, sizeof *e->first);
    if (!e->rows || !e->first) return slc_error(SLUICE_ERR_MEMORY, "matching sends");
    for (size_t i = 0; i < m->exchange_count; i++)
        if (has_peer(c, m->exchanges[i], operation)) e->first[m->exchanges[i]->peer + 2]++;
    for (size_t p = 2; p < peers + 2; p++) e->first[p] += e->first[p - 1];
    for (size_t i = 0; i < m->exchange_count; i++)
        if (has_peer(c, m->exchanges[i], operation)) e->rows[e->first[m->exchanges[i]->peer + 1]++] = m->exchanges[i];
    return SLUICE_OK;
}

/* Which of the rank's ends with this peer the first one kept is, from 1; 0: it cannot be known. */
static uint64_t first_ordinal(const slc_nccl_member *m, const ends *e, size_t peer)
{
    if (m->whole) return 1;
    if (e->first[peer] == e->first[peer + 1]) return 0;
    const slc_nccl_entry *entry = e->rows[e->first[peer]];
    return entry->operation == SLC_RECORD_SEND ? entry->receive : entry->send;
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

static sluice_status match_pair(matching *m, size_t sender, size_t receiver)
{
    const slc_nccl_member *from = &m->communicator->members[sender], *to = &m->communicator->members[receiver];
    const ends *s = &m->sends[sender], *r = &m->receives[receiver];
    size_t s_at = s->first[to->rank], s_end = s->first[to->rank + 1];
    size_t r_at = r->first[from->rank], r_end = r->first[from->rank + 1];
    uint64_t s_first = first_ordinal(from, s, (size_t)to->rank), r_first = first_ordinal(to, r, (size_t)from->rank);
    if (s_at == s_end && r_at == r_end) return SLUICE_OK;
    if (!s_first || !r_first) return SLUICE_OK; /* the oldest are lost, and nobody counted */
    uint64_t s_next = s_first + (s_end - s_at), r_next = r_first + (r_end - r_at);
    for (uint64_t n = s_first > r_first ? s_first : r_first; n < s_next && n < r_next; n++)
        look_for_unequal(m, from, to, s->rows[s_at + (n - s_first)], r->rows[r_at + (n - r_first)], n);
    if (s_next == r_next) return SLUICE_OK;
    slc_nccl_wait wait = {.communicator = m->communicator};
    if (s_next > r_next) {
        wait.kind = SLC_NCCL_WAITS_FOR_RECEIVE;
        wait.from = from;
        wait.to = to;
        wait.ordinal = r_next;
        wait.entry = r_next >= s_first ? s->rows[s_at + (r_next - s_first)] : NULL;
    } else {
        wait.kind = SLC_NCCL_WAITS_FOR_SEND;
        wait.from = to;
        wait.to = from;
        wait.ordinal = s_next;
        wait.entry = s_next >= r_first ? r->rows[r_at + (s_next - r_first)] : NULL;
    }
    return slc_nccl_waits_add(m->waits, m->all, m->stall_s, &wait);
}

static sluice_status write_unequal(const matching *m, slc_nccl_findings *findings)
{
    FILE *out;
    sluice_status status = slc_nccl_finding_begin(findings, SLC_NCCL_FOUND_UNEQUAL, m->all, m->communicator, &out);
    if (status) return status;
    fprintf(out, ": rank %d sent ", m->from->rank);
    slc_nccl_write_data(out, m->sent);
    fprintf(out, " to rank %d", m->to->rank);
    slc_nccl_write_caller(out, m->from, m->sent);
    fprintf(out, ", and rank %d receives ", m->to->rank);
    slc_nccl_write_data(out, m->received);
    slc_nccl_write_caller(out, m->to, m->received);
    fprintf(out, " for it: send %" PRIu64 " between the two", m->ordinal);
    slc_nccl_finding *f = slc_nccl_finding_last(findings);
    f->number = m->ordinal;
    f->time_ns = m->unequal_ns;
    f->hint = "a send and its receive must have the same count and dtype; they belong together by their order between "
              "the two ranks";
    slc_nccl_finding_involve(f, m->all, m->from);
    slc_nccl_finding_involve(f, m->all, m->to);
    json_t *pair =
        json_pack("{s:i, s:o, s:i, s:o}", "from", m->from->rank, "send", slc_nccl_call_json(m->from, m->sent), "to",
                  m->to->rank, "receive", slc_nccl_call_json(m->to, m->received));
    bool added = pair && !json_object_set_new(f->json, "pair", pair);
    status = slc_nccl_finding_end(findings, out);
    return status || added ? status : slc_error(SLUICE_ERR_MEMORY, "findings");
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
        status = sort_by_peer(communicator, member, SLC_RECORD_SEND, &m.sends[i]);
        if (!status) status = sort_by_peer(communicator, member, SLC_RECORD_RECEIVE, &m.receives[i]);
    }
    for (size_t i = 0; !status && i < count; i++)
        for (size_t k = 0; !status && k < count; k++) status = match_pair(&m, i, k);
    if (!status && m.sent) status = write_unequal(&m, findings);
    free_ends(m.sends, count);
    free_ends(m.receives, count);
    return status;
}
