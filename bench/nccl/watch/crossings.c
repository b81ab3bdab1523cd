/* The collectives that two nodes share are walked in the order of one of them. In each pair of streams (one of either
 * node) the other node's order must never fall; calls of one group have no order among each other. */
#include "bench/nccl/watch/faults.h"

#include "lib/base/status.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_STREAMS = 16, QUIET_MS = 300 };

/* A collective as both nodes called it. */
typedef struct {
    const slc_nccl_communicator *communicator;
    const slc_nccl_member *a, *b;
    const slc_nccl_entry *in_a, *in_b;
    uint64_t ordinal;
} shared_call;

/* A pair of streams, and the latest call of b among those that a called before its current group. */
typedef struct {
    shared_call first;           /* says which streams */
    shared_call latest, current; /* current: the latest of a's current group */
} stream_pair;

static bool same_group(const slc_nccl_entry *x, const slc_nccl_entry *y)
{
    return x->group && x->group == y->group;
}

static bool has_order(const slc_nccl_entry *entry)
{
    return !(entry->flags & SLC_RECORD_CAPTURED) && entry->count;
}

/* The communicators of each node, in their order: those of node n lie from first[n] up to first[n + 1]. */
typedef struct {
    const slc_nccl_communicator *communicator;
    const slc_nccl_member *member;
} membership;

typedef struct {
    membership *rows;
    size_t *first;
} memberships;

static void free_memberships(memberships *m)
{
    free(m->rows);
    free(m->first);
}

static sluice_status sort_by_node(const slc_nccl_members *all, memberships *out)
{
    size_t count = 0;
    for (size_t i = 0; i < all->communicator_count; i++) count += all->communicators[i].member_count;
    out->rows = malloc((count + 1) * sizeof *out->rows);
    out->first = calloc(all->node_count + 2, sizeof *out->first);
    if (!out->rows || !out->first) return slc_error(SLUICE_ERR_MEMORY, "comparing orders");
    for (size_t i = 0; i < all->communicator_count; i++)
        for (size_t k = 0; k < all->communicators[i].member_count; k++)
            out->first[all->communicators[i].members[k].node + 2]++;
    for (size_t n = 2; n < all->node_count + 2; n++) out->first[n] += out->first[n - 1];
    for (size_t i = 0; i < all->communicator_count; i++)
        for (size_t k = 0; k < all->communicators[i].member_count; k++) {
            const slc_nccl_member *m = &all->communicators[i].members[k];
            out->rows[out->first[m->node + 1]++] = (membership){&all->communicators[i], m};
        }
    return SLUICE_OK;
}

/* Adds the calls that two ranks of a communicator share. */
static size_t collect_calls(const slc_nccl_communicator *c, const slc_nccl_member *in_a, const slc_nccl_member *in_b,
                            shared_call *out)
{
    size_t count = 0;
    uint64_t last = in_a->called < in_b->called ? in_a->called : in_b->called;
    uint64_t first = in_a->first > in_b->first ? in_a->first : in_b->first;
    if (!in_a->first || !in_b->first) return 0;
    for (uint64_t n = first; n <= last; n++) {
        shared_call call = {c, in_a, in_b, slc_nccl_member_collective(in_a, n), slc_nccl_member_collective(in_b, n), n};
        if (call.in_a && call.in_b && has_order(call.in_a) && has_order(call.in_b)) out[count++] = call;
    }
    return count;
}

/* Collects the calls that nodes a and b share, and how many communicators they are on. Two ranks of a communicator in
 * one node are nothing that NCCL allows: the first one counts. */
static size_t collect_shared(const memberships *of, size_t a, size_t b, shared_call *out, size_t *communicators)
{
    size_t count = 0, end_a = of->first[a + 1], end_b = of->first[b + 1];
    const slc_nccl_communicator *before = NULL;
    *communicators = 0;
    for (size_t i = of->first[a], k = of->first[b]; i < end_a && k < end_b;) {
        const membership *in_a = &of->rows[i], *in_b = &of->rows[k];
        if (in_a->communicator != in_b->communicator) {
            in_a->communicator < in_b->communicator ? i++ : k++;
            continue;
        }
        if (in_a->communicator != before) {
            ++*communicators;
            count += collect_calls(in_a->communicator, in_a->member, in_b->member, out + count);
        }
        before = in_a->communicator;
        i++;
        k++;
    }
    return count;
}

static int by_order_of_a(const void *x, const void *y)
{
    uint64_t a = ((const shared_call *)x)->in_a->index, b = ((const shared_call *)y)->in_a->index;
    return a < b ? -1 : a > b;
}

static stream_pair *pair_of(stream_pair *pairs, size_t *count, const shared_call *call, bool any_stream)
{
    for (size_t i = 0; i < *count; i++)
        if (any_stream || (slc_nccl_same_stream(pairs[i].first.in_a, call->in_a) &&
                           slc_nccl_same_stream(pairs[i].first.in_b, call->in_b)))
            return &pairs[i];
    if (*count == MOST_STREAMS) return NULL;
    pairs[*count] = (stream_pair){.first = *call};
    return &pairs[(*count)++];
}

