/* Start, completion and order. Two operations are active at a time only if neither can see the other: their bytes are
 * disjoint, or both only read them. The work of a call (SLC_CALL) is done as soon as the call has started, but the call
 * keeps its place among the operations, so that the count stays in order. collectives_test.c covers this file. */
#include "lib/comm/lane/lane.h"

#include "lib/base/clock.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/comm/lane/geometry.h"
#include "lib/comm/lane/messages.h"
#include "lib/comm/lane/rows/row_walk.h"
#include "lib/comm/lane/rows/rows.h"
#include "lib/comm/lane/signature.h"
#include "lib/comm/lane/spans.h"
#include "lib/comm/lane/stream_order.h"
#include "lib/comm/lane/work.h"
#include "lib/comm/settings.h"

#include <stdlib.h>
#include <string.h>

/* Chunks are so small that one of every source stays in a core's second-level cache. */
static const uint64_t cache_bytes = 512 << 10, smallest_chunk = 32 << 10, largest_chunk = 256 << 10;

static void list_message_peers(slc_comm *comm)
{
    /* Each rank begins with the one after it, so that not all send to the same rank first. */
    for (int i = 1; i < comm->size; i++) {
        int rank = (comm->rank + i) % comm->size;
        if (!slc_is_neighbour(comm->neighbours, rank)) comm->messages.peers[comm->messages.peer_count++] = rank;
    }
}

sluice_status slc_lane_init(slc_comm *comm, int rank, int size, slc_failure *failure, slc_neighbours *neighbours,
                            slc_transport *transport, slc_history *history)
{
    *comm = (slc_comm){.rank = rank,
                       .size = size,
                       .whole = comm,
                       .failure = failure,
                       .neighbours = neighbours,
                       .transport = transport,
                       .history = history};
    pthread_mutex_init(&comm->program.names, NULL);
    slc_gate_init(&comm->queue.counts.completed);
    slc_gate_init(&comm->quiet);
    unsigned depth;
    sluice_status status = slc_setting_count(&slc_comm_settings, "SLUICE_COMM_DEPTH", &depth);
    if (status) return status;
    if (depth < 2 || depth > SLC_DEPTH_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "SLUICE_COMM_DEPTH=%u: from 2 to %d", depth, SLC_DEPTH_MAX);
    comm->depth = depth;
    uint64_t chunk = cache_bytes / (uint64_t)size;
    comm->work.chunk_bytes = chunk < smallest_chunk ? smallest_chunk : chunk > largest_chunk ? largest_chunk : chunk;
    comm->queue.ops = calloc(SLC_QUEUE, sizeof *comm->queue.ops);
    comm->messages.peers = calloc((size_t)size, sizeof *comm->messages.peers);
    comm->work.sources = calloc((size_t)size, sizeof *comm->work.sources);
    comm->work.destinations = calloc((size_t)size, sizeof *comm->work.destinations);
    if (!comm->queue.ops || !comm->messages.peers || !comm->work.sources || !comm->work.destinations)
        return slc_error(SLUICE_ERR_MEMORY, "communication of %d ranks", size);
    comm->rows.cursors = calloc((size_t)size, sizeof *comm->rows.cursors);
    comm->rows.room = calloc((size_t)size, sizeof *comm->rows.room);
    comm->rows.cuts = calloc(SLC_ACTIVE * (depth + 1) * (size_t)size, sizeof *comm->rows.cuts);
    if (!comm->rows.cursors || !comm->rows.room || !comm->rows.cuts)
        return slc_error(SLUICE_ERR_MEMORY, "rows of %d ranks", size);
    list_message_peers(comm);
    return slc_messages_init(comm);
}

void slc_lane_fini(slc_comm *comm)
{
    slc_lane_events_destroy(&comm->attached.events);
    slc_stream_destroy(&comm->attached.stream);
    pthread_mutex_destroy(&comm->program.names);
    free(comm->queue.ops);
    free(comm->messages.peers);
    free(comm->work.sources);
    free(comm->work.destinations);
    free(comm->rows.cursors);
    free(comm->rows.room);
    free(comm->rows.cuts);
    free(comm->messages.all);
    free(comm->messages.tokens);
    *comm = (slc_comm){0};
}

