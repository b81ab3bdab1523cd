/* The message path. Each block's parts go straight from and into the buffers (contributions to a sum into scratch),
 * pipelined over blocks and over operations. row_chunks.h says what a block of an operation on rows is; rows are packed
 * into scratch and sent from there.
 *
 * The window: receives of up to `depth` blocks are posted, and sends of half as many may be on their way. A block ends
 * only when everything that the peers send for it is here, so a peer is at most depth/2 blocks later than the
 * sender's window, and every message finds its receive posted. A tag has 8 bits for the group, 24 for the operation, 17
 * for the block, 3 for the phase and 12 for the sender. collectives_test.c covers this file. */
#include "lib/comm/lane/messages.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/comm/lane/geometry.h"
#include "lib/comm/lane/rows/row_chunks.h"
#include "lib/comm/lane/scratch.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum { CONTRIBUTION, RESULT, SEND } message_kind;
typedef enum { PHASE_PART = 0, PHASE_RESULT = 1, PHASE_ACKNOWLEDGE = 2 } message_phase;

/* A send or receive that the transport holds. */
struct slc_message {
    slc_comm *comm;
    slc_message *next;     /* free list */
    slc_active_op *active; /* NULL: the transport does not hold it */
    uint64_t block;
    uint64_t tag;
    size_t bytes;
    int peer;
    message_kind kind;
};

sluice_status slc_messages_init(slc_comm *comm)
{
    /* A block has at most two messages to and two from each peer in the hands of the transport. */
    const size_t count = (size_t)comm->depth * 4 * (size_t)comm->messages.peer_count + 1;
    comm->messages.count = (uint32_t)count;
    comm->messages.all = calloc(count, sizeof *comm->messages.all);
    comm->messages.tokens = calloc((size_t)comm->size * 2, sizeof *comm->messages.tokens);
    if (!comm->messages.all || !comm->messages.tokens)
        return slc_error(SLUICE_ERR_MEMORY, "messages of %d ranks", comm->size);
    for (size_t i = 0; i < count; i++) {
        comm->messages.all[i].comm = comm;
        comm->messages.all[i].next = comm->messages.free_list;
        comm->messages.free_list = &comm->messages.all[i];
    }
    return SLUICE_OK;
}

static slc_block_state *state_of(const slc_comm *comm, slc_active_op *active, uint64_t block)
{
    return &active->window[block % comm->depth];
}

static uint64_t make_tag(const slc_comm *comm, const slc_active_op *active, uint64_t block, message_phase phase,
                         int sender)
{
    return (uint64_t)comm->number << 56 | (uint64_t)(active->wire & 0xffffff) << 32 | (block & 0x1ffff) << 15 |
           (uint64_t)phase << 12 | (uint64_t)sender;
}

static void count_down(slc_comm *comm, slc_active_op *active, uint64_t block, message_kind kind)
{
    slc_block_state *state = state_of(comm, active, block);
    if (kind == CONTRIBUTION)
        state->contributions--;
    else if (kind == RESULT)
        state->results--;
    else
        state->sends--;
}

/* Fails because a message is too long; the transport does not say by how much. */
static void fail_too_long(slc_comm *comm, const slc_active_op *active, int peer, size_t expected)
{
    slc_failure_set(comm->failure, SLUICE_ERR_MISMATCH, SLC_TELL_FACT,
                    "%s: rank %d sent rank %d more than the %zu bytes that belong there: submit the same operations in "
                    "the same order on every rank",
                    slc_op_name(&active->op), slc_rank_in_world(comm, peer), slc_rank_in_world(comm, comm->rank),
                    expected);
}

static void check_length(slc_comm *comm, const slc_active_op *active, int peer, size_t got, size_t expected)
{
    if (got == expected) return;
    slc_failure_set(
        comm->failure, SLUICE_ERR_MISMATCH, SLC_TELL_FACT,
        "%s: rank %d sent rank %d %zu bytes where %zu belong: submit the same operations in the same order on every "
        "rank",
        slc_op_name(&active->op), slc_rank_in_world(comm, peer), slc_rank_in_world(comm, comm->rank), got, expected);
}

/* A peer that cannot be reached has died, or has left after it did its part; the control connection will tell which. */
void slc_messages_suspect(slc_comm *comm, int rank, const char *why)
{
    slc_suspicion *suspicion = &comm->whole->suspicion;
    if (atomic_load_explicit(&suspicion->since_ns, memory_order_relaxed)) return;
    suspicion->rank = slc_rank_in_world(comm, rank);
    snprintf(suspicion->why, sizeof suspicion->why, "%s", why);
    atomic_store_explicit(&suspicion->since_ns, slc_clock_ns(), memory_order_relaxed);
}

