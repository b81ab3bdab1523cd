/* The communication thread: one loop over the lane, the transport and the control connections. When there is nothing to
 * do it looks on for some microseconds, unless that has been in vain lately, then sleeps in one poll over everything.
 * Before sleeping it says so in its control page and looks once more, so that whoever makes work after that knows to
 * ring. fork_test.c covers this file. */
#include "lib/comm/world/thread.h"

#include "lib/base/numbers/floats.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/base/host/thread_limit.h"
#include "lib/base/vain.h"
#include "lib/comm/control/control.h"
#include "lib/comm/control/watch.h"
#include "lib/comm/lane/geometry.h"
#include "lib/comm/lane/lane.h"
#include "lib/comm/lane/messages.h"
#include "lib/comm/lane/stream_order.h"
#include "lib/comm/world/doing.h"
#include "lib/comm/world/lines.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t look_ns = 1000000u;         /* how often sockets are looked at while there is work */
static const uint64_t suspicion_ns = 3000000000u; /* the control connection's time to explain a lost peer */
static const uint64_t aside_period_ns = 20000000u;
static const uint64_t transport_linger_ns = 1000000000u;
static const uint64_t leave_ns = 1000000000u, leave_failed_ns = 100000000u, listen_ns = 3000000000u;
static const uint64_t tell_patience_ns = 200000000u;
static const uint64_t cancel_patience_ns = 2000000000u;
static const uint64_t least_rest_ns = 250000u; /* on a faster link a rest would outlast the traffic on its way */

/* Finds how long the thread looks on before it sleeps. */
typedef struct {
    uint64_t since_ns, until_ns; /* since when there is nothing to do, 0: there is something; it looks on until then */
    uint32_t vain;               /* times in a row at which that was in vain */
} idling;

/* Finds how long a network that has enough to do may be left alone. */
typedef struct {
    uint64_t since_ns; /* when the last block ended, or slc_messages_plenty became true; 0: it is false */
    uint64_t block_ns; /* mean time from one block's end to the next, while there is plenty */
    uint32_t finished; /* blocks that had ended at since_ns */
    bool gathered;     /* the network was left alone, and nothing has happened since */
} pacing;

void slc_comm_fail(slc_comm *comm, sluice_status status, const char *line)
{
    sluice_world *world = slc_comm_world(comm);
    slc_failure_set(comm->failure, status, SLC_TELL_OWN, "%s", line);
    slc_comm_notify(comm);
    if (world->running) slc_gate_wait(&world->told, 1, tell_patience_ns);
}

static bool transport_progress(sluice_world *world)
{
    const slc_transport *transport = &world->transport;
    return transport->table && transport->table->progress(transport->self) > 0;
}

/* Ends everything that is pending; only then may the caller's memory go. */
static void cancel_messages(sluice_world *world)
{
    const slc_transport *transport = &world->transport;
    if (!transport->table) return;
    uint64_t start = slc_clock_ns();
    for (int i = 0; i < world->comm.messages.peer_count; i++)
        transport->table->close_peer(transport->self, world->comm.messages.peers[i]);
    transport->table->cancel(transport->self);
    while (world->comm.messages.pending && slc_clock_ns() - start < cancel_patience_ns)
        if (!transport_progress(world)) sched_yield();
    if (world->comm.messages.pending)
        slc_log(SLC_LOG_ERROR, "%u messages could not be cancelled: their memory stays mapped",
                world->comm.messages.pending);
}

static bool take_collective(sluice_world *world)
{
    slc_control *control = &world->control;
    uint32_t asked = atomic_load_explicit(&world->collects_asked, memory_order_acquire);
    if (control->collect || asked == control->collects) return false;
    slc_control_collect(control, &world->collect);
    return true;
}

static void finish_collective(sluice_world *world)
{
    if (!world->control.collect_done) return;
    world->control.collect_done = false;
    atomic_store_explicit(&world->collects_complete, world->control.collects, memory_order_release);
    slc_gate_post(&world->collects_done, world->control.collects);
}

/* Ends every wait of this process and tells the other ranks. A collective whose result came before the failure is
 * complete, so that a rank which fails after it, and leaves, takes nothing from the others. */