static bool gates_passed(const slc_op *op)
{
    for (int i = 0; i < 2; i++)
        if (op->wait[i] && !slc_gate_passed(op->wait[i], op->wait_value[i])) return false;
    return slc_counts_passed(op->counts, op->count_count);
}

/* True if `one` writes memory that `other` reads or writes. */
static bool disturbs(const slc_spans *one, const slc_spans *other)
{
    for (int i = 0; i < 2; i++)
        if (slc_ranges_overlap(one->write[i], other->read) || slc_ranges_overlap(one->write[i], other->write[0]) ||
            slc_ranges_overlap(one->write[i], other->write[1]))
            return true;
    return false;
}

/* True if the operation must wait, because it touches memory that an active one writes, or the other way round. */
static bool must_wait(slc_comm *comm, const slc_spans *spans)
{
    for (uint32_t i = comm->active.first; i != comm->active.taken; i++) {
        const slc_active_op *active = slc_active_op_at(comm, i);
        if (disturbs(spans, &active->spans) || disturbs(&active->spans, spans)) return true;
    }
    return false;
}

static bool run_hook(slc_comm *comm, const slc_op *op, sluice_status (*hook)(void *))
{
    sluice_status status = hook ? hook(op->context) : SLUICE_OK;
    if (!status) return true;
    slc_op_fail(comm, op, status);
    return false;
}

static void remember(slc_history *history, uint64_t signature)
{
    uint32_t before = history->count ? history->digests[(history->count - 1) % SLC_HISTORY] : 0;
    uint64_t mixed = (before + signature) * 0x9e3779b97f4a7c15u;
    history->digests[history->count++ % SLC_HISTORY] = (uint32_t)(mixed >> 32);
}

/* Lets the neighbours use this rank's buffers of the operation. In stream order nobody touches another rank's. */
static void publish_ready(slc_comm *comm, const slc_active_op *active)
{
    slc_lane_words *words = slc_own_words(comm);
    remember(comm->history, active->signature);
    if (comm->stream_order.on) return;
    atomic_store_explicit(&words->signature[active->wire % SLC_SIGNATURES], active->signature, memory_order_relaxed);
    atomic_store_explicit(&words->ready, active->wire + 1, memory_order_release);
    slc_neighbours_ring(comm->neighbours);
}

/* Raises the count to comm->active.first. A caller that waits for a later operation is not woken for each one before
 * it. */
static void raise_completed(slc_comm *comm)
{
    atomic_store_explicit(&comm->queue.counts.finished, comm->active.first, memory_order_release);
    /* This thread is the only one that raises it. */
    atomic_store(&comm->queue.counts.completed.value, comm->active.first);
    bool only_later = atomic_load(&comm->queue.counts.waiting) == 1 &&
                      (int32_t)(comm->active.first - atomic_load(&comm->queue.counts.wanted)) < 0;
    if (!only_later) slc_gate_post(&comm->queue.counts.completed, comm->active.first);
}

/* Lets the stream wait for what the gates have counted. */
static bool wait_on_stream(slc_comm *comm, const slc_op *op)
{
    sluice_status status = SLUICE_OK;
    for (int i = 0; !status && i < 2; i++)
        if (op->wait[i] && op->wait_events[i])
            status = slc_lane_events_wait(op->wait_events[i], &comm->attached.stream, op->wait_value[i]);
    if (status) slc_op_fail(comm, op, status);
    return !status;
}

/* Does the work of a call at once, even while earlier operations are on their way. */
static void start_call(slc_comm *comm, const slc_op *op, bool skipped)
{
    if (!run_hook(comm, op, op->start) || !run_hook(comm, op, skipped ? NULL : op->call)) return;
    *slc_active_op_at(comm, comm->active.taken) = (slc_active_op){
        .op = *op, .index = comm->active.taken, .wire = comm->active.wire, .peers_ready = true, .work_done = true};
    comm->active.taken++;
}