static void give_back(slc_comm *comm, slc_message *message)
{
    comm->whole->messages.pending--;
    message->active = NULL;
    message->next = comm->messages.free_list;
    comm->messages.free_list = message;
}

/* Notes that a message is done. */
static void count_message(slc_comm *comm, slc_active_op *active, uint64_t block, message_kind kind)
{
    comm->messages.done++;
    count_down(comm, active, block, kind);
}

static void on_done(void *context, sluice_status status, size_t bytes)
{
    slc_message *message = context;
    slc_comm *comm = message->comm;
    slc_active_op *active = message->active;
    if (status == SLUICE_OK) {
        if (message->kind != SEND) check_length(comm, active, message->peer, bytes, message->bytes);
        count_message(comm, active, message->block, message->kind);
    } else if (status == SLUICE_ERR_PEER)
        slc_messages_suspect(comm, message->peer, "its messages cannot be delivered");
    else if (status == SLUICE_ERR_MISMATCH)
        fail_too_long(comm, active, message->peer, message->bytes);
    else if (status != SLUICE_ERR_INTERRUPTED)
        slc_failure_set(comm->failure, status, SLC_TELL_OWN, "%s: message of rank %d: %s", slc_op_name(&active->op),
                        slc_rank_in_world(comm, message->peer), sluice_status_name(status));
    give_back(comm, message);
}

static slc_message *take_message(slc_comm *comm, const slc_message *what)
{
    slc_message *message = comm->messages.free_list;
    comm->messages.free_list = message->next;
    *message = *what;
    message->comm = comm;
    comm->whole->messages.pending++;
    return message;
}

static void fail_post(slc_comm *comm, const slc_active_op *active, int peer, sluice_status status)
{
    if (status == SLUICE_ERR_PEER)
        slc_messages_suspect(comm, peer, sluice_last_error());
    else
        slc_op_fail(comm, &active->op, status);
}

static void post_receive(slc_comm *comm, slc_active_op *active, uint64_t block, message_phase phase, message_kind kind,
                         int peer, void *data, size_t bytes)
{
    const uint64_t tag = make_tag(comm, active, block, phase, peer);
    slc_message *message = take_message(
        comm, &(slc_message){.active = active, .block = block, .tag = tag, .bytes = bytes, .peer = peer, .kind = kind});
    size_t received = 0;
    sluice_status status = comm->transport->table->recv(comm->transport->self, slc_rank_in_world(comm, peer), data,
                                                        bytes, tag, &received, on_done, message);
    if (status == SLUICE_IN_PROGRESS) return;
    give_back(comm, message);
    if (status == SLUICE_ERR_MISMATCH) {
        fail_too_long(comm, active, peer, bytes);
        return;
    }
    if (status) {
        fail_post(comm, active, peer, status);
        return;
    }
    check_length(comm, active, peer, received, bytes);
    count_message(comm, active, block, kind);
}

static void post_send(slc_comm *comm, slc_active_op *active, uint64_t block, message_phase phase, int peer,
                      const void *data, size_t bytes)
{
    const uint64_t tag = make_tag(comm, active, block, phase, comm->rank);
    slc_message *message = take_message(
        comm, &(slc_message){.active = active, .block = block, .tag = tag, .bytes = bytes, .peer = peer, .kind = SEND});
    state_of(comm, active, block)->sends++;
    bool data_of_callers = active->op.kind != SLC_BARRIER && phase != PHASE_ACKNOWLEDGE;
    if (data_of_callers) atomic_fetch_add_explicit(&comm->bytes_sent, bytes, memory_order_relaxed);
    sluice_status status = comm->transport->table->send(comm->transport->self, slc_rank_in_world(comm, peer), data,
                                                        bytes, tag, on_done, message);
    if (status == SLUICE_IN_PROGRESS) return;
    give_back(comm, message);
    if (status)
        fail_post(comm, active, peer, status);
    else
        count_message(comm, active, block, SEND);
}

static size_t part_bytes(const slc_comm *comm, const slc_active_op *active, uint64_t block)
{
    return slc_part_length(&active->op, block, comm->size) * sluice_dtype_bytes(active->op.dtype);
}

static char *part_at(const slc_comm *comm, const slc_active_op *active, const void *buffer, slc_layout layout,
                     uint64_t block, int rank)
{
    /* Only an address is computed here. The caller of the operation promises that memory which a message writes is
     * writable. */
    return (char *)(uintptr_t)buffer +
           slc_part_begin(&active->op, layout, block, rank, comm->size) * sluice_dtype_bytes(active->op.dtype);
}

static char *block_at(const slc_active_op *active, uint64_t block)
{
    return (char *)active->op.dst + block * active->op.block_elements * sluice_dtype_bytes(active->op.dtype);
}

