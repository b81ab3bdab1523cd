/* Peers that cannot be reached at once: connecting is repeated until the time to join is over, and then says which rank
 * and where. Addresses that are not whole are refused. The transport is UCX; here its connect can be made to fail. */
#include "lib/comm/comm_test.h"
#include "lib/comm/transport.h"

#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { FOREVER = 1 << 30 };

static int failures_left; /* of connect, in this process */
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

sluice_status __real_slc_transport_open(slc_transport *out, const char *name, const char *throttle, int rank, int size,
                                        slc_peer_lost peer_lost, void *context);
sluice_status __wrap_slc_transport_open(slc_transport *out, const char *name, const char *throttle, int rank, int size,
                                        slc_peer_lost peer_lost, void *context);

sluice_status __wrap_slc_transport_open(slc_transport *out, const char *name, const char *throttle, int rank, int size,
                                        slc_peer_lost peer_lost, void *context)
{
    sluice_status status = __real_slc_transport_open(out, name, throttle, rank, size, peer_lost, context);
    if (status) return status;
    ucx = out->table;
    reluctant = *ucx;
    reluctant.connect = connect_reluctantly;
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
    if (test->failures == FOREVER) config.join_timeout_s = 4;
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
    CHECK(!slc_transport_open(&transport, "ucx", "", 0, 2, on_lost, NULL));
    CHECK(!transport.table->address(transport.self, &address, &bytes));
    char *part = malloc(bytes + 1);
    CHECK(part);
    memcpy(part, address, bytes);
    for (size_t length = 0; length <= bytes + 1; length++) {
        char *exactly = malloc(length + !length); /* so that a sanitizer sees what is read beyond */
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