/* Checks this rank's list; the others' are checked when they are here. */
static bool list_is_good(slc_comm *comm, const slc_op *op)
{
    sluice_status status = slc_row_op_check_list(comm, op, comm->rank);
    if (status) slc_failure_set(comm->failure, status, SLC_TELL_OWN, "%s", sluice_last_error());
    return !status;
}

static bool start_next(slc_comm *comm)
{
    if (comm->active.taken == atomic_load_explicit(&comm->queue.counts.submitted, memory_order_acquire)) return false;
    const uint32_t most = comm->stream_order.on ? 1 : SLC_ACTIVE;
    if (comm->active.taken - comm->active.first == most) return false;
    const slc_op *op = &comm->queue.ops[comm->active.taken % SLC_QUEUE];
    if (!gates_passed(op)) return false;
    const bool skipped = op->skip && *op->skip;
    if (op->kind == SLC_CALL) {
        if (!wait_on_stream(comm, op)) return true;
        start_call(comm, op, skipped);
        return true;
    }
    const bool rows = slc_moves_rows(op) && !skipped;
    const slc_spans spans = skipped ? (slc_spans){0} : slc_op_spans(comm, op);
    if (must_wait(comm, &spans)) return false;
    if (!wait_on_stream(comm, op)) return true;
    if (!run_hook(comm, op, op->start) || (rows && !list_is_good(comm, op))) return true;

    const uint64_t block = skipped ? 0 : op->first_block;
    const uint64_t blocks = rows || op->kind == SLC_BARRIER ? 1 : op->block_count;
    slc_active_op *active = slc_active_op_at(comm, comm->active.taken);
    *active = (slc_active_op){.op = *op,
                              .index = comm->active.taken,
                              .wire = comm->active.wire,
                              .signature = slc_op_signature(comm, op, skipped),
                              .spans = spans,
                              .open = rows,
                              .skipped = skipped,
                              .past_cache = slc_op_goes_past_cache(comm, op),
                              .block = block,
                              .end_block = skipped ? 0 : block + blocks,
                              .began_ns = slc_clock_ns(),
                              .receiving = block,
                              .sending = block,
                              .finished = block};
    comm->active.taken++;
    comm->active.wire++;
    publish_ready(comm, active);
    return true;
}

/* Bytes that messages would have carried from this rank to its neighbours had no memory been shared. */
static uint64_t direct_bytes(const slc_comm *comm, const slc_active_op *active)
{
    const slc_op *op = &active->op;
    const uint64_t peers = (uint64_t)(comm->stream_order.on ? comm->size - 1 : comm->neighbours->count);
    if (slc_moves_rows(op)) return active->direct_sent;
    uint64_t bytes = slc_op_length(op) * sluice_dtype_bytes(op->dtype), part = bytes / (uint64_t)comm->size;
    switch (op->kind) {
    case SLC_REDUCE_SCATTER:
    case SLC_ALL_GATHER: return part * peers;
    case SLC_ALL_REDUCE: return 2 * part * peers;
    case SLC_COMPRESSED_EXCHANGE: /* in stream order results travel with the gaps between them */
        return (op->group->packet_bytes + (comm->stream_order.on ? op->group->stride : op->group->packet_bytes)) *
               peers;
    case SLC_BROADCAST: return comm->rank == op->root ? bytes * peers : 0;
    default: return 0;
    }
}

/* Lets an operation last as long as on the network that the transport imitates, if it imitates one: the bytes that went
 * through memory cost time then. */