static bool is_sum(const slc_op *op)
{
    return op->kind == SLC_REDUCE_SCATTER || op->kind == SLC_ALL_REDUCE;
}

/* True if each owner's result goes to all ranks. */
static bool sends_results(const slc_op *op)
{
    return op->kind == SLC_ALL_REDUCE || op->kind == SLC_COMPRESSED_EXCHANGE;
}

/* Receives a block of an operation on rows. Block 0 carries the lists. */
static void receive_rows(slc_comm *comm, slc_active_op *active, uint64_t block, int peer)
{
    uint64_t bytes = block ? slc_row_op_expected(comm, active, block, peer) : slc_row_list_bytes(active->op.rows->most);
    if (!bytes) return;
    void *data = block ? (void *)slc_scratch_part(comm, active, block, peer) : slc_row_op_list_of(&active->op, peer);
    state_of(comm, active, block)->contributions++;
    post_receive(comm, active, block, PHASE_PART, CONTRIBUTION, peer, data, bytes);
}

static void send_rows(slc_comm *comm, slc_active_op *active, uint64_t block, int peer)
{
    uint64_t bytes = slc_row_list_bytes(active->op.rows->most);
    const void *data = slc_row_op_list_of(&active->op, comm->rank);
    if (block) data = slc_row_op_pack(comm, active, block, peer, &bytes);
    if (bytes) post_send(comm, active, block, PHASE_PART, peer, data, bytes);
}

/* True if a block takes a slot of scratch. */
static bool takes_slot(const slc_op *op, uint64_t block)
{
    return is_sum(op) || (slc_moves_rows(op) && block > 0);
}

static void receive_from(slc_comm *comm, slc_active_op *active, uint64_t block, int peer)
{
    const slc_op *op = &active->op;
    if (slc_moves_rows(op)) {
        receive_rows(comm, active, block, peer);
        return;
    }
    slc_block_state *state = state_of(comm, active, block);
    size_t bytes = part_bytes(comm, active, block);
    if (is_sum(op)) {
        state->contributions++;
        post_receive(comm, active, block, PHASE_PART, CONTRIBUTION, peer, slc_scratch_part(comm, active, block, peer),
                     bytes);
    }
    if (op->kind == SLC_COMPRESSED_EXCHANGE) {
        state->contributions++;
        post_receive(comm, active, block, PHASE_PART, CONTRIBUTION, peer, slc_exchange_arrival(op, peer), bytes);
    }
    if (sends_results(op) || op->kind == SLC_ALL_GATHER) {
        state->results++;
        post_receive(comm, active, block, PHASE_RESULT, RESULT, peer,
                     part_at(comm, active, op->dst, SLC_WHOLE, block, peer), bytes);
    } else if (op->kind == SLC_BARRIER) {
        state->results++;
        post_receive(comm, active, block, PHASE_RESULT, RESULT, peer, &comm->messages.tokens[peer],
                     sizeof *comm->messages.tokens);
    } else if (op->kind == SLC_BROADCAST && comm->rank == op->root) {
        state->results++;
        post_receive(comm, active, block, PHASE_ACKNOWLEDGE, RESULT, peer, &comm->messages.tokens[peer],
                     sizeof *comm->messages.tokens);
    } else if (op->kind == SLC_BROADCAST && peer == op->root) {
        state->results++;
        post_receive(comm, active, block, PHASE_RESULT, RESULT, peer, block_at(active, block),
                     slc_op_block_length(op, block) * sluice_dtype_bytes(op->dtype));
    }
}

static bool post_receives(slc_comm *comm, slc_active_op *active)
{
    if (comm->messages.blocks_receiving == comm->depth) return false;
    const bool slot = takes_slot(&active->op, active->receiving);
    if (slot && !slc_scratch_left(comm)) return false;
    if (active->receiving == active->end_block &&
        !(active->open && active->peers_ready && slc_row_op_cut(comm, active)))
        return false;
    uint64_t block = active->receiving++;
    slc_block_state *state = state_of(comm, active, block);
    *state =
        (slc_block_state){.slot = slot ? slc_scratch_take(comm) : 0, .reduced = !slot && !sends_results(&active->op)};
    comm->messages.blocks_receiving++;
    for (int i = 0; i < comm->messages.peer_count && !slc_failed(comm->failure); i++)
        receive_from(comm, active, block, comm->messages.peers[i]);
    return true;
}

