#include "tests/support/comm/compressed_exchange.h"

#include <stdlib.h>
#include <string.h>

static void *zeroed(uint64_t bytes)
{
    void *x = aligned_alloc(64, (bytes + 127) / 64 * 64);
    CHECK(x);
    return memset(x, 0, (bytes + 127) / 64 * 64);
}

residues residues_create(const slc_compress_group *group)
{
    residues r = {.worker_memory = zeroed(slc_compress_group_worker_bytes(group)),
                  .server_memory = zeroed(slc_compress_group_server_bytes(group)),
                  .workers = zeroed(group->count * sizeof(slc_residue)),
                  .servers = zeroed(group->count * sizeof(slc_residue))};
    slc_compress_group_residues(group, r.worker_memory, r.server_memory, r.workers, r.servers);
    return r;
}

void residues_destroy(residues *r)
{
    free(r->worker_memory), free(r->server_memory), free(r->workers), free(r->servers);
}

slc_compress_shape draw_shape(uint64_t *chance, int size, uint64_t most)
{
    const uint64_t limits[] = {3, 40, 1000, 30000, most + 1};
    uint64_t limit = limits[pick(chance, 5)];
    return (slc_compress_shape){.count = pick(chance, limit < most ? limit : most + 1),
                                .scale_elements = pick(chance, 3) ? 0 : 16 * (1 + pick(chance, 40)),
                                .ranks = (uint32_t)size};
}

uint64_t exchange_bytes(const slc_comm *comm, const slc_compress_group *group)
{
    return group->shapes[0].ranks * group->stride + slc_comm_exchange_bytes(comm, group);
}

exchange exchange_create(const slc_comm *comm, uint32_t count, const slc_compress_shape *shapes, char **arena)
{
    exchange x = {0};
    uint64_t longest = 1;
    CHECK(!slc_compress_group_init(&x.group, count, shapes));
    x.bytes = x.group.shapes[0].ranks * x.group.stride;
    x.packets = *arena, x.results = *arena + x.bytes;
    *arena += exchange_bytes(comm, &x.group);
    x.own = residues_create(&x.group);
    for (uint32_t r = 0; r < x.group.shapes[0].ranks; r++) {
        x.all[r] = residues_create(&x.group);
        x.simulated[r] = zeroed(x.bytes);
    }
    x.expected = zeroed(x.bytes);
    x.momentum = zeroed(count * sizeof *x.momentum);
    for (uint32_t i = 0; i < count; i++) {
        x.momentum[i] = zeroed(shapes[i].count * sizeof(float));
        if (shapes[i].count > longest) longest = shapes[i].count;
    }
    x.gradient = zeroed(longest * sizeof(float));
    return x;
}

void exchange_destroy(exchange *x)
{
    for (uint32_t r = 0; r < x->group.shapes[0].ranks; r++) residues_destroy(&x->all[r]), free(x->simulated[r]);
    for (uint32_t i = 0; i < x->group.count; i++) free(x->momentum[i]);
    residues_destroy(&x->own), free(x->expected), free(x->momentum), free(x->gradient);
    slc_compress_group_fini(&x->group);
}

/* Simulates both passes of one tensor on all ranks. */
static void simulate_tensor(exchange *x, sluice_stream *stream, uint32_t i, uint64_t seed)
{
    const slc_compress_shape *shape = &x->group.shapes[i];
    const uint64_t stride = x->group.stride, offset = x->group.offsets[i];
    for (uint32_t r = 0; r < shape->ranks; r++) {
        uint64_t chance = seed * 1000 + r * 77 + i * 1000003;
        for (uint64_t e = 0; e < shape->count; e++)
            x->gradient[e] = (float)(int64_t)(pick(&chance, 1 << 20)) * 0x1p-19f - 1 + (e % 16 ? 0.0f : 0.5f);
        const slc_compress_input input = {.gradient_dtype = SLUICE_FP32,
                                          .momentum_dtype = SLUICE_FP32,
                                          .gradient = x->gradient,
                                          .momentum = x->momentum[i],
                                          .gradient_factor = 1,
                                          .factor = 0.9,
                                          .rest = 0.1};
        CHECK(!slc_compress_worker(stream, shape, &input, &x->all[r].workers[i], x->simulated[r] + offset, stride));
    }
    for (uint32_t k = 0; shape->count && k < shape->ranks; k++) {
        const void *packets[RANKS_MAX];
        int64_t bins[SLC_NORM_BINS] = {0};
        char *result = x->expected + k * stride + offset;
        for (uint32_t r = 0; r < shape->ranks; r++) packets[r] = x->simulated[r] + k * stride + offset;
        const slc_compress_served chunk = {shape, packets, &x->all[k].servers[i], bins, result, NULL};
        CHECK(!slc_compress_server(stream, &chunk, 0, slc_compress_chunk(shape)));
        CHECK(!slc_compress_server_end(stream, &chunk));
    }
}

void exchange_prepare(exchange *x, sluice_stream *stream, int rank, uint64_t seed)
{
    for (uint32_t i = 0; i < x->group.count; i++) simulate_tensor(x, stream, i, seed + 7919 * (uint64_t)x->exchanges);
    memcpy(x->packets, x->simulated[rank], x->bytes);
    x->exchanges++;
}

slc_op exchange_op(const exchange *x)
{
    return slc_exchange_op(&x->group, x->packets, x->results, x->own.servers);
}

void exchange_check(const exchange *x, int rank)
{
    for (uint32_t k = 0; k < x->group.shapes[0].ranks; k++)
        CHECK(!memcmp(x->results + k * x->group.stride, x->expected + k * x->group.stride, x->group.packet_bytes));
    for (uint32_t i = 0; i < x->group.count; i++) { /* bins keep nothing */
        const slc_residue *own = &x->own.servers[i], *all = &x->all[rank].servers[i];
        const uint64_t chunk = slc_compress_chunk(&x->group.shapes[i]),
                       scales = slc_compress_scales(&x->group.shapes[i]);
        CHECK(!memcmp(own->sum, all->sum, chunk * sizeof *own->sum));
        CHECK(!memcmp(own->scale, all->scale, scales * sizeof *own->scale));
    }
}

void exchange_decompress(exchange *x)
{
    for (uint32_t i = 0; i < x->group.count; i++) {
        const slc_compress_shape *shape = &x->group.shapes[i];
        uint64_t chunk = slc_compress_chunk(shape);
        for (uint64_t e = 0; e < shape->count; e++) {
            const char *packet = x->results + e / chunk * x->group.stride + x->group.offsets[i];
            uint64_t at = e % chunk, block = shape->scale_elements ? at / shape->scale_elements : 0;
            float scale;
            memcpy(&scale, packet + block * 4, sizeof scale);
            uint8_t byte = (uint8_t)packet[slc_compress_scales(shape) * 4 + at / 8];
            x->momentum[i][e] = byte >> (7 - at % 8) & 1 ? scale : -scale;
        }
    }
}

uint64_t exchange_formula(const slc_compress_group *group)
{
    uint64_t peers = group->shapes[0].ranks - 1, sent = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        if (!group->shapes[i].count) continue;
        uint64_t padded = group->shapes[0].ranks * slc_compress_chunk(&group->shapes[i]) * 4;
        sent +=
            padded / 32 * 2 * peers / group->shapes[0].ranks + 2 * peers * 4 * slc_compress_scales(&group->shapes[i]);
    }
    return sent;
}
