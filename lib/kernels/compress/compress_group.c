/* Lays out the packets and residues of many tensors. */
#include "lib/kernels/compress/compress_group.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static sluice_status check(uint32_t count, const slc_compress_shape *shapes)
{
    if (!count) return slc_error(SLUICE_ERR_ARGUMENT, "an exchange of no tensors");
    for (uint32_t i = 0; i < count; i++) {
        sluice_status status = slc_compress_check(&shapes[i]);
        if (status) return slc_error_context(status, "tensor %u of %u that are exchanged together", i, count);
        if (shapes[i].ranks != shapes[0].ranks)
            return slc_error(SLUICE_ERR_ARGUMENT, "tensor %u of an exchange is for %u ranks, tensor 0 for %u", i,
                             shapes[i].ranks, shapes[0].ranks);
    }
    return SLUICE_OK;
}

sluice_status slc_compress_group_init(slc_compress_group *group, uint32_t count, const slc_compress_shape *shapes)
{
    *group = (slc_compress_group){0};
    sluice_status status = check(count, shapes);
    if (status) return status;
    slc_compress_shape *copy = malloc(count * sizeof *copy);
    uint64_t *offsets = malloc(count * sizeof *offsets), bytes = 0;
    if (!copy || !offsets) {
        free(copy), free(offsets);
        return slc_error(SLUICE_ERR_MEMORY, "an exchange of %u tensors", count);
    }
    memcpy(copy, shapes, count * sizeof *copy);
    for (uint32_t i = 0; i < count; i++) {
        offsets[i] = bytes;
        if (shapes[i].count) bytes += slc_compress_packet_bytes(&shapes[i]);
    }
    *group = (slc_compress_group){.count = count,
                                  .shapes = copy,
                                  .offsets = offsets,
                                  .packet_bytes = bytes,
                                  .stride = aligned(bytes ? bytes : 1)};
    return SLUICE_OK;
}

void slc_compress_group_fini(slc_compress_group *group)
{
    free((void *)(uintptr_t)group->shapes);
    free(group->offsets);
    *group = (slc_compress_group){0};
}

/* Returns the bytes of a residue of `chunks` chunks, with `room` bytes for bins; sets its arrays if there is memory. */
static uint64_t place(const slc_compress_shape *shape, uint32_t chunks, uint64_t room, char *memory,
                      slc_residue *residue)
{
    uint64_t sums = aligned(chunks * slc_compress_chunk(shape) * sizeof(float));
    uint64_t scales = aligned(chunks * slc_compress_scales(shape) * sizeof(float));
    if (memory)
        *residue = (slc_residue){(float *)(void *)memory, (float *)(void *)(memory + sums),
                                 (int64_t *)(void *)(memory + sums + scales)};
    return sums + scales + aligned(room);
}

static uint64_t place_all(const slc_compress_group *group, uint32_t chunks, uint64_t room, char *memory,
                          slc_residue *residues)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < group->count; i++)
        bytes += place(&group->shapes[i], chunks, room, memory ? memory + bytes : NULL, memory ? &residues[i] : NULL);
    return bytes;
}

static uint64_t place_workers(const slc_compress_group *group, char *memory, slc_residue *residues)
{
    return place_all(group, group->shapes[0].ranks, sizeof(slc_compress_room), memory, residues);
}

static uint64_t place_servers(const slc_compress_group *group, char *memory, slc_residue *residues)
{
    return place_all(group, 1, SLC_NORM_BINS * sizeof(int64_t), memory, residues);
}

uint64_t slc_compress_group_worker_bytes(const slc_compress_group *group)
{
    return place_workers(group, NULL, NULL);
}

uint64_t slc_compress_group_server_bytes(const slc_compress_group *group)
{
    return place_servers(group, NULL, NULL);
}

void slc_compress_group_residues(const slc_compress_group *group, void *worker_memory, void *server_memory,
                                 slc_residue *workers, slc_residue *servers)
{
    if (worker_memory) place_workers(group, worker_memory, workers);
    if (server_memory) place_servers(group, server_memory, servers);
}
