/* Finds the causes among the waits. A node is a cause if others wait for it and it waits for nobody; of several waits
 * for it the plainest is reported. Nodes from which no cause can be reached wait for each other in a circle.
 * compare_test.c covers this file. */
#include "bench/nccl/watch/waits.h"

#include "lib/base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DESCRIBED = 4, MOST_EXCHANGES = 8 };

typedef struct {
    const slc_nccl_members *all;
    const slc_nccl_waits *waits;
    slc_nccl_findings *findings;
    bool *waiting;                /* for each node: it waits for another one */
    bool *explained;              /* it is a cause, or waits for one in the end */
    const slc_nccl_wait **chosen; /* for each node: the wait that tells why it is a cause */
    int *ranks;                   /* room for those of a communicator */
} graph;

static size_t from_node(const slc_nccl_wait *w)
{
    return w->from->node;
}

static bool is_cause(const graph *g, const slc_nccl_wait *w)
{
    return w->ripe && (!w->to || !g->waiting[w->to->node]);
}

static slc_nccl_finding_kind kind_of(const slc_nccl_wait *w)
{
    const slc_nccl_member *to = w->to;
    if (!to) return SLC_NCCL_FOUND_MISSING;
    if (to->failed && (!to->last || to->failed->index >= to->last->index)) return SLC_NCCL_FOUND_FAILED;
    bool some_live = false, some_ended = false;
    for (size_t i = 0; i < w->communicator->member_count; i++) {
        slc_nccl_process_state state = w->communicator->members[i].process->state;
        some_ended = some_ended || state == SLC_NCCL_ENDED;
        some_live = some_live || (state != SLC_NCCL_ENDED && state != SLC_NCCL_GONE);
    }
    if (to->process->state == SLC_NCCL_GONE && (some_live || some_ended)) return SLC_NCCL_FOUND_GONE;
    if (to->process->state == SLC_NCCL_STOPPED) return SLC_NCCL_FOUND_STOPPED;
    if (w->kind == SLC_NCCL_WAITS_FOR_RECEIVE) return SLC_NCCL_FOUND_SEND_UNMATCHED;
    if (w->kind == SLC_NCCL_WAITS_FOR_SEND) return SLC_NCCL_FOUND_RECEIVE_UNMATCHED;
    if (to->process->state == SLC_NCCL_ENDED || slc_nccl_member_has_left(to)) return SLC_NCCL_FOUND_ENDED;
    return SLC_NCCL_FOUND_LAGS;
}

static const char *hint_of(slc_nccl_finding_kind kind)
{
    switch (kind) {
    case SLC_NCCL_FOUND_GONE: return "find out why it died: its own output, its exit status, the kernel's log (memory)";
    case SLC_NCCL_FOUND_STOPPED: return "continue it (kill -CONT and its pid), or let the debugger go on";
    case SLC_NCCL_FOUND_MISSING:
        return "look at what it does instead; a rank without a record has not come so far, runs without the shim, or "
               "records elsewhere: then name that folder too";
    case SLC_NCCL_FOUND_ENDED: return "either it left out a call, or the others made one too many";
    case SLC_NCCL_FOUND_LAGS:
        return "look at what it does instead: gdb -p and its pid, or py-spy dump --pid for a Python program";
    case SLC_NCCL_FOUND_FAILED: return "look at the status that the call returned; NCCL_DEBUG=WARN says more";
    case SLC_NCCL_FOUND_SEND_UNMATCHED:
    case SLC_NCCL_FOUND_RECEIVE_UNMATCHED:
        return "each send needs a receive on the other rank, in the same order between the two";
    default: return NULL;
    }
}

/* Returns how plain a cause this kind of wait is: the lower the number, the plainer. */
static int plainness(const slc_nccl_wait *w)
{
    switch (w->kind) {
    case SLC_NCCL_WAITS_FOR_COLLECTIVE: return 0;
    case SLC_NCCL_WAITS_FOR_RECEIVE:
    case SLC_NCCL_WAITS_FOR_SEND: return 1;
    case SLC_NCCL_WAITS_FOR_THE_DEAD: return 2;
    default: return 3;
    }
}