static void acknowledge_failure(sluice_world *world)
{
    world->acknowledged = true;
    finish_collective(world);
    slc_control_tell(&world->control);
    slc_gate_post(&world->told, 1);
    slc_gate_post(&world->collects_done, atomic_load(&world->collects_asked) + SLC_FAR_BEYOND);
    slc_queue_counts_give_up(&world->comm.queue.counts);
    slc_lines_end_waits(&world->lines);
    cancel_messages(world);
    slc_stream_order_abort(&world->comm);
    slc_gate_post(&world->comm.quiet, 1);
}

/* Fails the world if an operation needs a rank that has left. The goodbye does not say how far groups and channels had
 * come, but everything that the rank gave to them is here soon. */
static void check_departures(sluice_world *world, uint64_t now_ns)
{
    const int needed = now_ns > suspicion_ns ? slc_lines_departed(world, now_ns - suspicion_ns) : -1;
    if (needed >= 0) slc_control_fail_left(&world->control, needed, "others still need it");
    uint32_t submitted = atomic_load_explicit(&world->comm.queue.wire_submitted, memory_order_relaxed);
    uint32_t completed = atomic_load_explicit(&world->comm.active.wire_completed, memory_order_relaxed);
    if (submitted == completed) return;
    for (int rank = 0; rank < world->config.size; rank++) {
        const slc_departure *gone = &world->control.departures[rank];
        if (!gone->left || (int32_t)(gone->operations - submitted) >= 0) continue;
        slc_control_fail_left(&world->control, rank, "others still need it");
        return;
    }
}

static void check_suspicion(sluice_world *world, uint64_t now_ns)
{
    slc_comm *comm = &world->comm;
    uint64_t since = atomic_load_explicit(&comm->suspicion.since_ns, memory_order_relaxed);
    if (!since || now_ns < since + suspicion_ns || world->control.departures[comm->suspicion.rank].left) return;
    slc_failure_set(&world->failure, SLUICE_ERR_PEER, SLC_TELL_OWN, "rank %d cannot be reached: %s",
                    comm->suspicion.rank, comm->suspicion.why);
}

static bool look_at_control(sluice_world *world, uint64_t now_ns)
{
    bool beats = slc_control_beats(&world->control, now_ns);
    if (beats) slc_world_note_doing(world, now_ns);
    bool received = slc_control_step(&world->control, now_ns);
    if (beats) slc_watch_judge(&world->control);
    slc_stream_order_check(&world->comm, now_ns);
    check_departures(world, now_ns);
    check_suspicion(world, now_ns);
    return received;
}

/* Does what can be done now, control sockets apart. True if anything was done. The lane is looked at after the lines,
 * because its operations may wait for a channel: the program's thread completes transfers too (slc_channel_notify),
 * and does not ring for that. The lines' lock lets this thread see what it has completed. */
static bool advance(sluice_world *world, uint64_t now_ns)
{
    bool busy = false;
    if (slc_failed(&world->failure)) {
        if (world->acknowledged) return false;
        acknowledge_failure(world);
        return true;
    }
    busy |= take_collective(world);
    finish_collective(world);
    busy |= slc_lines_step(&world->lines, now_ns);
    busy |= slc_lane_step(&world->comm, now_ns);
    busy |= transport_progress(world);
    return busy;
}

static uint64_t next_due(sluice_world *world)
{
    const slc_transport *transport = &world->transport;
    uint64_t due = slc_control_due(&world->control);
    if (slc_failed(&world->failure)) return due;
    due = slc_least(due, slc_lane_due(&world->comm));
    due = slc_least(due, slc_lines_due(&world->lines));
    due = slc_least(due, slc_stream_order_due(&world->comm));
    if (transport->table && transport->table->timer) due = slc_least(due, transport->table->timer(transport->self));
    return due;
}

static void take_rings(sluice_world *world)
{
    uint64_t rings;
    ssize_t got = read(world->neighbours.doorbell, &rings, sizeof rings);
    (void)got; /* when two ranks woke it at once, one read takes both */
}

