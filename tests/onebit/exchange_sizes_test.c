/* The sizes that planning assumes for a compressed exchange are those of the kernels and of the exchange itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/numbers/random.h"
#include "lib/kernels/compress/compress_group.h"
#include "lib/plan/exchange_sizes.h"
#include "tests/support/seed.h"

enum { CASES = 3000, TENSORS = 12 };

static uint64_t draw(uint64_t seed, uint64_t which, uint64_t below)
{
    return slc_random_below(test_seed(seed), 7, which, below);
}

/* A length from 0 to far beyond 32 bits. */
static uint64_t draw_length(uint64_t seed, uint64_t which)
{
    return draw(seed, which, UINT64_C(1) << draw(seed, which + 100, 40));
}

static slc_exchange_sizes sizes_of(const uint64_t *tensors, uint32_t count, uint32_t ranks)
{
    slc_compress_shape shapes[TENSORS];
    slc_compress_group group;
    for (uint32_t t = 0; t < count; t++) shapes[t] = (slc_compress_shape){.count = tensors[t], .ranks = ranks};
    assert_int_equal(slc_compress_group_init(&group, count, shapes), SLUICE_OK);
    slc_exchange_sizes sizes = {.worker = slc_compress_group_worker_bytes(&group),
                                .server = slc_compress_group_server_bytes(&group),
                                .packets = ranks * group.stride,
                                .results = ranks * group.stride,
                                .wire = ranks * group.packet_bytes};
    slc_compress_group_fini(&group);
    return sizes;
}

static void same(const slc_exchange_sizes *planned, slc_exchange_sizes made, bool messages, uint64_t seed)
{
    if (messages) made.results *= 2; /* slc_comm_exchange_bytes */
    if (planned->worker != made.worker || planned->server != made.server || planned->packets != made.packets ||
        planned->results != made.results || planned->wire != made.wire)
        fail_msg("case %llu: worker %llu %llu, server %llu %llu, packets %llu %llu, results %llu %llu, wire %llu %llu",
                 (unsigned long long)seed, (unsigned long long)planned->worker, (unsigned long long)made.worker,
                 (unsigned long long)planned->server, (unsigned long long)made.server,
                 (unsigned long long)planned->packets, (unsigned long long)made.packets,
                 (unsigned long long)planned->results, (unsigned long long)made.results,
                 (unsigned long long)planned->wire, (unsigned long long)made.wire);
}

/* The sizes must be right for a whole unit, and for one that is put together from two parts. */
static void planned_sizes_are_those_of_the_exchange(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        uint64_t tensors[TENSORS];
        uint32_t ranks = seed % 8 ? 2 + (uint32_t)draw(seed, 0, 16) : 2 + (uint32_t)draw(seed, 0, 4095);
        uint32_t count = 1 + (uint32_t)draw(seed, 1, TENSORS), first = (uint32_t)draw(seed, 2, count);
        bool messages = draw(seed, 3, 2);
        for (uint32_t t = 0; t < count; t++) tensors[t] = draw_length(seed, 10 + t);
        slc_exchange_sizes whole = slc_exchange_of(tensors, count, ranks, messages);
        same(&whole, sizes_of(tensors, count, ranks), messages, seed);
        if (!first) continue;
        slc_exchange_sizes a = slc_exchange_of(tensors, first, ranks, messages);
        slc_exchange_sizes b = slc_exchange_of(tensors + first, count - first, ranks, messages);
        slc_exchange_sizes joined = slc_exchange_join(&a, &b, ranks);
        same(&joined, sizes_of(tensors, count, ranks), messages, seed);
    }
}

static void nobody_exchanges_alone(void **state)
{
    (void)state;
    const uint64_t tensors[] = {1000, 17};
    slc_exchange_sizes none = {0}, alone = slc_exchange_of(tensors, 2, 1, true);
    assert_memory_equal(&alone, &none, sizeof none);
    alone = slc_exchange_join(&alone, &none, 1);
    assert_memory_equal(&alone, &none, sizeof none);
}

/* Sums that 64 bits cannot hold are the largest number; they do not wrap. */
static void what_does_not_fit_is_endless(void **state)
{
    (void)state;
    const uint64_t tensors[] = {UINT64_C(1) << 62, UINT64_C(1) << 62, 5};
    slc_exchange_sizes sizes = slc_exchange_of(tensors, 3, 1 << 20, true);
    assert_true(sizes.worker == UINT64_MAX && sizes.wire >= UINT64_C(1) << 60 && sizes.results >= sizes.packets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned_sizes_are_those_of_the_exchange),
        cmocka_unit_test(nobody_exchanges_alone),
        cmocka_unit_test(what_does_not_fit_is_endless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