static void choose_causes(graph *g)
{
    for (size_t i = 0; i < g->waits->count; i++) {
        const slc_nccl_wait *w = &g->waits->rows[i];
        if (!w->to || !is_cause(g, w)) continue;
        const slc_nccl_wait **chosen = &g->chosen[w->to->node];
        if (!*chosen || plainness(w) < plainness(*chosen)) *chosen = w;
    }
}

static void write_after(FILE *out, const slc_nccl_communicator *c, const slc_nccl_member *m)
{
    if (m->called)
        fprintf(out, " after %s %" PRIu64, slc_nccl_ordinal_name(c), m->called);
    else
        fprintf(out, " before its first %s", slc_nccl_ordinal_name(c));
}

/* Writes words such as "; its last call was all_gather int8[4] on communicator 77aa", if that is another communicator.
 */
static void write_last_call(FILE *out, const graph *g, const slc_nccl_member *m)
{
    const slc_nccl_process *p = m->process;
    const slc_nccl_entry *last = p->entry_count ? &p->entries[p->entry_count - 1] : NULL;
    if (!last || last->communicator >= p->header.communicators) return;
    const slc_record_communicator *row = &p->communicators[last->communicator];
    if (row == m->row || row->device != m->row->device || last->operation > SLC_RECORD_RECEIVE) return;
    for (size_t i = 0; i < g->all->communicator_count; i++) {
        const slc_nccl_communicator *c = &g->all->communicators[i];
        if (c->key != row->key) continue;
        fputs("; its last call was ", out);
        slc_nccl_write_call(out, last);
        fputs(" on ", out);
        slc_nccl_write_name(out, c);
    }
}

/* Writes words such as "rank 2 (host a, pid 17) is gone after operation 41". */
static void write_state(FILE *out, const graph *g, const slc_nccl_communicator *c, const slc_nccl_member *m,
                        slc_nccl_finding_kind kind)
{
    slc_nccl_write_member(out, m);
    switch (kind) {
    case SLC_NCCL_FOUND_GONE: fputs(" is gone without an orderly end", out); break;
    case SLC_NCCL_FOUND_STOPPED: fputs(" is stopped", out); break;
    case SLC_NCCL_FOUND_FAILED:
        fputs(" called ", out);
        slc_nccl_write_call(out, m->failed);
        slc_nccl_write_caller(out, m, m->failed);
        fputs(", which returned an error,", out);
        break;
    case SLC_NCCL_FOUND_ENDED:
        fputs(m->process->state == SLC_NCCL_ENDED ? " has ended" : " has left the communicator", out);
        break;
    default:
        if (m->process->state == SLC_NCCL_GONE)
            fputs(" called nothing more until it was gone,", out);
        else if (m->process->state == SLC_NCCL_ELSEWHERE)
            fputs(" has called nothing more (its state cannot be seen from here)", out);
        else
            fprintf(out, " %s and has called nothing more",
                    m->process->state == SLC_NCCL_RUNNING ? "is running" : "has ended");
    }
    write_after(out, c, m);
    if (m->quiet_s > 1 && m->quiet_s < 1e8 && m->process->state != SLC_NCCL_GONE && m->process->state != SLC_NCCL_ENDED)
        fprintf(out, ", %.0f s ago", m->quiet_s);
    if (kind == SLC_NCCL_FOUND_LAGS || kind == SLC_NCCL_FOUND_STOPPED) write_last_call(out, g, m);
}

