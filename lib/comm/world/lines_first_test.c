/* An operation of the world's lane that waits for a channel starts before the communication thread sleeps, also if the
 * program's own thread completes the transfer while the communication thread is about to sleep: nobody rings for it
 * then. The test forces this order. The linker puts the functions below in the place of the step of all lines, where
 * the communication thread is held, and of ppoll, in which it sleeps. */
#include "lib/comm/channels.h"
#include "lib/comm/world/lines.h"
#include "tests/support/comm/forked_ranks.h"

#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/mman.h>

enum { BYTES = 64 };

/* Rank 0 goes through these stages. READY: the sender's first transfer is offered, and the lane's operation waits for
 * it. IDLE: the communication thread has found nothing to do. TAKEN: the receiver has taken the transfer, and its ring
 * found the thread awake. SLEEPING: the thread has said that it sleeps, and looked at its lane. COMPLETED: the
 * program's thread has offered a second transfer, and with it completed the first. OVER: the operation has run. */
typedef enum { MAKING, READY, IDLE, TAKEN, SLEEPING, COMPLETED, OVER } stage;

static struct shared {
    _Atomic int stage;
    _Atomic uint32_t sleeps, sleeps_at_completion, sleeps_at_start;
} * shared;

static sluice_world *_Atomic held; /* rank 0's; NULL in other ranks */

static void reach(stage reached)
{
    atomic_store(&shared->stage, reached);
}

static void wait_for(stage awaited)
{
    while (atomic_load(&shared->stage) < (int)awaited) sched_yield();
}

bool __real_slc_lines_step(slc_lines *lines, uint64_t now_ns);
bool __wrap_slc_lines_step(slc_lines *lines, uint64_t now_ns);
bool __wrap_slc_lines_step(slc_lines *lines, uint64_t now_ns)
{
    const sluice_world *world = held;
    const int now = world ? atomic_load(&shared->stage) : MAKING;
    const bool sleeps = world && atomic_load(&world->neighbours.page->sleeping);
    if (now == READY && !sleeps) {
        if (__real_slc_lines_step(lines, now_ns)) return true;
        reach(IDLE);
        wait_for(TAKEN);
        return false;
    }
    if (now == TAKEN && !sleeps) return false; /* it has looked at its lines before the receiver took */
    if (now == TAKEN) {
        reach(SLEEPING);
        wait_for(COMPLETED);
        atomic_store(&shared->sleeps_at_completion, atomic_load(&shared->sleeps));
    }
    return __real_slc_lines_step(lines, now_ns);
}

int __real_ppoll(struct pollfd *polls, nfds_t count, const struct timespec *timeout, const sigset_t *signals);
int __wrap_ppoll(struct pollfd *polls, nfds_t count, const struct timespec *timeout, const sigset_t *signals);
int __wrap_ppoll(struct pollfd *polls, nfds_t count, const struct timespec *timeout, const sigset_t *signals)
{
    if (held) atomic_fetch_add(&shared->sleeps, 1);
    return __real_ppoll(polls, count, timeout, signals);
}

static sluice_status note_start(void *context)
{
    (void)context;
    atomic_store(&shared->sleeps_at_start, atomic_load(&shared->sleeps));
    return SLUICE_OK;
}

/* ---- The two ranks ---- */

static void send_both(sluice_world *world, slc_channel *channel, char *data)
{
    slc_comm *comm = slc_world_comm(world);
    slc_gate gate;
    slc_gate_init(&gate);
    const slc_gate_count first = {slc_channel_completed(channel), 1}, second = {&gate, 1};
    const slc_channel_transfer transfers[2] = {
        {.data = data, .bytes = BYTES},
        {.data = data, .bytes = BYTES, .label = 1, .counts = &second, .count_count = 1, .end_may_wait = true}};
    const slc_op op = {.kind = SLC_CALL, .call = note_start, .counts = &first, .count_count = 1};
    CHECK(!slc_channel_submit(channel, transfers, 2, NULL));
    CHECK(!slc_comm_submit(comm, &op, 1, NULL));
    held = world;
    reach(READY);
    slc_comm_notify(comm);
    wait_for(SLEEPING);
    slc_gate_post(&gate, 1);
    slc_channel_notify(channel);
    CHECK(slc_gate_passed(slc_channel_completed(channel), 1));
    reach(COMPLETED);
    CHECK(!slc_comm_wait(comm, 1));
    CHECK(atomic_load(&shared->sleeps_at_start) == atomic_load(&shared->sleeps_at_completion));
    reach(OVER);
}

static void receive_both(slc_channel *channel, char *data)
{
    const slc_channel_transfer transfers[2] = {{.data = data, .bytes = BYTES},
                                               {.data = data, .bytes = BYTES, .label = 1}};
    wait_for(IDLE);
    CHECK(!slc_channel_submit(channel, &transfers[0], 1, NULL));
    CHECK(!slc_channel_wait(channel, 1));
    reach(TAKEN);
    wait_for(OVER);
    CHECK(!slc_channel_submit(channel, &transfers[1], 1, NULL));
}

static int be_rank(int rank, void *argument)
{
    const sluice_world_config config = path_config(rank, 2, *(int *)argument, DIRECT);
    slc_device *device;
    slc_segment segment;
    sluice_world *world;
    slc_channel *channel;
    const slc_channel_desc desc = {0, 1, 0, "down"};
    CHECK(!sluice_world_create(&config, &world));
    slc_comm *comm = slc_world_comm(world);
    CHECK(!slc_device_open("cpu", &device) && !slc_segment_create(device, 4096, &segment));
    CHECK(!slc_comm_attach(comm, &segment, NULL, 0));
    CHECK(!slc_channels_open(comm, &desc, 1, &channel));
    if (rank == 0)
        send_both(world, channel, segment.base);
    else
        receive_both(channel, segment.base);
    CHECK(!slc_channel_wait(channel, 2));
    held = NULL;
    slc_channels_close(&channel, 1);
    close_rank(world, &segment, device);
    return 0;
}

static void a_lane_is_looked_at_after_the_lines(void **state)
{
    (void)state;
    int port = free_port();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    setenv("SLUICE_COMM_SPIN_US", "0", 1); /* a thread that finds nothing to do sleeps at once */
    assert_int_equal(run_ranks(2, be_rank, &port), 0);
    munmap(shared, sizeof *shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_lane_is_looked_at_after_the_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