static void send_to(slc_comm *comm, slc_active_op *active, uint64_t block, int peer)
{
    const slc_op *op = &active->op;
    size_t bytes = slc_moves_rows(op) ? 0 : part_bytes(comm, active, block);
    if (slc_moves_rows(op))
        send_rows(comm, active, block, peer);
    else if (is_sum(op) || sends_results(op))
        post_send(comm, active, block, PHASE_PART, peer, part_at(comm, active, op->src, SLC_WHOLE, block, peer), bytes);
    else if (op->kind == SLC_ALL_GATHER)
        post_send(comm, active, block, PHASE_RESULT, peer,
                  part_at(comm, active, op->src, op->src_layout, block, comm->rank), bytes);
    else if (op->kind == SLC_BARRIER)
        post_send(comm, active, block, PHASE_RESULT, peer, &comm->messages.tokens[comm->size + peer],
                  sizeof *comm->messages.tokens);
    else if (op->kind == SLC_BROADCAST && comm->rank == op->root)
        post_send(comm, active, block, PHASE_RESULT, peer, block_at(active, block),
                  slc_op_block_length(op, block) * sluice_dtype_bytes(op->dtype));
}

static bool post_sends(slc_comm *comm, slc_active_op *active)
{
    if (active->sending == active->receiving || comm->messages.blocks_sending == comm->depth / 2) return false;
    uint64_t block = active->sending++;
    comm->messages.blocks_sending++;
    state_of(comm, active, block)->sent = true;
    for (int i = 0; i < comm->messages.peer_count && !slc_failed(comm->failure); i++)
        send_to(comm, active, block, comm->messages.peers[i]);
    return true;
}

bool slc_messages_arrived(slc_comm *comm, slc_active_op *active, uint64_t block)
{
    if (!comm->messages.peer_count) return true;
    return block < active->receiving && !state_of(comm, active, block)->contributions;
}

void slc_messages_reduced(slc_comm *comm, slc_active_op *active, uint64_t block)
{
    if (!comm->messages.peer_count) return;
    const slc_op *op = &active->op;
    state_of(comm, active, block)->reduced = true;
    if (is_sum(op)) slc_scratch_free(comm, state_of(comm, active, block)->slot);
    if (!sends_results(op)) return;
    for (int i = 0; i < comm->messages.peer_count && !slc_failed(comm->failure); i++)
        post_send(comm, active, block, PHASE_RESULT, comm->messages.peers[i],
                  part_at(comm, active, op->dst, SLC_WHOLE, block, comm->rank), part_bytes(comm, active, block));
}

/* Ends the next block in order if all of its messages are done. */
static bool finish_block(slc_comm *comm, slc_active_op *active)
{
    if (active->finished == active->sending) return false;
    slc_block_state *state = state_of(comm, active, active->finished);
    if (!state->reduced || state->contributions || state->results) return false;
    const slc_op *op = &active->op;
    if (op->kind == SLC_BROADCAST && comm->rank != op->root && !slc_is_neighbour(comm->neighbours, op->root) &&
        state->sent) {
        state->sent = false; /* the one acknowledgement lets the root's window move on */
        post_send(comm, active, active->finished, PHASE_ACKNOWLEDGE, op->root,
                  &comm->messages.tokens[comm->size + op->root], sizeof *comm->messages.tokens);
    }
    if (state->sends) return false;
    if (slc_moves_rows(op) && active->finished > 0) slc_scratch_free(comm, state->slot); /* it was sent from there */
    active->finished++;
    comm->messages.blocks_finished++;
    comm->messages.blocks_receiving--;
    comm->messages.blocks_sending--;
    return true;
}

bool slc_messages_finished(const slc_comm *comm, const slc_active_op *active)
{
    return !comm->messages.peer_count || (!active->open && active->finished == active->end_block);
}

bool slc_messages_oldest(const slc_comm *comm, slc_open_message *out)
{
    bool found = false;
    for (uint32_t i = 0; comm->whole->messages.pending && i < comm->messages.count; i++) {
        const slc_message *message = &comm->messages.all[i];
        if (!message->active) continue;
        const uint32_t operation = message->active->wire, place = (uint32_t)message->tag >> 12;
        const int32_t later = found ? (int32_t)(operation - out->operation) : -1;
        if (later > 0 || (!later && place >= out->place)) continue;
        *out = (slc_open_message){message->peer, operation, place, message->bytes};
        found = true;
    }
    return found;
}

bool slc_messages_plenty(const slc_comm *comm)
{
    return comm->messages.blocks_sending > 1;
}

bool slc_messages_step(slc_comm *comm)
{
    if (!comm->messages.peer_count) return false;
    bool progressed = false, all_received = true, all_sent = true;
    for (uint32_t i = comm->active.first; i != comm->active.taken && !slc_failed(comm->failure); i++) {
        slc_active_op *active = slc_active_op_at(comm, i);
        while (finish_block(comm, active)) progressed = true;
        while (all_received && post_receives(comm, active)) progressed = true;
        all_received &= !active->open && active->receiving == active->end_block;
        while (all_sent && post_sends(comm, active)) progressed = true;
        all_sent &= !active->open && active->sending == active->end_block;
    }
    return progressed;
}