/* Writes who waits, and for which call. */
static void write_waiting(graph *g, slc_nccl_finding *f, const slc_nccl_wait *w)
{
    const slc_nccl_communicator *c = w->communicator;
    const slc_nccl_member *one = NULL;
    FILE *out = f->out;
    size_t count = 0;
    for (size_t i = 0; i < c->member_count; i++) {
        const slc_nccl_member *m = &c->members[i];
        if (w->kind == SLC_NCCL_WAITS_FOR_COLLECTIVE ? m->called < w->ordinal : m == w->to) continue;
        const slc_nccl_entry *entry = slc_nccl_member_collective(m, w->ordinal);
        if (!one || (entry && !slc_nccl_member_collective(one, w->ordinal))) one = m;
        g->ranks[count++] = m->rank;
        slc_nccl_finding_involve(f, g->all, m);
        slc_nccl_finding_not_before(f, m, entry);
        slc_nccl_finding_append(f, "waiting", slc_nccl_member_json(m));
    }
    if (w->kind != SLC_NCCL_WAITS_FOR_COLLECTIVE || !one) return;
    const slc_nccl_entry *call = slc_nccl_member_collective(one, w->ordinal);
    fprintf(out, ", %s %" PRIu64 ": ", slc_nccl_ordinal_name(c), w->ordinal);
    slc_nccl_write_ranks(out, g->ranks, count);
    fputs(" called ", out);
    if (!call) {
        fputs("it; ", out);
        return;
    }
    slc_nccl_write_call(out, call);
    slc_nccl_write_caller(out, one, call);
    fputs("; ", out);
    slc_nccl_finding_set(f, "call", slc_nccl_call_json(one, call));
}

/* Tells in one line all ranks that are the cause in this communicator for the same reason. */
static sluice_status tell_ranks(graph *g, const slc_nccl_wait *w)
{
    const slc_nccl_communicator *c = w->communicator;
    slc_nccl_finding_kind kind = kind_of(w);
    slc_nccl_finding *f;
    sluice_status status = slc_nccl_finding_begin(g->findings, kind, g->all, c, &f);
    if (status) return status;
    FILE *out = f->out;
    write_waiting(g, f, w);
    if (w->kind == SLC_NCCL_WAITS_FOR_THE_DEAD) fputs(": ", out);
    size_t described = 0, more = 0;
    for (size_t i = 0; i < c->member_count; i++) {
        const slc_nccl_member *m = &c->members[i];
        const slc_nccl_wait *chosen = g->chosen[m->node];
        if (!chosen || chosen->communicator != c || chosen->to != m || chosen->kind != w->kind) continue;
        if (kind_of(chosen) != kind) continue;
        slc_nccl_finding_involve(f, g->all, m);
        slc_nccl_finding_append(f, "ranks", slc_nccl_member_json(m));
        if (described == MOST_DESCRIBED) {
            more++;
            continue;
        }
        if (described++) fputs(", ", out);
        write_state(out, g, c, m, kind);
    }
    if (more) fprintf(out, ", and %zu others likewise", more);
    if (w->kind == SLC_NCCL_WAITS_FOR_THE_DEAD) fputs(", while others are still in the communicator", out);
    f->number = w->ordinal;
    f->hint = hint_of(kind);
    return slc_nccl_finding_end(g->findings);
}

static bool was_told(const graph *g, const slc_nccl_wait *w, size_t first)
{
    for (size_t i = first; i < g->findings->count; i++) {
        const slc_nccl_finding *f = &g->findings->rows[i];
        if (f->kind == kind_of(w) && f->key == w->communicator->key && f->number == w->ordinal) return true;
    }
    return false;
}