/* Finds a call that a made after *before, and b before it. */
static const shared_call *find_crossing(const shared_call *calls, size_t count, bool any_stream, shared_call *before)
{
    stream_pair pairs[MOST_STREAMS];
    size_t pair_count = 0;
    for (size_t i = 0; i < count; i++) {
        const shared_call *call = &calls[i];
        stream_pair *p = pair_of(pairs, &pair_count, call, any_stream);
        if (!p) continue;
        if (p->current.in_a && !same_group(p->current.in_a, call->in_a)) {
            if (!p->latest.in_a || p->current.in_b->index > p->latest.in_b->index) p->latest = p->current;
            p->current = (shared_call){0};
        }
        if (p->latest.in_a && p->latest.in_b->index > call->in_b->index && !same_group(p->latest.in_b, call->in_b)) {
            *before = p->latest;
            return call;
        }
        if (!p->current.in_a || call->in_b->index > p->current.in_b->index) p->current = *call;
    }
    return NULL;
}

/* Writes the order of node a, or of node b; ranks are called by the larger communicator's numbers. */
static void write_order(FILE *out, bool of_a, const shared_call *first, const shared_call *second)
{
    const shared_call *larger = first->communicator->size >= second->communicator->size ? first : second;
    const slc_nccl_member *m = of_a ? larger->a : larger->b;
    const slc_nccl_entry *x = of_a ? first->in_a : first->in_b, *y = of_a ? second->in_a : second->in_b;
    slc_nccl_write_member(out, m);
    fputs(" called ", out);
    slc_nccl_write_call(out, x);
    slc_nccl_write_caller(out, m, x);
    fputs(" on ", out);
    slc_nccl_write_name(out, first->communicator);
    fputs(" before ", out);
    slc_nccl_write_call(out, y);
    slc_nccl_write_caller(out, m, y);
    fputs(" on ", out);
    slc_nccl_write_name(out, second->communicator);
}

static sluice_status add_crossing(const slc_nccl_members *all, bool any_stream, slc_nccl_findings *findings,
                                  const shared_call *first, const shared_call *second)
{
    slc_nccl_finding *f;
    sluice_status status = slc_nccl_finding_begin(findings, SLC_NCCL_FOUND_CROSSED, all, first->communicator, &f);
    if (status) return status;
    FILE *out = f->out;
    fputs(" and ", out);
    slc_nccl_write_name(out, second->communicator);
    fputs(" are called in opposite orders: ", out);
    write_order(out, true, first, second);
    fputs(", ", out);
    write_order(out, false, second, first);
    fputs(any_stream ? ": their streams have not finished them" : ": each waits for the other in its stream", out);
    slc_nccl_finding_not_before(f, second->a, second->in_a);
    slc_nccl_finding_not_before(f, first->b, first->in_b);
    f->number = first->ordinal;
    f->hint = "call them in the same order on all ranks, or in one group (ncclGroupStart, ncclGroupEnd)";
    slc_nccl_finding_involve(f, all, first->a);
    slc_nccl_finding_involve(f, all, first->b);
    json_t *json = json_pack("[{s:i, s:o}, {s:i, s:o}]", "rank", first->a->rank, "called_first",
                             slc_nccl_call_json(first->a, first->in_a), "rank", second->b->rank, "called_first",
                             slc_nccl_call_json(second->b, second->in_b));
    slc_nccl_finding_set(f, "orders", json);
    slc_nccl_finding_set(f, "other_communicator", json_sprintf("%016" PRIx64, second->communicator->key));
    return slc_nccl_finding_end(findings);
}

static bool may_be_stuck(const slc_nccl_node *node)
{
    return node->dead || node->quiet_s * 1000 >= QUIET_MS;
}

sluice_status slc_nccl_find_crossings(const slc_nccl_members *all, bool any_stream, slc_nccl_findings *findings)
{
    size_t most = 1;
    for (size_t i = 0; i < all->records->count; i++)
        if (all->records->processes[i].entry_count > most) most = all->records->processes[i].entry_count;
    shared_call *calls = malloc(most * sizeof *calls);
    if (!calls) return slc_error(SLUICE_ERR_MEMORY, "comparing orders");
    memberships of;
    sluice_status status = sort_by_node(all, &of);
    for (size_t a = 0; !status && a < all->node_count; a++) {
        for (size_t b = a + 1; !status && b < all->node_count; b++) {
            size_t communicators;
            if (!may_be_stuck(&all->nodes[a]) || !may_be_stuck(&all->nodes[b])) continue;
            size_t count = collect_shared(&of, a, b, calls, &communicators);
            if (communicators < 2) continue;
            qsort(calls, count, sizeof *calls, by_order_of_a);
            shared_call before;
            const shared_call *after = find_crossing(calls, count, any_stream, &before);
            if (after) status = add_crossing(all, any_stream, findings, &before, after);
        }
    }
    free_memberships(&of);
    free(calls);
    return status;
}