static void charge(slc_comm *comm, slc_active_op *active)
{
    const slc_transport *transport = comm->transport;
    active->charged = true;
    if (comm->neighbours->count) active->met_ns = slc_clock_ns();
    if (!transport->table || !transport->table->charge || !comm->neighbours->count) return;
    const bool rows = slc_moves_rows(&active->op); /* their lists go first */
    uint64_t sent = direct_bytes(comm, active), received = rows ? active->direct_received : sent;
    const bool two_phases = rows || active->op.kind == SLC_ALL_REDUCE || active->op.kind == SLC_COMPRESSED_EXCHANGE;
    if (active->op.kind == SLC_BROADCAST)
        received = comm->rank != active->op.root && slc_is_neighbour(comm->neighbours, active->op.root)
                       ? slc_op_length(&active->op) * sluice_dtype_bytes(active->op.dtype)
                       : 0;
    active->due_ns = transport->table->charge(transport->self, sent, received, two_phases ? 2 : 1);
}

/* Lists of rows are exchanged as soon as an operation has begun, whatever earlier ones still do, because they decide
 * which messages follow. */
static bool exchange_lists(slc_comm *comm)
{
    bool progressed = false;
    for (uint32_t i = comm->active.first; i != comm->active.taken && !slc_failed(comm->failure); i++) {
        slc_active_op *active = slc_active_op_at(comm, i);
        if (!slc_moves_rows(&active->op) || active->skipped || active->peers_ready ||
            !slc_row_op_have_lists(comm, active))
            continue;
        active->peers_ready = progressed = true;
    }
    return progressed;
}

/* Works on the oldest operation that has work left. Later ones wait, so that `done` is raised in order. */
static bool work_on_oldest(slc_comm *comm)
{
    for (uint32_t i = comm->active.first; i != comm->active.taken; i++) {
        slc_active_op *active = slc_active_op_at(comm, i);
        if (active->work_done) continue;
        if (!active->skipped && !active->charged) {
            if (!slc_moves_rows(&active->op)) active->peers_ready = slc_peers_ready(comm, active);
            if (!active->peers_ready) return false;
            charge(comm, active);
        }
        bool progressed = slc_work_step(comm, active);
        if (!active->work_done) return progressed;
        atomic_store_explicit(&slc_own_words(comm)->done, active->wire + 1, memory_order_release);
        slc_neighbours_ring(comm->neighbours);
        return true;
    }
    return false;
}

static bool neighbours_done(const slc_comm *comm, uint32_t wire)
{
    for (int i = 0; i < comm->neighbours->count; i++) {
        const slc_lane_words *words = slc_peer_words(comm, comm->neighbours->list[i]);
        uint32_t done = atomic_load_explicit(&words->done, memory_order_acquire);
        if ((int32_t)(done - (wire + 1)) < 0) return false;
    }
    return true;
}

static bool is_over(const slc_comm *comm, const slc_active_op *active, uint64_t now_ns)
{
    if (active->op.kind == SLC_CALL) return true;
    if (active->skipped || comm->stream_order.on) return active->work_done;
    return active->work_done && slc_messages_finished(comm, active) && neighbours_done(comm, active->wire) &&
           active->due_ns <= now_ns;
}

/* Notes how long the link carried an operation: from the time when none before it is under way. */
static void note_use(slc_comm *comm, const slc_active_op *active, uint64_t now_ns)
{
    const uint64_t met_ns = slc_most(active->met_ns, active->began_ns), from_ns = slc_most(met_ns, comm->last_over_ns);
    atomic_fetch_add_explicit(&comm->late_ns, met_ns - active->began_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&comm->carried_ns, slc_most(now_ns, from_ns) - from_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&comm->met, 1, memory_order_relaxed);
    comm->last_over_ns = now_ns;
}

