/* world_test.c covers this file. */
#include "lib/comm/world/doing.h"

#include "lib/base/clock.h"
#include "lib/base/integer.h"
#include "lib/comm/control/collect.h"
#include "lib/comm/lane/lane.h"
#include "lib/comm/lane/messages.h"
#include "lib/comm/sockets/traffic.h"
#include "lib/comm/world/lines.h"

#include <stdio.h>

static const uint64_t stopped_ns = 2000000000u; /* after a longer gap between two looks this process had been stopped */
/* Between two looks a connection carries no more than this if only UCX's keepalives, of a few bytes, go over it. */
static const uint64_t idle_bytes = 256;
/* The bandwidth at which a message is taken to arrive if the transport has no connection that can be seen. Such a
 * transport is faster. */
static const uint64_t unseen_bytes_per_s = 1000000;
/* A message of a group or channel is taken to have this many bytes. */
static const uint64_t unseen_bytes = 1 << 20;

/* A digest that changes with every call that the program makes. */
static uint64_t digest_program(sluice_world *world, slc_place place)
{
    slc_comm *comm = &world->comm;
    uint64_t digest = slc_digest_add(1, (uint64_t)place);
    digest = slc_digest_add(digest, atomic_load_explicit(&comm->program.calls, memory_order_relaxed));
    digest = slc_digest_add(digest, atomic_load_explicit(&comm->queue.counts.submitted, memory_order_relaxed));
    digest = slc_digest_add(digest, slc_lines_submitted(&world->lines));
    digest = slc_digest_add(digest, atomic_load_explicit(&comm->queue.counts.wanted, memory_order_relaxed));
    return slc_digest_add(digest, atomic_load_explicit(&world->collects_asked, memory_order_relaxed));
}

static uint64_t digest_operations(sluice_world *world)
{
    return slc_digest_add(slc_lane_digest(&world->comm), slc_lines_digest(&world->lines));
}

/* True if an imitated network holds something back, which will come for sure. */
static bool is_held_back(sluice_world *world, uint64_t now_ns)
{
    const slc_transport *transport = &world->transport;
    uint64_t due = slc_least(slc_lane_due(&world->comm), slc_lines_due(&world->lines));
    if (transport->table && transport->table->timer) {
        uint64_t timer = transport->table->timer(transport->self);
        if (timer < due) due = timer;
    }
    return due != UINT64_MAX && due > now_ns;
}

/* True if bytes of the message that is needed next are still arriving, even if it will not be complete for long. The
 * transport's own word that it made progress does not count, since keepalives are progress too. */
static bool is_on_its_way(sluice_world *world, const slc_open_message *message, uint64_t now_ns)
{
    slc_watch *watch = &world->control.watch;
    const slc_traffic traffic = slc_traffic_read(world->transport.fds, world->transport.fd_count);
    const uint64_t before = watch->carried;
    watch->carried = traffic.bytes;
    if (traffic.connections) return traffic.bytes > before + idle_bytes * traffic.connections;
    const double bytes = (double)message->bytes * world->comm.messages.peer_count;
    return slc_seconds(now_ns - watch->completed_ns) < bytes / (double)unseen_bytes_per_s;
}

/* The thing in a group or channel that the program waits for. */
typedef struct {
    int missing; /* a rank that has not come to it; -1: not known */
    const char *what;
} line_wait;

static slc_place find_place(sluice_world *world, line_wait *wait)
{
    slc_comm *comm = &world->comm;
    if (world->control.collect) return SLC_IN_COLLECTIVE;
    if (atomic_load(&comm->stream_order.host_waits)) return SLC_IN_OPERATIONS;
    if (slc_queue_counts_awaited(&comm->queue.counts)) return SLC_IN_OPERATIONS;
    if (slc_lines_wait(&world->lines, &wait->missing, &wait->what)) return SLC_IN_TRANSFER;
    return atomic_load_explicit(&comm->program.work, memory_order_acquire) ? SLC_WORKING : SLC_ELSEWHERE;
}

