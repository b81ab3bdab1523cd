/* A transport that does not do as it should. If a peer cannot be reached at once, connecting is repeated until the time
 * to join is over, and then the error says which rank it is and where. Addresses that are not whole are refused.
 * Messages that cannot be cancelled keep their memory. If none gets through any more, the world fails and says between
 * which ranks. The transport is UCX; here its connect can be made to fail, its cancel to do nothing, and its progress
 * to move nothing but to say that it does. */
#include "tests/support/comm/forked_ranks.h"
#include "lib/comm/transport.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { FOREVER = 1 << 30 };

static int failures_left; /* how often connect still fails in this process */
static const sluice_transport_v1 *ucx;
static sluice_transport_v1 reluctant;

static sluice_status connect_reluctantly(void *self, int rank, const void *blob, size_t bytes)
{
    if (failures_left > 0) {
        failures_left--;
        return SLUICE_ERR_PEER;
    }
    return ucx->connect(self, rank, blob, bytes);
}

static bool stubborn; /* nothing that is pending in this process ends any more */

static void cancel_if_willing(void *self)
{
    if (!stubborn) ucx->cancel(self);
}

static void close_peer_if_willing(void *self, int rank)
{
    if (!stubborn) ucx->close_peer(self, rank);
}

static _Atomic bool idle_but_busy; /* as a worker that has nothing but keepalives to move */

static int progress_or_pretend(void *self)
{
    return idle_but_busy ? 1 : ucx->progress(self);
}

sluice_status __real_slc_transport_open(slc_transport *out, const char *name, const char *throttle,
                                        const char *interfaces, int rank, int size, slc_peer_lost peer_lost,
                                        void *context);
sluice_status __wrap_slc_transport_open(slc_transport *out, const char *name, const char *throttle,
                                        const char *interfaces, int rank, int size, slc_peer_lost peer_lost,
                                        void *context);

sluice_status __wrap_slc_transport_open(slc_transport *out, const char *name, const char *throttle,
                                        const char *interfaces, int rank, int size, slc_peer_lost peer_lost,
                                        void *context)
{
    sluice_status status = __real_slc_transport_open(out, name, throttle, interfaces, rank, size, peer_lost, context);
    if (status) return status;
    ucx = out->table;
    reluctant = *ucx;
    reluctant.connect = connect_reluctantly;
    reluctant.cancel = cancel_if_willing;
    reluctant.close_peer = close_peer_if_willing;
    reluctant.progress = progress_or_pretend;
    out->table = &reluctant;
    return SLUICE_OK;
}

typedef struct {
    int port, failures;
} test_case;

static int join(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = path_config(rank, 2, test->port, MESSAGES);
    sluice_world *world;
    failures_left = rank == 1 ? test->failures : 0;
    if (test->failures == FOREVER) config.join_timeout_s = 1.5;
    sluice_status status = sluice_world_create(&config, &world);
    if (test->failures == FOREVER) {
        CHECK(status == SLUICE_ERR_PEER);
        CHECK(strstr(sluice_last_error(), "connecting to rank 0 at ") && strstr(sluice_last_error(), "127.0.0.1"));
        return 0;
    }
    CHECK(!status);
    uint32_t index;
    slc_comm *comm = slc_world_comm(world);
    CHECK(!slc_comm_submit(comm, &(slc_op){.kind = SLC_BARRIER}, 1, &index) && !slc_comm_wait(comm, index + 1));
    sluice_world_destroy(world);
    return 0;
}

static void connecting_is_repeated(void **state)
{
    (void)state;
    test_case test = {.port = free_port(), .failures = 8};
    assert_int_equal(run_ranks(2, join, &test), 0);
}

static void what_stays_unreachable_is_named(void **state)
{
    (void)state;
    test_case test = {.port = free_port(), .failures = FOREVER};
    assert_int_equal(run_ranks(2, join, &test), 0);
}

static int fail_with_messages(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = path_config(rank, 2, test->port, MESSAGES);
    sluice_world *world;
    slc_device *device;
    slc_segment segment;
    enum { ELEMENTS = 1 << 16 };
    CHECK(!sluice_world_create(&config, &world));
    CHECK(!slc_device_open("cpu", &device) && !slc_segment_create(device, ELEMENTS * 4 * 8, &segment));
    slc_comm *comm = slc_world_comm(world);
    char *base = segment.base;
    CHECK(!slc_comm_attach(comm, &segment, base + ELEMENTS * 4, ELEMENTS * 4 * 7));
    if (rank == 1) {
        CHECK(!sluice_world_barrier(world));
        usleep(100000);
        kill(getpid(), SIGKILL);
    }
    slc_op op = {.kind = SLC_ALL_REDUCE,
                 .dtype = SLUICE_FP32,
                 .elements = ELEMENTS,
                 .block_elements = 4096,
                 .block_count = ELEMENTS / 4096,
                 .src = base,
                 .dst = base,
                 .scale = 1};
    uint32_t index;
    stubborn = true;
    CHECK(!slc_comm_submit(comm, &op, 1, &index)); /* its receives wait for a rank that never sends */
    CHECK(!sluice_world_barrier(world));
    CHECK(slc_comm_wait(comm, index + 1) == SLUICE_ERR_PEER);
    slc_comm_attach(comm, NULL, NULL, 0);
    CHECK(segment.kept);
    slc_segment_destroy(&segment);
    for (int i = 0; i < ELEMENTS; i++) base[i] = 1; /* plays a network card that goes on */
    stubborn = false;
    sluice_world_destroy(world);
    slc_device_close(device);
    return 0;
}