static sluice_status tell_exchange(graph *g, const slc_nccl_wait *w)
{
    bool sent = w->kind == SLC_NCCL_WAITS_FOR_RECEIVE;
    slc_nccl_finding_kind kind = kind_of(w);
    slc_nccl_finding *f;
    sluice_status status = slc_nccl_finding_begin(g->findings, kind, g->all, w->communicator, &f);
    if (status) return status;
    FILE *out = f->out;
    fprintf(out, ": rank %d %s ", w->from->rank, sent ? "sent" : "waits to receive");
    if (w->entry)
        slc_nccl_write_data(out, w->entry);
    else
        fputs("data", out);
    fprintf(out, " %s rank %d", sent ? "to" : "from", w->to->rank);
    if (w->entry) slc_nccl_write_caller(out, w->from, w->entry);
    fprintf(out, ", %s %" PRIu64 " between the two, of which rank %d %s %" PRIu64 "; ", sent ? "send" : "receive",
            w->ordinal, w->to->rank, sent ? "received" : "sent", w->ordinal - 1);
    write_state(out, g, w->communicator, w->to,
                kind == SLC_NCCL_FOUND_SEND_UNMATCHED || kind == SLC_NCCL_FOUND_RECEIVE_UNMATCHED ? SLC_NCCL_FOUND_LAGS
                                                                                                  : kind);
    f->number = w->ordinal;
    f->hint = hint_of(kind);
    slc_nccl_finding_not_before(f, w->from, w->entry);
    slc_nccl_finding_involve(f, g->all, w->from);
    slc_nccl_finding_involve(f, g->all, w->to);
    slc_nccl_finding_append(f, "waiting", slc_nccl_member_json(w->from));
    slc_nccl_finding_append(f, "ranks", slc_nccl_member_json(w->to));
    if (w->entry) slc_nccl_finding_set(f, "call", slc_nccl_call_json(w->from, w->entry));
    return slc_nccl_finding_end(g->findings);
}

static bool is_exchange(const slc_nccl_wait *w)
{
    return w->kind == SLC_NCCL_WAITS_FOR_RECEIVE || w->kind == SLC_NCCL_WAITS_FOR_SEND;
}

/* Finds the process that a missing rank is: that of the same rank in a communicator of the same size, in which the
 * other ranks are the same processes too; or that which the launcher gave this rank of as many. NULL: no record is
 * known. */
static const slc_nccl_process *process_of_rank(const graph *g, const slc_nccl_communicator *c, int rank)
{
    for (size_t i = 0; i < g->all->communicator_count; i++) {
        const slc_nccl_communicator *other = &g->all->communicators[i];
        const slc_nccl_member *there = other->size == c->size ? slc_nccl_member_of(other, rank) : NULL;
        bool same = there && other->key != c->key;
        for (size_t k = 0; same && k < c->member_count; k++) {
            const slc_nccl_member *m = slc_nccl_member_of(other, c->members[k].rank);
            same = m && m->process == c->members[k].process;
        }
        if (same) return there->process;
    }
    for (size_t i = 0; i < g->all->records->count; i++) {
        const slc_nccl_process *p = &g->all->records->processes[i];
        if (p->header.launch_size == c->size && p->header.launch_rank == rank) return p;
    }
    return NULL;
}

/* Writes words such as "rank 2 (host a, pid 17, running) has not come to it". */
static void write_missing_rank(const graph *g, slc_nccl_finding *f, const slc_nccl_process *p, int rank)
{
    const char *state = p ? slc_nccl_state_name(p->state) : "missing";
    json_t *json = json_pack("{s:i, s:s}", "rank", rank, "state", state);
    fprintf(f->out, "rank %d ", rank);
    if (p) {
        fputc('(', f->out);
        slc_nccl_write_process(f->out, p);
        fprintf(f->out, ", %s) has not come to it", state);
        f->involved[p - g->all->records->processes] = true;
        f->lost |= json_object_set_new(json, "host", json_string(p->header.host)) ||
                   json_object_set_new(json, "pid", json_integer((json_int_t)p->header.pid));
    } else {
        fputs("is missing: there is no record of it", f->out);
    }
    slc_nccl_finding_append(f, "ranks", json);
}