/* True if the thread that waits is the one that makes both kinds of calls. If not, another thread might still go on. */
static bool is_one_thread(sluice_world *world, slc_place place)
{
    uint64_t collects = atomic_load(&world->collector), submits = atomic_load(&world->comm.program.submitter);
    uint64_t waits = place == SLC_IN_COLLECTIVE ? collects : atomic_load(&world->comm.program.waiter);
    return waits && (!collects || waits == collects) && (!submits || waits == submits);
}

/* Writes "waits in param_read of \"h.0.w\"". */
static void describe(sluice_world *world, slc_place place, const line_wait *wait, char *text, size_t bytes)
{
    slc_comm *comm = &world->comm;
    pthread_mutex_lock(&comm->program.names); /* it keeps them from being freed while they are read */
    const char *call = atomic_load_explicit(&comm->program.call, memory_order_acquire);
    const char *object = atomic_load_explicit(&comm->program.object, memory_order_acquire);
    const char *work = atomic_load_explicit(&comm->program.work, memory_order_acquire);
    char last[120];
    snprintf(last, sizeof last, "%s%s%s%s", call ? call : "world_create", object ? " of \"" : "", object ? object : "",
             object ? "\"" : "");
    const char *operation = slc_lane_next_name(comm);
    switch (place) {
    case SLC_IN_COLLECTIVE:
        if (world->control.collect->kind == SLC_COLLECT_MEET)
            snprintf(text, bytes, "waits in %s", (const char *)world->control.collect->src);
        else
            snprintf(text, bytes, "waits in %s (last call: %s)", slc_collect_name(world->control.collect->kind), last);
        break;
    case SLC_IN_OPERATIONS:
        snprintf(text, bytes, "waits in %s for %s", last, operation ? operation : "an operation");
        break;
    case SLC_IN_TRANSFER:
        snprintf(text, bytes, "waits in %s for %s", last, wait->what ? wait->what : "an operation of a group");
        break;
    case SLC_WORKING: snprintf(text, bytes, "is %s in %s", work ? work : "working", last); break;
    case SLC_ELSEWHERE: snprintf(text, bytes, "waits in no call (its last: %s)", last); break;
    }
    pthread_mutex_unlock(&comm->program.names);
}

void slc_world_note_doing(sluice_world *world, uint64_t now_ns)
{
    slc_control *control = &world->control;
    slc_watch *watch = &control->watch;
    slc_doing *doing = &control->doing;
    if (control->size == 1 || slc_failed(&world->failure)) return;
    line_wait wait = {-1, NULL};
    const slc_place place = find_place(world, &wait);
    const uint64_t program = digest_program(world, place), operations = digest_operations(world);
    const uint64_t gap = now_ns - watch->looked_ns;
    watch->looked_ns = now_ns;
    if (gap > stopped_ns) {
        watch->still_ns += gap;
        watch->moved_ns += gap;
    }
    slc_open_message lacking = {.bytes = unseen_bytes};
    const bool lacks = slc_messages_oldest(&world->comm, &lacking), open = lacks || world->comm.messages.pending;
    if (program != watch->program) watch->still_ns = now_ns;
    if (operations != watch->operations) watch->completed_ns = watch->moved_ns = now_ns;
    if (is_held_back(world, now_ns)) watch->moved_ns = now_ns;
    if (open && watch->moved_ns != now_ns && is_on_its_way(world, &lacking, now_ns)) watch->moved_ns = now_ns;
    watch->program = program;
    watch->operations = operations;

    *doing = (slc_doing){.place = place,
                         .collective = control->collects,
                         .begun = control->history.count,
                         .halted = slc_lane_halted(&world->comm),
                         .one_thread = is_one_thread(world, place),
                         .lacks = lacks,
                         .peer = lacking.peer,
                         .operation = lacking.operation,
                         .stage = lacking.place,
                         .still_ms = (uint32_t)((now_ns - watch->still_ns) / 1000000u),
                         .unmoved_ms = (uint32_t)((now_ns - watch->moved_ns) / 1000000u),
                         .missing = wait.missing};
    if (place == SLC_IN_OPERATIONS)
        doing->needed = slc_lane_needed(&world->comm, atomic_load(&world->comm.queue.counts.wanted));
    describe(world, place, &wait, doing->text, sizeof doing->text);
}