static bool complete_first(slc_comm *comm, uint64_t now_ns)
{
    if (comm->active.first == comm->active.taken) return false;
    slc_active_op *active = slc_active_op_at(comm, comm->active.first);
    if (!is_over(comm, active, now_ns)) return false;
    bool call = active->op.kind == SLC_CALL;
    if (!active->skipped) {
        atomic_fetch_add_explicit(&comm->bytes_sent, direct_bytes(comm, active), memory_order_relaxed);
        if (!call && !comm->stream_order.on) note_use(comm, active, now_ns);
        if (!call && !run_hook(comm, &active->op, active->op.call)) return true;
    }
    if (!run_hook(comm, &active->op, active->op.end)) return true;
    sluice_status status = slc_lane_events_record(&comm->attached.events, &comm->attached.stream, comm->active.first);
    if (status) {
        slc_op_fail(comm, &active->op, status);
        return true;
    }
    comm->active.first++;
    if (!call) atomic_store_explicit(&comm->active.wire_completed, active->wire + 1, memory_order_relaxed);
    raise_completed(comm);
    return true;
}

bool slc_lane_step(slc_comm *comm, uint64_t now_ns)
{
    comm->active.step_ns = now_ns;
    bool progressed = start_next(comm);
    if (comm->active.first == comm->active.taken) return progressed;
    if (comm->stream_order.on) {
        progressed |= slc_stream_order_step(comm, slc_active_op_at(comm, comm->active.first), now_ns);
        return complete_first(comm, now_ns) || progressed;
    }
    progressed |= exchange_lists(comm);
    progressed |= slc_messages_step(comm);
    progressed |= work_on_oldest(comm);
    progressed |= complete_first(comm, now_ns);
    return progressed;
}

/* The program raises all gates but the count of complete operations. */
bool slc_lane_halted(const slc_comm *comm)
{
    if (comm->active.taken == atomic_load_explicit(&comm->queue.counts.submitted, memory_order_acquire)) return true;
    const slc_op *op = &comm->queue.ops[comm->active.taken % SLC_QUEUE];
    for (int i = 0; i < 2; i++)
        if (op->wait[i] && op->wait[i] != &comm->queue.counts.completed &&
            !slc_gate_passed(op->wait[i], op->wait_value[i]))
            return true;
    return false;
}

uint32_t slc_lane_needed(const slc_comm *comm, uint32_t index)
{
    uint32_t submitted = atomic_load_explicit(&comm->queue.counts.submitted, memory_order_acquire),
             needed = comm->active.wire;
    if ((int32_t)(index - submitted) > 0) index = submitted;
    for (uint32_t i = comm->active.taken; (int32_t)(index - i) > 0; i++)
        needed += comm->queue.ops[i % SLC_QUEUE].kind != SLC_CALL;
    for (uint32_t i = comm->active.taken; i != comm->active.first && (int32_t)(i - index) > 0; i--)
        needed -= comm->active.ops[(i - 1) % SLC_ACTIVE].op.kind != SLC_CALL;
    return needed;
}

const char *slc_lane_next_name(const slc_comm *comm)
{
    if (comm->active.first != comm->active.taken) return comm->active.ops[comm->active.first % SLC_ACTIVE].op.what;
    bool any = comm->active.taken != atomic_load_explicit(&comm->queue.counts.submitted, memory_order_acquire);
    return any ? comm->queue.ops[comm->active.taken % SLC_QUEUE].what : NULL;
}

uint64_t slc_lane_due(const slc_comm *comm)
{
    if (comm->active.first == comm->active.taken) return UINT64_MAX;
    const slc_active_op *active = &comm->active.ops[comm->active.first % SLC_ACTIVE];
    /* An operation past its time waits for something else. */
    return active->due_ns > comm->active.step_ns ? active->due_ns : UINT64_MAX;
}

uint64_t slc_lane_digest(const slc_comm *comm)
{
    uint64_t digest =
        slc_digest_add(slc_digest_add(slc_digest_add(1, comm->active.taken), comm->active.first), comm->messages.done);
    for (uint32_t i = comm->active.first; i != comm->active.taken; i++) {
        const slc_active_op *active = &comm->active.ops[i % SLC_ACTIVE];
        digest = slc_digest_add(slc_digest_add(slc_digest_add(digest, active->block), active->offset),
                                (uint64_t)active->step);
    }
    return digest;
}