static sluice_status tell_missing(graph *g, const slc_nccl_wait *first)
{
    const slc_nccl_communicator *c = first->communicator;
    slc_nccl_finding *f;
    sluice_status status = slc_nccl_finding_begin(g->findings, SLC_NCCL_FOUND_MISSING, g->all, c, &f);
    if (status) return status;
    FILE *out = f->out;
    size_t count = 0;
    for (size_t i = 0; i < c->member_count; i++) {
        g->ranks[count++] = c->members[i].rank;
        slc_nccl_finding_involve(f, g->all, &c->members[i]);
        slc_nccl_finding_not_before(f, &c->members[i], NULL);
        slc_nccl_finding_append(f, "waiting", slc_nccl_member_json(&c->members[i]));
    }
    fputs(": ", out);
    slc_nccl_write_ranks(out, g->ranks, count);
    fprintf(out, " wait%s for its creation; ", count == 1 ? "s" : "");
    size_t described = 0, more = 0, at = 0;
    for (int rank = 0; rank < c->size; rank++) {
        if (at < c->member_count && c->members[at].rank == rank) {
            at++;
            continue;
        }
        if (described == MOST_DESCRIBED) {
            more++;
            continue;
        }
        if (described++) fputs(", ", out);
        write_missing_rank(g, f, process_of_rank(g, c, rank), rank);
    }
    if (more) fprintf(out, ", and %zu others likewise", more);
    f->hint = hint_of(SLC_NCCL_FOUND_MISSING);
    return slc_nccl_finding_end(g->findings);
}

static sluice_status tell_causes(graph *g)
{
    sluice_status status = SLUICE_OK;
    size_t first = g->findings->count, exchanges = 0;
    for (size_t i = 0; !status && i < g->waits->count; i++) {
        const slc_nccl_wait *w = &g->waits->rows[i];
        if (!is_cause(g, w)) continue;
        if (!w->to) {
            if (!was_told(g, w, first)) status = tell_missing(g, w);
            continue;
        }
        const slc_nccl_wait *chosen = g->chosen[w->to->node];
        if (chosen != w && !(is_exchange(w) && is_exchange(chosen) && chosen->communicator == w->communicator))
            continue;
        if (is_exchange(w)) {
            if (exchanges++ < MOST_EXCHANGES) status = tell_exchange(g, w);
        } else if (!was_told(g, w, first)) {
            status = tell_ranks(g, w);
        }
    }
    return status;
}

/* Marks the causes as explained, and then every node that waits for a marked one. */
static void mark_explained(graph *g)
{
    for (size_t i = 0; i < g->waits->count; i++)
        if (is_cause(g, &g->waits->rows[i])) g->explained[from_node(&g->waits->rows[i])] = true;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < g->waits->count; i++) {
            const slc_nccl_wait *w = &g->waits->rows[i];
            if (!w->to || !g->explained[w->to->node] || g->explained[from_node(w)]) continue;
            more = g->explained[from_node(w)] = true;
        }
    }
}

static const slc_nccl_wait *ripe_wait_from(const graph *g, size_t node)
{
    const slc_nccl_wait *best = NULL;
    for (size_t i = 0; i < g->waits->count; i++) {
        const slc_nccl_wait *w = &g->waits->rows[i];
        if (!w->ripe || !w->to || from_node(w) != node || w->to->node == node || g->explained[w->to->node]) continue;
        if (!best || is_exchange(w) > is_exchange(best)) best = w;
    }
    return best;
}

static void write_link(FILE *out, const slc_nccl_wait *w)
{
    fprintf(out, "rank %d (pid %" PRId64 ") ", w->from->rank, w->from->process->header.pid);
    if (w->kind == SLC_NCCL_WAITS_FOR_COLLECTIVE) {
        fputs("called ", out);
        if (w->entry) slc_nccl_write_call(out, w->entry);
        fprintf(out, " as %s %" PRIu64 " of ", slc_nccl_ordinal_name(w->communicator), w->ordinal);
        slc_nccl_write_name(out, w->communicator);
    } else {
        fputs(w->kind == SLC_NCCL_WAITS_FOR_RECEIVE ? "sent " : "receives ", out);
        if (w->entry) slc_nccl_write_data(out, w->entry);
    }
    if (w->entry) slc_nccl_write_caller(out, w->from, w->entry);
    fprintf(out, " and waits for rank %d", w->to->rank);
}

/* True if the circle has waits for a send or receive and waits for a collective: then a send that nobody receives is
 * the cause. */
static bool mixes_kinds(const slc_nccl_wait *const *circle, size_t length)
{
    size_t exchanges = 0;
    for (size_t i = 0; i < length; i++) exchanges += is_exchange(circle[i]);
    return exchanges && exchanges < length;
}

