/* Sends and receives. Messages between two ranks match in the order of their calls; all those of a batch move at a
 * time. A send is done when the receiver has taken everything, so one without a receive hangs. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <string.h>

static hostnccl_channel *channel(const hostnccl_operation *o)
{
    int from = o->kind == HOSTNCCL_SEND ? o->comm->rank : o->root,
        to = o->kind == HOSTNCCL_SEND ? o->root : o->comm->rank;
    return &o->comm->segment->channels[(size_t)from * (size_t)o->comm->size + (size_t)to];
}

static size_t message_bytes(const hostnccl_operation *o)
{
    return o->count * hostnccl_type_bytes(o->type);
}

/* Moves a piece, or sees that the last one was taken; false when it must wait. */
static bool advance_send(hostnccl_operation *o)
{
    hostnccl_segment *segment = o->comm->segment;
    hostnccl_channel *way = channel(o);
    uint32_t sent = atomic_load(&way->sent), under_way = sent - atomic_load(&way->taken);
    size_t bytes = message_bytes(o), left = bytes - o->moved;
    if (o->begun && left == 0) {
        o->done = under_way == 0;
        return o->done;
    }
    if (under_way == HOSTNCCL_SLOTS) return false;
    size_t piece = left < segment->piece_bytes ? left : segment->piece_bytes;
    if (piece)
        memcpy(hostnccl_segment_piece(segment, o->comm->rank, o->root, sent), (const char *)o->send + o->moved, piece);
    way->message_bytes[sent % HOSTNCCL_SLOTS] = bytes;
    o->moved += piece;
    o->begun = true;
    atomic_store(&way->sent, sent + 1);
    return true;
}

/* Takes a piece; a message of another size than it wants never moves. */
static bool advance_receive(hostnccl_operation *o)
{
    hostnccl_segment *segment = o->comm->segment;
    hostnccl_channel *way = channel(o);
    uint32_t taken = atomic_load(&way->taken);
    if (atomic_load(&way->sent) == taken) return false;
    size_t total = way->message_bytes[taken % HOSTNCCL_SLOTS], wanted = message_bytes(o);
    if (total != wanted && !hostnccl_mismatch_corrupts()) return false;
    size_t left = total - o->moved, piece = left < segment->piece_bytes ? left : segment->piece_bytes;
    size_t room = o->moved < wanted ? wanted - o->moved : 0, kept = piece < room ? piece : room;
    if (kept)
        memcpy((char *)o->receive + o->moved, hostnccl_segment_piece(segment, o->root, o->comm->rank, taken), kept);
    o->moved += piece;
    o->done = o->moved == total;
    atomic_store(&way->taken, taken + 1);
    return true;
}

static bool is_message(const hostnccl_operation *o)
{
    return o->kind == HOSTNCCL_SEND || o->kind == HOSTNCCL_RECEIVE;
}

/* Advances each message that is the first on its way, once; false if none could move. */
static bool advance_all(hostnccl_operation *operations, size_t *left)
{
    bool moved = false, taken[2][HOSTNCCL_RANKS] = {{false}}; /* ways: sends and receives, by the other rank */
    *left = 0;
    for (hostnccl_operation *o = operations; o; o = o->next) {
        if (!is_message(o) || o->done) continue;
        bool *way = &taken[o->kind == HOSTNCCL_SEND][o->root];
        if (!*way && (o->kind == HOSTNCCL_SEND ? advance_send(o) : advance_receive(o))) moved = true;
        if (o->done) continue;
        *way = true;
        ++*left;
    }
    return moved;
}

bool hostnccl_messages_run(ncclComm_t comm, hostnccl_operation *operations)
{
    hostnccl_segment *segment = comm->segment;
    double sent = 0, received = 0; /* the link carries both at a time */
    size_t left = 0;
    for (hostnccl_operation *o = operations; o; o = o->next) {
        if (!is_message(o)) continue;
        o->moved = 0, o->begun = o->done = false; /* a graph runs them again */
        *(o->kind == HOSTNCCL_SEND ? &sent : &received) += (double)message_bytes(o);
        left++;
    }
    if (left == 0) return true;
    int64_t begin_ns = 0; /* of the first piece */
    for (unsigned spins = 0; left > 0;) {
        uint32_t bell = atomic_load(&segment->control->bell);
        if (atomic_load(&comm->stopped)) return false;
        if (advance_all(operations, &left)) {
            if (begin_ns == 0) begin_ns = hostnccl_clock_ns();
            hostnccl_segment_ring(segment);
            spins = 0;
        } else if (left > 0) {
            hostnccl_segment_wait(segment, bell, &spins);
        }
    }
    hostnccl_charge(comm, begin_ns, sent > received ? sent : received);
    return true;
}