static struct timespec time_left(uint64_t due_ns)
{
    uint64_t now = slc_clock_ns(), left = due_ns > now ? due_ns - now : 0;
    return (struct timespec){.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
}

/* Waits for any descriptor, or until something is due. True if control connections are to be looked at: one has
 * something to read, or the time has come. */
static bool poll_all(sluice_world *world)
{
    struct pollfd *polls = world->polls;
    const slc_transport *transport = &world->transport;
    int fds[SLC_TRANSPORT_DESCRIPTORS];
    int transport_count =
        transport->table ? transport->table->descriptors(transport->self, fds, SLC_TRANSPORT_DESCRIPTORS) : 0;
    int count = 0;
    polls[count++] = (struct pollfd){.fd = world->neighbours.doorbell, .events = POLLIN};
    for (int i = 0; i < transport_count; i++) polls[count++] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    int first_control = count;
    count += slc_control_polls(&world->control, polls + count);

    uint64_t due = next_due(world);
    struct timespec timeout = time_left(due);
    int ready = ppoll(polls, (nfds_t)count, due == UINT64_MAX ? NULL : &timeout, NULL);
    if (ready > 0 && polls[0].revents) take_rings(world);
    for (int i = first_control; ready > 0 && i < count; i++)
        if (polls[i].revents) return true;
    return ready <= 0 || slc_clock_ns() >= due;
}

/* Notes this thread's core, and returns the rank of a neighbour whose thread was last seen on it; -1: none was. */
static int core_mate(const sluice_world *world, int cpu)
{
    const slc_neighbours *neighbours = &world->neighbours;
    if (atomic_load_explicit(&neighbours->page->cpu, memory_order_relaxed) != (uint32_t)cpu)
        atomic_store_explicit(&neighbours->page->cpu, (uint32_t)cpu, memory_order_relaxed);
    for (int i = 0; i < neighbours->count; i++) {
        const slc_control_page *page = neighbours->peers[neighbours->list[i]].page;
        if (atomic_load_explicit(&page->cpu, memory_order_relaxed) == (uint32_t)cpu) return neighbours->list[i];
    }
    return -1;
}

/* Sleeps until something is to be done. *looked_ns stays if there is something to do at once. It becomes 0 if control
 * connections are to be looked at. If something else has ended the sleep, the sleep has looked at them, and *looked_ns
 * becomes the present time. */
static void sleep_until_woken(sluice_world *world, uint64_t *looked_ns)
{
    _Atomic uint32_t *sleeping = &world->neighbours.page->sleeping;
    const slc_transport *transport = &world->transport;
    atomic_exchange(sleeping, 1);
    bool busy = atomic_load(&world->stop) || advance(world, slc_clock_ns());
    if (!busy && transport->table) busy = transport->table->arm(transport->self) == SLUICE_IN_PROGRESS;
    if (!busy) *looked_ns = poll_all(world) ? 0 : slc_clock_ns();
    atomic_exchange(sleeping, 0);
    core_mate(world, sched_getcpu()); /* notes the core on which it woke */
}

/* Keeps the mean time of a block while other blocks keep the link busy (slc_messages_plenty). */
static void watch_blocks(pacing *pace, const slc_comm *comm, uint64_t now_ns)
{
    uint32_t finished = comm->messages.blocks_finished - pace->finished;
    if (!slc_messages_plenty(comm)) {
        pace->since_ns = 0;
        return;
    }
    if (pace->since_ns && !finished) return;
    if (pace->since_ns) {
        uint64_t block_ns = (now_ns - pace->since_ns) / finished;
        pace->block_ns = pace->block_ns ? (3 * pace->block_ns + block_ns) / 4 : block_ns;
    }
    pace->since_ns = now_ns;
    pace->finished = comm->messages.blocks_finished;
}

/* A wake for every piece of a block costs compute more than the piece itself. So while two blocks are on their way,
 * traffic may gather for half the time that one takes, and the link stays busy. The next sleep after that is one that
 * traffic ends. True if the network was left alone, or something else came up. */
static bool let_gather(sluice_world *world, pacing *pace)
{
    uint64_t rest_ns = slc_least(world->pace_ns, pace->block_ns / 2);
    if (pace->gathered || !pace->since_ns || rest_ns < least_rest_ns) return false;
    _Atomic uint32_t *sleeping = &world->neighbours.page->sleeping;
    atomic_exchange(sleeping, 1);
    uint64_t now = slc_clock_ns();
    bool busy = atomic_load(&world->stop) || advance(world, now);
    struct pollfd doorbell = {.fd = world->neighbours.doorbell, .events = POLLIN};
    struct timespec timeout = time_left(slc_least(next_due(world), now + rest_ns));
    if (!busy && ppoll(&doorbell, 1, &timeout, NULL) > 0) take_rings(world);
    atomic_exchange(sleeping, 0);
    pace->gathered = !busy;
    return true;
}

/* Moves to another core once; after that the thread may run anywhere again. */
static void leave_core(int cpu)
{
    cpu_set_t allowed, others;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return; /* there are more cores than the set holds: leave it to the kernel */
    others = allowed;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others))
        sched_setaffinity(0, sizeof allowed, &allowed);
}