static sluice_status tell_circle(graph *g, const slc_nccl_wait *const *circle, size_t length)
{
    if (mixes_kinds(circle, length)) {
        sluice_status status = SLUICE_OK;
        for (size_t i = 0; !status && i < length; i++)
            if (is_exchange(circle[i])) status = tell_exchange(g, circle[i]);
        return status;
    }
    slc_nccl_finding *f;
    sluice_status status =
        slc_nccl_finding_begin(g->findings, SLC_NCCL_FOUND_CIRCLE, g->all, circle[0]->communicator, &f);
    if (status) return status;
    FILE *out = f->out;
    fputs(": ranks wait for each other: ", out);
    for (size_t i = 0; i < length; i++) {
        if (i) fputs(", ", out);
        write_link(out, circle[i]);
        slc_nccl_finding_involve(f, g->all, circle[i]->from);
        slc_nccl_finding_not_before(f, circle[i]->from, circle[i]->entry);
        slc_nccl_finding_append(f, "ranks", slc_nccl_member_json(circle[i]->from));
        slc_nccl_finding_append(f, "communicators", json_sprintf("%016" PRIx64, circle[i]->communicator->key));
    }
    f->number = circle[0]->ordinal;
    f->hint = is_exchange(circle[0])
                  ? "put the sends and receives of a rank into one group (ncclGroupStart, ncclGroupEnd)"
                  : "use the communicators in the same order on all ranks";
    return slc_nccl_finding_end(g->findings);
}

/* Follows waits from a node until one comes twice, and tells the circle. */
static sluice_status follow(graph *g, size_t node)
{
    const slc_nccl_wait **path = calloc(g->all->node_count + 1, sizeof *path);
    size_t *place = calloc(g->all->node_count + 1, sizeof *place); /* on the path, from 1 */
    sluice_status status = path && place ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "comparing ranks");
    size_t length = 0;
    while (!status) {
        if (place[node]) {
            status = tell_circle(g, path + place[node] - 1, length - (place[node] - 1));
            break;
        }
        place[node] = length + 1;
        path[length] = ripe_wait_from(g, node);
        if (!path[length]) break; /* a wait that is too young to tell */
        node = path[length++]->to->node;
    }
    for (size_t i = 0; !status && i < length; i++) g->explained[from_node(path[i])] = true;
    free(path);
    free(place);
    return status;
}

static sluice_status tell_circles(graph *g)
{
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < g->waits->count; i++) {
        const slc_nccl_wait *w = &g->waits->rows[i];
        if (!w->ripe || !w->to || w->to->node == from_node(w) || g->explained[from_node(w)]) continue;
        status = follow(g, from_node(w));
    }
    return status;
}

sluice_status slc_nccl_waits_explain(const slc_nccl_members *all, const slc_nccl_waits *waits,
                                     slc_nccl_findings *findings)
{
    graph g = {.all = all, .waits = waits, .findings = findings};
    size_t most = 1;
    for (size_t i = 0; i < all->communicator_count; i++) {
        size_t size = (size_t)all->communicators[i].size + all->communicators[i].member_count;
        if (size > most) most = size;
    }
    g.waiting = calloc(all->node_count + 1, sizeof *g.waiting);
    g.explained = calloc(all->node_count + 1, sizeof *g.explained);
    g.chosen = calloc(all->node_count + 1, sizeof *g.chosen);
    g.ranks = calloc(most, sizeof *g.ranks);
    sluice_status status =
        g.waiting && g.explained && g.chosen && g.ranks ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "comparing ranks");
    if (!status) {
        for (size_t i = 0; i < waits->count; i++) {
            const slc_nccl_wait *w = &waits->rows[i];
            if (!w->to || w->to->node != from_node(w)) g.waiting[from_node(w)] = true;
        }
        choose_causes(&g);
        status = tell_causes(&g);
        mark_explained(&g);
        if (!status) status = tell_circles(&g);
    }
    free(g.waiting);
    free(g.explained);
    free(g.chosen);
    free(g.ranks);
    return status;
}