static void memory_of_late_messages_stays(void **state)
{
    (void)state;
    test_case test = {.port = free_port()};
    ranks all;
    ranks_start(&all, 2, fail_with_messages, &test);
    assert_int_equal(rank_wait(&all, 0), 0);
    assert_int_equal(rank_wait(&all, 1), 128 + SIGKILL);
}

enum { SUM_ELEMENTS = 1 << 16, CUT_SIZE = 3 };

/* Nothing but heartbeats gets to rank 2 or away from it after the first sum. */
static int sum_until_cut(int rank, void *argument)
{
    const test_case *test = argument;
    sluice_world_config config = path_config(rank, CUT_SIZE, test->port, MESSAGES);
    config.timeout_s = 0.8;
    sluice_world *world;
    slc_device *device;
    slc_segment segment;
    CHECK(!sluice_world_create(&config, &world));
    CHECK(!slc_device_open("cpu", &device) && !slc_segment_create(device, SUM_ELEMENTS * 4 * 8, &segment));
    slc_comm *comm = slc_world_comm(world);
    char *base = segment.base;
    CHECK(!slc_comm_attach(comm, &segment, base + SUM_ELEMENTS * 4, SUM_ELEMENTS * 4 * 7));
    const slc_op op = {.kind = SLC_ALL_REDUCE,
                       .dtype = SLUICE_FP32,
                       .elements = SUM_ELEMENTS / 48 * 48,
                       .block_elements = 4800,
                       .block_count = (SUM_ELEMENTS / 48 * 48 + 4799) / 4800,
                       .src = base,
                       .dst = base,
                       .scale = 1};
    uint32_t index;
    CHECK(!slc_comm_submit(comm, &op, 1, &index) && !slc_comm_wait(comm, index + 1));
    CHECK(!sluice_world_barrier(world));
    idle_but_busy = rank == 2;
    CHECK(!slc_comm_submit(comm, &op, 1, &index));
    CHECK(slc_comm_wait(comm, index + 1) == SLUICE_ERR_TIMEOUT);
    CHECK(strstr(sluice_last_error(), "the network between rank ") && strstr(sluice_last_error(), "rank 2 "));
    idle_but_busy = false;
    slc_comm_attach(comm, NULL, NULL, 0);
    slc_segment_destroy(&segment);
    slc_device_close(device);
    sluice_world_destroy(world);
    return 0;
}

static void a_network_without_messages_is_named(void **state)
{
    (void)state;
    test_case test = {.port = free_port()};
    assert_int_equal(run_ranks(CUT_SIZE, sum_until_cut, &test), 0);
}

static void on_lost(void *context, int rank, const char *why)
{
    (void)context, (void)rank, (void)why;
}

static int connect_with_parts(int rank, void *argument)
{
    slc_transport transport;
    const void *address;
    size_t bytes;
    (void)rank, (void)argument;
    CHECK(!slc_transport_open(&transport, "ucx", "", "", 0, 2, on_lost, NULL));
    CHECK(!transport.table->address(transport.self, &address, &bytes));
    char *part = malloc(bytes + 1);
    CHECK(part);
    memcpy(part, address, bytes);
    for (size_t length = 0; length <= bytes + 1; length++) {
        char *exactly = malloc(length + !length); /* so that a sanitizer sees a read beyond its end */
        CHECK(exactly);
        memcpy(exactly, part, length);
        sluice_status status = ucx->connect(transport.self, 1, exactly, length);
        CHECK(status == (length == bytes ? SLUICE_OK : SLUICE_ERR_FORMAT));
        free(exactly);
    }
    part[bytes - 1] ^= 1;
    CHECK(ucx->connect(transport.self, 1, part, bytes) == SLUICE_ERR_FORMAT);
    free(part);
    slc_transport_close(&transport, 0);
    return 0;
}

static void addresses_in_part_are_refused(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, connect_with_parts, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connecting_is_repeated),
        cmocka_unit_test(what_stays_unreachable_is_named),
        cmocka_unit_test(addresses_in_part_are_refused),
        cmocka_unit_test(memory_of_late_messages_stays),
        cmocka_unit_test(a_network_without_messages_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