/* A wake tends to put the woken thread on the waker's core, where both would stay and take turns. So the higher rank
 * moves away if there are cores enough, and while both are there, a thread that looks on must not keep the other from
 * working. It does not move for a look that is likely to be in vain. */
static void pause_shortly(sluice_world *world, const idling *idle, uint64_t now_ns)
{
    int cpu = sched_getcpu(), mate = core_mate(world, cpu);
    const bool moves = mate >= 0 && mate < world->config.rank && !world->yield && idle->vain <= SLC_VAIN_MOST;
    if (moves && now_ns - world->aside_ns > aside_period_ns) {
        world->aside_ns = now_ns;
        leave_core(cpu);
        return;
    }
    if (world->yield || mate >= 0) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    for (int i = 0; i < 16; i++) __builtin_ia32_pause();
#endif
}

/* True while the thread, which has nothing to do, had better look on than sleep. */
static bool looks_on(const sluice_world *world, idling *idle, uint64_t now_ns)
{
    if (!idle->since_ns) {
        idle->since_ns = now_ns;
        idle->until_ns = now_ns + (slc_spinning_pays(idle->vain) ? world->spin_ns : 0);
        idle->vain++;
    }
    return now_ns < idle->until_ns;
}

static void end_idling(idling *idle, uint64_t now_ns)
{
    if (idle->since_ns && now_ns < idle->until_ns) idle->vain = 0;
    idle->since_ns = 0;
}

static void *thread_main(void *argument)
{
    SLC_HOLD_FLOATS;
    sluice_world *world = argument;
    uint64_t looked_ns = 0;
    idling idle = {0};
    pacing pace = {0};
    while (!atomic_load_explicit(&world->stop, memory_order_acquire)) {
        uint64_t now = slc_clock_ns();
        bool busy = advance(world, now);
        if (now - looked_ns >= look_ns) {
            looked_ns = now;
            busy |= look_at_control(world, now);
            finish_collective(world);
        }
        watch_blocks(&pace, &world->comm, now);
        if (busy) {
            end_idling(&idle, now);
            pace.gathered = false;
            continue;
        }
        if (let_gather(world, &pace)) continue;
        if (looks_on(world, &idle, now)) {
            pause_shortly(world, &idle, now);
            continue;
        }
        sleep_until_woken(world, &looked_ns);
    }
    if (slc_failed(&world->failure) && !world->acknowledged) acknowledge_failure(world);
    if (world->comm.messages.pending) cancel_messages(world); /* it leaves with operations unfinished */
    const bool failed = slc_failed(&world->failure);
    if (world->control.hears) slc_control_hear_reporter(&world->control, listen_ns);
    slc_control_goodbye(&world->control, atomic_load(&world->comm.active.wire_completed), world->last_words,
                        world->code);
    slc_transport_close(&world->transport, failed ? 0 : transport_linger_ns);
    slc_control_leave(&world->control, world->control.listens ? listen_ns : failed ? leave_failed_ns : leave_ns);
    return NULL;
}

sluice_status slc_thread_start(sluice_world *world)
{
    world->polls = calloc((size_t)world->control.link_count + SLC_TRANSPORT_DESCRIPTORS + 1, sizeof *world->polls);
    if (!world->polls) return slc_error(SLUICE_ERR_MEMORY, "communication thread");
    /* Signals belong to the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&world->thread, NULL, thread_main, world);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return slc_thread_limit_error(error, "communication thread");
    pthread_setname_np(world->thread, "sluice-comm");
    world->running = true;
    return SLUICE_OK;
}

void slc_thread_stop(sluice_world *world)
{
    if (!world->running) return;
    snprintf(world->last_words, sizeof world->last_words, "%s", sluice_last_error());
    atomic_store(&world->stop, true);
    slc_comm_notify(&world->comm);
    pthread_join(world->thread, NULL);
    world->running = false;
}
