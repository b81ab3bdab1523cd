/* Works out the bytes of exchanges from the lengths of tensors. Sums and products stop at UINT64_MAX, because lengths
 * come from files. strategy_table_test.c covers this file. */
#include "lib/plan/exchange_sizes.h"

#include "lib/base/integer.h"

enum { WORKER_ROOM = 832, SERVER_BINS = 384 }; /* bytes */

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t rounded_up(uint64_t value, uint64_t grain)
{
    return value > UINT64_MAX - grain ? UINT64_MAX : slc_round_up(value, grain);
}

static uint64_t floats(uint64_t count)
{
    return rounded_up(times(count, sizeof(float)), 64);
}

/* Returns the bytes of a residue: its sums, its scales, and `beside` bytes that kernels need. */
static uint64_t residue(uint64_t chunks, uint64_t chunk, uint64_t beside)
{
    return plus(plus(floats(times(chunks, chunk)), floats(chunks)), beside);
}

/* Sets the bytes of the buffers from those of one packet. `copies` is how often the results need the packets' bytes. */
static void set_packets(slc_exchange_sizes *sizes, uint64_t world, uint64_t packet, uint64_t copies)
{
    sizes->wire = times(world, packet);
    sizes->packets = times(world, rounded_up(packet ? packet : 1, 64));
    sizes->results = times(copies, sizes->packets);
}

slc_exchange_sizes slc_exchange_of(const uint64_t *tensors, uint32_t count, uint32_t world, bool messages)
{
    slc_exchange_sizes sizes = {0};
    uint64_t n = world, least = n, packet = 0;
    if (n < 2) return sizes;
    while (least % 8) least += n; /* lcm(n, 8) */
    for (uint32_t t = 0; t < count; t++) {
        uint64_t chunk = rounded_up(tensors[t], n * least) / n;
        sizes.worker = plus(sizes.worker, residue(n, chunk, WORKER_ROOM));
        sizes.server = plus(sizes.server, residue(1, chunk, SERVER_BINS));
        if (tensors[t]) packet = plus(packet, sizeof(float) + chunk / 8);
    }
    set_packets(&sizes, n, packet, messages ? 2 : 1);
    return sizes;
}

slc_exchange_sizes slc_exchange_join(const slc_exchange_sizes *a, const slc_exchange_sizes *b, uint32_t world)
{
    slc_exchange_sizes sizes = {.worker = plus(a->worker, b->worker), .server = plus(a->server, b->server)};
    if (world < 2 || !a->packets || !b->packets) return a->packets ? *a : *b;
    set_packets(&sizes, world, plus(a->wire, b->wire) / world, a->results > a->packets ? 2 : 1);
    return sizes;
}
